# SPDX-License-Identifier: Apache-2.0
"""moegate.testing on the host device: the originals' names, parameters, units and return types."""

import inspect
import math
import os
import pathlib
import subprocess
import sys
import time
import types
import unittest
import unittest.mock
import warnings

import needs

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

import moegate.testing  # noqa: E402
import numpy as np  # noqa: E402

# Recorded from triton main and flashinfer main, 2026-09.
_TRITON = "(fn, warmup=25, rep=100, grad_to_none=None, quantiles=None, return_mode='mean')"
_GRAPH = "(fn, rep=20, grad_to_none=None, quantiles=None, return_mode='mean')"
_BEGIN = "(fn, dry_run_iters=None, repeat_iters=None, dry_run_time_ms=25, repeat_time_ms=100, "
_FLUSH = "l2_flush=None, l2_flush_size_mb=None, l2_flush_device=None, sleep_after_run=False, "
_END = "input_args=(), input_kwargs=None, cold_l2_cache=True, aggregate_op=max)".replace("=max", f"={max!r}")
SIGNATURES = {
    "do_bench": _TRITON,
    "do_bench_proton": _TRITON,
    "do_bench_cudagraph": _GRAPH,
    "do_bench_cudagraph_proton": _GRAPH,
    "bench_gpu_time": _BEGIN
    + _FLUSH
    + "enable_cupti=False, use_cuda_graph=False, num_iters_within_graph=10, "
    + _END,
    "bench_gpu_time_with_cupti": _BEGIN + _FLUSH + "use_cuda_graph=False, " + _END,
    "bench_gpu_time_with_cudagraph": _BEGIN + "num_iters_within_graph=10, " + _FLUSH + _END,
    "bench_gpu_time_with_cuda_event": _BEGIN + _FLUSH + _END,
}


def measured(*samples_us):
    """In the place of bench(): what it was asked for, and these samples."""
    timing = types.SimpleNamespace(samples_us=list(samples_us))
    return unittest.mock.patch.object(moegate.testing, "bench", return_value=timing)


def installed(package):
    try:
        return __import__(package, fromlist=["testing"])
    except ImportError:
        return None


class DropIns(unittest.TestCase):
    def test_parameters_are_those_of_the_originals(self):
        for name, signature in SIGNATURES.items():
            self.assertEqual(str(inspect.signature(getattr(moegate.testing, name))), signature, name)
        for package in ("triton.testing", "flashinfer.testing"):
            for name in SIGNATURES:
                original = getattr(installed(package), name, None)
                if original is not None:
                    theirs = list(inspect.signature(original).parameters)
                    self.assertEqual(list(inspect.signature(getattr(moegate.testing, name)).parameters), theirs)

    def test_times_are_milliseconds_of_the_asked_kind(self):
        with measured(1000.0, 3000.0, 8000.0):
            self.assertEqual(moegate.testing.do_bench(None), 4.0)
            self.assertEqual(moegate.testing.do_bench_proton(None, return_mode="median"), 3.0)
            self.assertEqual(moegate.testing.do_bench_cudagraph(None, return_mode="min"), 1.0)
            self.assertEqual(moegate.testing.do_bench_cudagraph_proton(None, return_mode="max"), 8.0)
            self.assertEqual(moegate.testing.do_bench(None, return_mode="all"), [1.0, 3.0, 8.0])
            self.assertEqual(moegate.testing.do_bench(None, quantiles=[0.5, 0.25]), [3.0, 2.0])
            self.assertEqual(moegate.testing.do_bench(None, quantiles=[0.5]), 3.0)
            for name in SIGNATURES:
                if name.startswith("bench_gpu_time"):
                    self.assertEqual(getattr(moegate.testing, name)(None), [1.0, 3.0, 8.0], name)

    def test_an_unknown_mode_or_share_is_a_value_error(self):
        for wrong in ({"return_mode": "mode"}, {"quantiles": [1.5]}):
            with measured(1000.0), self.assertRaises(ValueError):
                moegate.testing.do_bench(None, **wrong)

    def test_a_millisecond_is_one(self):
        self.assertTrue(2 <= moegate.testing.do_bench(lambda: time.sleep(2e-3), 1, 30, return_mode="min") < 20)
        self.assertTrue(2 <= min(moegate.testing.bench_gpu_time(time.sleep, repeat_iters=30, input_args=(2e-3,))) < 20)

    def test_without_times_they_are_no_numbers(self):
        with unittest.mock.patch.dict(os.environ, MOEGATE_BENCH="off"):
            self.assertTrue(math.isnan(moegate.testing.do_bench(lambda: None)))
            self.assertTrue(math.isnan(moegate.testing.bench_gpu_time(lambda: None)[0]))

    def test_each_asks_for_its_own_launch_and_cache(self):
        def asked(name, **given):
            with measured(1.0) as bench:
                getattr(moegate.testing, name)(None, **given)
            return bench.call_args.kwargs["launch"], bench.call_args.kwargs["cache"]

        self.assertEqual(asked("do_bench"), ("stream", "cold"))
        self.assertEqual(asked("do_bench_cudagraph"), ("graph", "cold"))
        self.assertEqual(asked("bench_gpu_time", use_cuda_graph=True), ("graph", "cold"))
        self.assertEqual(asked("bench_gpu_time_with_cudagraph"), ("graph", "cold"))
        self.assertEqual(asked("bench_gpu_time_with_cuda_event", cold_l2_cache=False), ("stream", "warm"))
        with moegate.testing.warm():
            self.assertEqual(asked("do_bench_cudagraph"), ("graph", "warm"))
        self.assertEqual(asked("do_bench_cudagraph"), ("graph", "cold"))

    def test_several_ranks_are_not_implemented(self):
        distributed = types.SimpleNamespace(
            is_available=lambda: True, is_initialized=lambda: True, get_world_size=lambda: 2
        )
        with unittest.mock.patch.dict(sys.modules, torch=types.SimpleNamespace(distributed=distributed)):
            with self.assertRaisesRegex(NotImplementedError, "aggregate_op"):
                moegate.testing.bench_gpu_time(None)

    def test_a_script_runs_after_one_changed_import(self):
        here = pathlib.Path(__file__).resolve()
        environment = {**os.environ, "PYTHONPATH": str(here.parents[2] / "python")}
        command = [sys.executable, "-B", here.with_name("do_bench_script.py")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"^256( \d+\.\d+){3} \d+\n1024( \d+\.\d+){3} \d+\n$")

    def test_gradients_are_reset(self):
        tensor = types.SimpleNamespace(grad=1)
        moegate.testing.do_bench(lambda: self.assertIsNone(tensor.grad), 1, 5, grad_to_none=[tensor])

    def test_bench_gpu_time_launches_as_often_as_asked(self):
        """Whatever the time; what another process disturbed is no sample."""
        launches = []
        with measured(1.0) as bench:
            moegate.testing.bench_gpu_time(None, repeat_iters=300, repeat_time_ms=1)
        limits = bench.call_args.kwargs
        self.assertEqual((limits["min_samples"], limits["max_samples"]), (300, 300))
        self.assertGreater(limits["budget_s"], 1)
        times = moegate.testing.bench_gpu_time(launches.append, repeat_iters=300, repeat_time_ms=1, input_args=(1,))
        self.assertTrue(0 < len(times) <= 300)
        self.assertGreaterEqual(len(launches), 300)

    def test_what_cannot_be_honoured_is_a_type_error(self):
        with self.assertRaisesRegex(TypeError, "l2_flush_size_mb"):
            moegate.testing.bench_gpu_time(lambda: None, l2_flush_size_mb=256)
        with self.assertWarnsRegex(DeprecationWarning, "use cold_l2_cache"):
            moegate.testing.bench_gpu_time(lambda: None, None, 5, 1, 1, l2_flush=False)

    def test_install_replaces_what_is_imported(self):
        def original():
            """Triton's."""

        triton = types.ModuleType("triton.testing")
        triton.do_bench = original
        script = types.ModuleType("a_script")
        script.bench_it = script.other = original
        script.unlike = max
        with unittest.mock.patch.dict(sys.modules, {"triton.testing": triton, "a_script": script}):
            replaced = moegate.testing.install()
        self.assertEqual(sorted(replaced), ["a_script.bench_it", "a_script.other", "triton.testing.do_bench"])
        self.assertIs(script.bench_it, moegate.testing.do_bench)
        self.assertIs(script.unlike, max)


if __name__ == "__main__":
    warnings.simplefilter("ignore", RuntimeWarning)
    needs.run()
