# SPDX-License-Identifier: Apache-2.0
"""moegate.bench() on the host device: real libmoegate.so, numpy arrays, a stub of torch's stream.

    MOEGATE_LIBRARY=build/libmoegate.so python3 tests/python/bench_test.py
"""

import contextlib
import importlib.util
import os
import pathlib
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import types
import unittest
import unittest.mock
import warnings

import needs

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

import moegate  # noqa: E402
import numpy as np  # noqa: E402
from moegate import _bench, _memory  # noqa: E402

QUICK = {"budget_s": 0.05, "min_samples": 20}


def double(x, out):
    np.multiply(x, 2, out=out)


class Bench(unittest.TestCase):
    def setUp(self):
        self.x = np.arange(4096, dtype=np.float32).reshape(64, 64)
        self.out = np.zeros_like(self.x)

    def test_a_right_function_has_a_time_in_microseconds(self):
        timing = moegate.bench(double, self.x, self.out, outputs=self.out, reference=self.x * 2.0, **QUICK)
        self.assertTrue(timing.verified)
        self.assertTrue(timing.accuracy[0]["ok"])
        self.assertTrue(0 < timing.low_us <= timing.us <= timing.high_us)
        self.assertGreaterEqual(len(timing.samples_us), 20)
        self.assertRegex(str(timing), r"^\d+\.\d\d us \[.*\] clock, cold, \d+ samples, one process$")
        with self.assertRaises(TypeError):
            float(timing)

    def test_times_are_those_of_the_function(self):
        timing = moegate.bench(time.sleep, 2e-3, min_samples=5, budget_s=0.05)
        self.assertTrue(2e3 <= min(timing.samples_us) <= timing.us < 2e4, timing)

    def test_cold_is_slower_than_warm(self):
        x = np.ones(1 << 16, np.float32)[::16]  # an element of each line
        cold, warm = (moegate.bench(np.sum, x, cache=cache, **QUICK) for cache in ("cold", "warm"))
        self.assertEqual((cold.cache, warm.cache), ("cold", "warm"))
        self.assertGreater(min(cold.samples_us), 1.5 * min(warm.samples_us))

    def test_without_a_reference_it_is_not_verified(self):
        timing = moegate.bench(double, self.x, self.out, outputs=self.out, **QUICK)
        self.assertFalse(timing.verified)
        self.assertTrue(str(timing).endswith(", not verified"))

    def test_returned_tensors_are_compared_and_kept(self):
        timing = moegate.bench(np.add, self.x, 1, reference=lambda x, one: x.astype(np.float64) + one, **QUICK)
        self.assertTrue(timing.verified)
        np.testing.assert_array_equal(timing.result, self.x + 1)

    def test_wrong_outputs_have_no_time(self):
        with self.assertRaisesRegex(moegate.Wrong, "output 0") as raised:
            moegate.bench(double, self.x, self.out, outputs=self.out, reference=self.x * 2.1, **QUICK)
        self.assertFalse(raised.exception.accuracy[0]["ok"])
        with self.assertRaises(moegate.Wrong):
            moegate.bench(np.add, self.x, 1, reference=self.x, **QUICK)

    def test_what_is_not_written_is_seen(self):
        def half(x, out):
            out[:32] = x[:32] * 2

        double(self.x, self.out)  # right already, until it is poisoned
        with self.assertRaises(moegate.Wrong):
            moegate.bench(half, self.x, self.out, outputs=self.out, reference=self.x * 2.0, **QUICK)

    def test_integers_are_compared_exactly(self):
        x = np.arange(100, dtype=np.int64)
        self.assertTrue(moegate.bench(np.negative, x, reference=-x, **QUICK).verified)
        with self.assertRaises(moegate.Wrong):
            moegate.bench(np.negative, x, reference=-x - (x == 7), **QUICK)

    def test_every_floating_type_is_read(self):
        for dtype in (np.float64, np.float32, np.float16):
            x = np.linspace(-1, 1, 96, dtype=dtype)
            self.assertTrue(moegate.bench(np.negative, x, reference=-x, **QUICK).verified, dtype)
            with self.assertRaises(moegate.Wrong):
                moegate.bench(np.negative, x, reference=x, **QUICK)

    def test_a_tolerance_is_the_callers(self):
        wide = moegate.Tolerance(rtol=0.2, atol=0.2, rel_l2=0.2, row=0.2, scale=0.2)
        wrong = self.x * 2.1
        timing = moegate.bench(
            double, self.x, self.out, outputs=self.out, reference=wrong, tolerance=wide, **QUICK
        )
        self.assertTrue(timing.verified)

    def test_a_changed_input_is_wrong(self):
        def clobber(x, out):
            double(x, out)
            x[0, 0] += 1

        with self.assertRaisesRegex(moegate.Wrong, "changed its input"):
            moegate.bench(clobber, self.x, self.out, outputs=self.out, **QUICK)

        def once(x):  # a second call changes nothing
            np.maximum(x, 5, out=x)

        with self.assertRaisesRegex(moegate.Wrong, "changed its input 0; name it in outputs="):
            moegate.bench(once, self.x, **QUICK)

    def test_an_exception_is_the_functions_own(self):
        calls = []

        def fails():
            calls.append(1)
            if len(calls) == 30:
                raise ZeroDivisionError("the thirtieth")

        with self.assertRaisesRegex(ZeroDivisionError, "the thirtieth"):
            moegate.bench(fails, **QUICK)
        self.assertEqual(len(calls), 30)
        self.assertGreater(moegate.bench(lambda: None, **QUICK).us, 0)  # the session lives

    def test_an_interrupt_ends_it(self):
        calls = []

        def interrupted():
            calls.append(1)
            if len(calls) == 10:
                os.kill(os.getpid(), signal.SIGINT)

        with self.assertRaises(KeyboardInterrupt):
            moegate.bench(interrupted, **QUICK)
        self.assertLess(len(calls), 20)

    def test_views_and_odd_addresses_can_be_inputs(self):
        bytes_ = np.zeros(4097, np.uint8)
        self.assertGreater(moegate.bench(np.sum, bytes_[1:], **QUICK).us, 0)
        self.assertGreater(moegate.bench(np.sum, self.x.T[::-2], **QUICK).us, 0)
        self.assertGreater(moegate.bench(np.sum, self.x[:0], **QUICK).us, 0)

    def test_what_cannot_be_measured_says_why(self):
        with self.assertRaisesRegex(ValueError, "output 0 of shape .* is not contiguous"):
            moegate.bench(double, self.x, self.out, outputs=self.out.T, **QUICK)
        with self.assertRaisesRegex(ValueError, "timer 'cupti': the host has only its clock"):
            moegate.bench(double, self.x, self.out, outputs=self.out, timer="cupti", **QUICK)
        with self.assertRaisesRegex(ValueError, "graph needs a GPU"):
            moegate.bench(double, self.x, self.out, outputs=self.out, launch="graph", **QUICK)
        with self.assertRaisesRegex(ValueError, "cache = 'hot'"):
            moegate.bench(double, self.x, self.out, outputs=self.out, cache="hot", **QUICK)
        with self.assertRaisesRegex(ValueError, "shape"):
            moegate.bench(np.negative, self.x, reference=self.x[:1], **QUICK)
        with self.assertRaisesRegex(ValueError, "the reference has no tensors"):
            moegate.bench(np.sum, self.x, reference=float(self.x.sum()), **QUICK)
        with self.assertRaisesRegex(ValueError, "param 'cache' is one of launch, cache, seed"):
            moegate.bench(np.sum, self.x, params={"cache": "L2"}, **QUICK)

    def test_off_verifies_and_does_not_time(self):
        with unittest.mock.patch.dict(os.environ, MOEGATE_BENCH="off"):
            timing = moegate.bench(np.negative, self.x, reference=-self.x)
            self.assertEqual((timing.verified, timing.samples_us), (True, []))
            with self.assertRaises(moegate.Wrong):
                moegate.bench(np.negative, self.x, reference=self.x)

    def test_the_process_is_left_as_it_was(self):
        affinity = os.sched_getaffinity(0)
        moegate.bench(double, self.x, self.out, outputs=self.out, **QUICK)
        self.assertEqual(os.sched_getaffinity(0), affinity)

    def test_a_store_gets_rows_by_name(self):
        store = pathlib.Path(tempfile.mkdtemp()) / "s.sqlite"
        arguments = {"outputs": self.out, "store": store, **QUICK}
        moegate.bench(double, self.x, self.out, name="tests/a b", params={"n": "6, 4"}, reference=self.x * 2.0, **arguments)
        moegate.bench(double, self.x, self.out, name="unverified", **arguments)
        with self.assertRaisesRegex(ValueError, "was stored by this process before"):
            moegate.bench(double, self.x, self.out, name="unverified", **arguments)
        _bench.close_sessions()
        db = sqlite3.connect(store)
        keys = [key for (key,) in db.execute("SELECT key FROM bench_case ORDER BY key")]
        self.assertEqual(keys, ["tests.a_b/n=6__4", "unverified"])
        self.assertEqual(db.execute("SELECT status FROM run").fetchall(), [("complete",)])
        self.assertEqual(db.execute("SELECT value FROM tag WHERE name = 'inprocess'").fetchall(), [("1",)])
        if os.environ.get("MOEGATE_PROGRAM"):
            rows = moegate.results(store)
            self.assertEqual([row["case"] for row in rows], keys)


class Resources(unittest.TestCase):
    def test_a_thousand_calls_leak_nothing(self):
        x = np.ones(1024, np.float32)
        out = np.empty_like(x)
        most = {"outputs": out, "reference": x * 2.0, "min_samples": 1, "max_samples": 1, "budget_s": 1e-4}

        def held():
            status = pathlib.Path("/proc/self/status").read_text()
            fields = dict(line.split(":", 1) for line in status.splitlines())
            kib = int(fields["VmRSS"].split()[0])
            return len(os.listdir("/proc/self/fd")), int(fields["Threads"]), kib

        def calls(timed, verified):
            for count, mode in ((timed, "on"), (verified, "off")):
                with unittest.mock.patch.dict(os.environ, MOEGATE_BENCH=mode):
                    for _ in range(count):
                        with contextlib.suppress(RuntimeError):
                            moegate.bench(double, x, out, **most)

        calls(10, 100)
        descriptors, threads, kib = held()
        calls(20, 1000)
        after = held()
        self.assertEqual(after[:2], (descriptors, threads))
        self.assertLess(after[2] - kib, 4096)


class Watching(unittest.TestCase):
    """watch() lasts as long as the process: each of these has one of its own."""

    def said(self, script, **environment):
        path = str(pathlib.Path(moegate.__file__).parents[1])
        told = subprocess.run(
            [sys.executable, "-B", "-c", script],
            env={**os.environ, "PYTHONPATH": path, **environment},
            capture_output=True,
            text=True,
        )
        self.assertEqual(told.returncode, 0, told.stderr)
        return told.stdout.strip()

    def test_without_a_gpu_it_does_nothing(self):
        script = "import moegate; print(moegate.watch(), moegate.watch(), moegate.bench(len, [], budget_s=0.05).timer)"
        self.assertEqual(self.said(script, CUDA_VISIBLE_DEVICES=""), "None None clock")

    def test_what_the_library_says_is_raised(self):
        for answer, kind in (({"error": "held", "busy": True}, moegate.TimerBusy), ({"error": "held"}, RuntimeError)):
            with unittest.mock.patch.object(_bench.Session, "ask", return_value={"busy": False, **answer}):
                with self.assertRaisesRegex(kind, "^held$"):
                    moegate.watch()

    @unittest.skipUnless(importlib.util.find_spec("torch"), "this Python has no torch")
    def test_the_code_of_a_graph_is_known(self):
        script = (
            "import torch, moegate\n"
            "if torch.cuda.is_available():\n"
            "    {}\n"
            "    x = torch.ones(4096, device='cuda')\n"
            "    timed = lambda: moegate.bench(torch.neg, x, launch='graph', timer='cupti', budget_s=0.1)\n"
            "    print('codes', timed().code, timed().code)\n"
        )
        watched = self.said(script.format("moegate.watch()")).split()
        if not watched:
            self.skipTest("torch sees no GPU")
        # Two codes, which differ: what neg() returns lies elsewhere each time, and arguments count.
        self.assertEqual(len(watched), 3, watched)
        self.assertEqual(self.said(script.format("pass")), "codes", "the control: loaded before, and so unknown")


class Library(unittest.TestCase):
    def test_only_four_names_are_shown(self):
        command = ["nm", "-D", "--defined-only", _bench.library()._name]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        found = [line.split()[-1] for line in printed.splitlines()]
        self.assertEqual(sorted(found), ["moegate_abi", "moegate_ask", "moegate_close", "moegate_open"])

    def test_another_interface_is_an_import_error(self):
        with unittest.mock.patch.object(_bench, "ABI", 7):
            with self.assertRaisesRegex(ImportError, "has interface 1, and this package needs 7"):
                _bench._open_library(_bench.library()._name)

    def test_a_question_that_is_none_is_answered(self):
        session = _bench.Session({"device": "host"})
        self.assertIn("ask for bench", session.ask("sing", {})["error"])
        self.assertIn("error", session.ask("bench", {}))
        session.close()
        with self.assertRaises(RuntimeError):
            _bench.Session("[")


class Streams(unittest.TestCase):
    """A stub of torch says which stream is current, and what becomes current."""

    def torch(self, current):
        entered = []
        cuda = types.SimpleNamespace(
            is_available=lambda: True,
            current_device=lambda: 3,
            current_stream=lambda: types.SimpleNamespace(cuda_stream=current),
            device=lambda index: contextlib.nullcontext(entered.append(("device", index))),
            stream=lambda stream: contextlib.nullcontext(entered.append(("stream", stream))),
            ExternalStream=lambda handle: handle,
            Stream=lambda: types.SimpleNamespace(cuda_stream=77, wait_stream=lambda other: entered.append("waited")),
        )
        return types.SimpleNamespace(cuda=cuda), entered

    def enter(self, current, stream, launch):
        torch, entered = self.torch(current)
        with unittest.mock.patch.dict(sys.modules, torch=torch), contextlib.ExitStack() as stack:
            return _memory.enter_stream(stack, "cuda:3", stream, launch), entered

    def test_the_current_one_is_taken(self):
        self.assertEqual(self.enter(5, None, "stream"), (5, [("device", 3)]))
        self.assertEqual(self.enter(0, None, "stream"), (0, [("device", 3)]))

    def test_another_one_becomes_current(self):
        self.assertEqual(self.enter(5, 9, "stream"), (9, [("device", 3), ("stream", 9)]))
        protocol = types.SimpleNamespace(__cuda_stream__=lambda: (0, 11))
        self.assertEqual(self.enter(5, protocol, "stream")[0], 11)

    def test_a_graph_is_not_captured_of_the_default_stream(self):
        handle, entered = self.enter(0, None, "graph")
        self.assertEqual((handle, entered), (77, [("device", 3), "waited", ("stream", 77)]))

    def test_without_tensors_torch_says_where(self):
        torch, _ = self.torch(0)
        self.assertEqual(_memory.device_of([], None), "host")
        with unittest.mock.patch.dict(sys.modules, torch=torch):
            self.assertEqual(_memory.device_of([], None), "cuda:3")
            self.assertEqual(_memory.device_of([np.ones(1)], None), "host")


if __name__ == "__main__":
    warnings.simplefilter("ignore", RuntimeWarning)
    needs.run()
