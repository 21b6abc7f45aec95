# SPDX-License-Identifier: Apache-2.0
"""The parts of python/moegate that need no worker: conversions, parameters, DLPack."""

import contextlib
import ctypes
import inspect
import json
import os
import pathlib
import sys
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

import moegate  # noqa: E402
import numpy as np  # noqa: E402
from moegate import _bridge, _choices, _dlpack, _kernels, _problems, _versions  # noqa: E402


class Contract(unittest.TestCase):
    """CONTRACTS.md says how these may change."""

    def test_these_names_are_offered(self):
        names = "Choice Cost Input Operator Output Param TimerBusy Timing Tolerance Wrong bench best_configurations decode "\
            "e4m3_normal encode int4_normal results uniform variant watch"
        self.assertEqual(moegate.__all__, names.split())

    def test_a_variant_states_these(self):
        stated = "(op, name, *, backend='cuda', help='', prepare=None, unsupported=None, workspace=None, "\
            "tolerance=1.0, between=0.0, knobs=None, choose=None, requires=None, rows='', allocates=False)"
        self.assertEqual(str(inspect.signature(moegate.variant)), stated)

    def test_an_operator_states_and_overrides_these(self):
        names = "name help parameters yardstick before validate tensors truth cost corruptions"
        self.assertEqual([name for name in vars(moegate.Operator) if not name.startswith("_")], names.split())


class Formats(unittest.TestCase):
    def test_every_code_of_fp8_survives(self):
        codes = np.arange(256, dtype=np.uint8)
        values = moegate.decode(codes, "fp8")
        self.assertTrue(np.isnan(values[[0x7F, 0xFF]]).all())
        known = np.delete(codes, [0x7F, 0xFF])
        np.testing.assert_array_equal(moegate.encode(moegate.decode(known, "fp8"), "fp8"), known)
        self.assertEqual(values[0x7E], 448)
        self.assertEqual(values[1], 2.0**-9)

    def test_fp8_rounds_to_even_and_saturates(self):
        between = np.array([1.0625, 1.1875, 2.0**-10, 3 * 2.0**-10, 1000, -1000, 15.5], np.float32)
        rounded = moegate.decode(moegate.encode(between, "fp8"), "fp8")
        np.testing.assert_array_equal(rounded, [1, 1.25, 0, 2.0**-8, 448, -448, 16])
        self.assertEqual(moegate.encode(np.array([np.nan], np.float32), "fp8")[0], 0x7F)

    def test_bf16_rounds_to_even(self):
        bits = np.array([0x3F800000, 0x3F808000, 0x3F818000, 0x7FC00001], np.uint32)
        codes = moegate.encode(bits.view(np.float32), "bf16")
        np.testing.assert_array_equal(codes, [0x3F80, 0x3F80, 0x3F82, 0x7FC0])

    def test_shapes_stay(self):
        for dtype in ("fp32", "fp16", "bf16", "fp8", "int32", "uint8", "int8"):
            elements = moegate.encode(np.ones((2, 3)), dtype)
            self.assertEqual(elements.shape, (2, 3), dtype)
            np.testing.assert_array_equal(moegate.decode(elements, dtype), np.ones((2, 3)))


class Parameters(unittest.TestCase):
    def test_texts_become_what_they_are(self):
        case = _problems.Case({"tokens": "8", "eps": "1e-6", "scoring": "softmax", "topk-groups": "4"})
        self.assertEqual((case.tokens, case.eps, case.scoring, case.topk_groups), (8, 1e-6, "softmax", 4))

    def test_a_backend_that_there_is_not(self):
        with self.assertRaisesRegex(ValueError, "'tpu' is not 'cuda' or 'host'"):
            moegate.variant("moe_sum", "v", backend="tpu")


class Choices(unittest.TestCase):
    def test_a_configuration_is_a_text_and_back(self):
        config = {"WARPS": 4, "BLOCK": 64, "TMA": True, "SPLIT": None, "KIND": "ping", "SHARE": 0.5}
        text = _choices.text_of(config)
        self.assertEqual(text, "BLOCK=64,KIND=ping,SHARE=0.5,SPLIT=None,TMA=True,WARPS=4")
        self.assertEqual(_choices.config_of(text), config)

    def test_what_a_text_loses_is_refused(self):
        for config in ({}, {"A": "8"}, {"A": "x,y"}, {"A": (1, 2)}):
            with self.assertRaisesRegex(ValueError, "use names and numbers"):
                _choices.text_of(config)

    def test_knobs_are_all_combinations_or_a_function(self):
        listed = _stated(knobs={"A": [1, 2], "B": [3]}, choose=lambda case, device: {"A": 1, "B": 3})
        self.assertEqual(_choices.candidates(listed, None, None), ["A=1,B=3", "A=2,B=3"])
        yields = _stated(knobs=lambda case, device: [{"A": case}, {"A": case}], choose=len)
        self.assertEqual(_choices.candidates(yields, 7, None), ["A=7"])
        self.assertEqual(_choices.listed(yields), [])

    def test_a_choice_says_where_it_stands(self):
        choice = moegate.Choice({"A": 1}, "file", file="/x/E=256.json", entry=64, made_with={"python": "1.0"})
        told = _choices.told(choice, _problems.Case({"tokens": "80"}))
        self.assertEqual(told["path"], "file E=256:64 for 80 tokens, made with python 1.0: A=1")
        self.assertIn("made with python 1.0, here 3.", told["stale"])
        absent = moegate.Choice({"A": 1}, made_with={"no-such-package": "2"})
        self.assertIn("here not installed", _choices.told(absent, _problems.Case({}))["stale"])

    def test_what_cannot_be_is_refused(self):
        with self.assertRaisesRegex(ValueError, "knobs without choose"):
            moegate.variant("moe_sum", "v", knobs={"A": [1]})
        with self.assertRaisesRegex(ValueError, "'guess' is not 'file'"):
            moegate.Choice({"A": 1}, "guess")
        with self.assertRaisesRegex(TypeError, "returned 8; return a moegate.Choice"):
            _choices.chosen(_stated(choose=lambda case, device: 8), None, None)


class Requirements(unittest.TestCase):
    def unmet(self, wanted, version="0.11.0rc1+cu128"):
        with mock.patch("importlib.metadata.version", return_value=version):
            return _versions.unmet({"vllm": wanted})

    def test_numbers_are_compared_as_numbers(self):
        for wanted in ("", ">=0.11", "<=0.11", "==0.11", ">0.9", "<0.11.1", "!=0.12", ">= 0.9, <1", "==0.11.0.0"):
            self.assertEqual(self.unmet(wanted), "", wanted)
        for wanted in (">=0.11.1", ">0.11", "<0.11", "!=0.11", "==0.1", ">=0.9,<0.10", ">=2"):
            self.assertEqual(self.unmet(wanted), f"needs vllm {wanted}, here 0.11.0rc1+cu128")
        self.assertEqual(self.unmet("<1", "unknown"), "")
        self.assertEqual(self.unmet(">=0.1", "unknown"), "needs vllm >=0.1, here unknown")

    def test_all_that_is_missing_is_named(self):
        wanted = {"python": ">=3.8", "no-such-package": ">=1", "nor-this": ""}
        self.assertEqual(
            _versions.unmet(wanted), "needs no-such-package >=1, here not installed; needs nor-this, here not installed")
        self.assertIn("needs python <3, here 3.", _versions.unmet({"python": "<3"}))

    def test_other_conditions_are_refused_installed_or_not(self):
        for wanted in ("~=1.0", ">=1.0rc1", "1.0", "==0.11.*", "=>1", ">=1;<2"):
            with self.assertRaisesRegex(ValueError, "^requires no-such-package '.*': use >=, <=, ==, "):
                _stated(requires={"no-such-package": wanted})

    def test_a_variant_is_asked_nothing_without_them(self):
        asked = {"params": {}, "device": None}
        lookup = mock.Mock(side_effect=ImportError)
        absent = _stated(requires={"no-such-package": ""}, choose=lookup, unsupported=lookup, help="its idea")
        self.assertEqual(absent.help, "unsupported, needs no-such-package, here not installed: its idea")
        self.assertIn("unsupported", _bridge.Host._stated(absent, "f")["has"])
        side = _bridge.VariantSide(None, absent)
        self.assertEqual(side.unsupported(0, None, asked), "needs no-such-package, here not installed")
        lookup.assert_not_called()
        there = _stated(requires={"python": ">=3"}, help="its idea")
        self.assertEqual((there.help, _bridge.Host._stated(there, "f")["has"]), ("its idea", []))


def _stated(**stated):
    """The variant that these keywords state."""
    moegate.variant("moe_sum", "v", **stated)(lambda p: None)
    return _kernels.VARIANTS.pop()


class Pool:
    """torch.cuda.MemPool, in which each launch that allocates takes a new segment."""

    def __init__(self):
        self.id = (0, len(Torch.pools) + 1)
        Torch.pools.append(self)


class Torch:
    """What the bridge needs of torch.cuda. The segments of the allocator, and the pool at work."""

    def __init__(self):
        Torch.pools, self.segments, self.entered = [], [], []
        self.MemPool = Pool
        self.ExternalStream = self.stream = lambda stream: contextlib.nullcontext()

    @contextlib.contextmanager
    def use_mem_pool(self, pool):
        self.entered.append(pool)
        yield
        self.entered.pop()

    def allocate(self, address, kept=0):
        pool = self.entered[-1].id if self.entered else (0, 0)
        self.segments.append(
            {"address": address, "total_size": 2048, "allocated_size": kept, "segment_pool_id": pool})

    def memory_snapshot(self):
        return self.segments


class Pools(unittest.TestCase):
    def setUp(self):
        self.torch = Torch()
        patch = mock.patch.dict(sys.modules, torch=mock.Mock(cuda=self.torch))
        patch.start()
        self.addCleanup(patch.stop)
        self.kept = 0
        self.next = 0x1000

    def allocate(self, problem):
        self.torch.allocate(self.next, self.kept)
        self.next += 0x1000

    def side(self, **stated):
        variant = _stated(prepare=self.allocate, **stated)
        variant.launch = self.allocate
        side = _bridge.VariantSide(None, variant)
        for handle, tokens in ((1, "8"), (2, "8"), (3, "16")):
            params = {"tokens": tokens, "seed": str(handle)}
            side.problems[handle] = mock.Mock(params=params, spec=["params"])
        return side

    def test_launches_allocate_in_the_cases_own_pool_and_prepare_does_not(self):
        side = self.side(allocates=True)
        self.assertIn("segments", _bridge.Host._stated(side.variant, "f")["has"])
        side.prepare(1, 7, None)
        self.assertEqual(side.segments(0, None, None), [])
        side.launch(1, 7, None)
        side.launch(2, 7, None)  # another seed
        self.assertEqual(side.segments(0, None, None), [[0x2000, 2048, 0], [0x3000, 2048, 0]])
        side.launch(3, 7, None)
        self.assertEqual(side.segments(0, None, None), [[0x4000, 2048, 0]])

    def test_a_pool_in_which_something_lasts_outlives_its_case(self):
        side = self.side(allocates=True)
        self.kept = 512
        side.launch(1, 7, None)
        self.kept = 0
        side.launch(3, 7, None)
        self.assertEqual(side.segments(0, None, None), [[0x1000, 2048, 512], [0x2000, 2048, 0]])

    def test_a_variant_that_does_not_say_that_it_allocates_has_none(self):
        side = self.side()
        self.assertEqual(_bridge.Host._stated(side.variant, "f")["has"], ["prepare"])
        side.launch(1, 7, None)
        self.assertEqual((self.torch.pools, side.segments(0, None, None)), ([], []))


class Exchange(unittest.TestCase):
    def test_a_capsule_describes_the_tensor_and_can_be_given_back(self):
        tensor = _problems.DeviceTensor(0x7000, "bf16", (4, 8), ordinal=1, stream=0)
        self.assertEqual(tensor.__dlpack_device__(), (2, 1))
        capsule = tensor.__dlpack__()
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        managed = _dlpack._Managed.from_address(get(capsule, b"dltensor"))
        held = managed.tensor
        self.assertEqual((held.data, held.device.id, held.ndim), (0x7000, 1, 2))
        self.assertEqual((held.dtype.code, held.dtype.bits, held.dtype.lanes), (4, 16, 1))
        self.assertEqual([held.shape[0], held.shape[1]], [4, 8])
        self.assertEqual(len(_dlpack._alive), 1)
        managed.deleter(ctypes.pointer(managed))
        self.assertEqual(len(_dlpack._alive), 0)

    def test_an_array_interface_has_the_bits_of_what_numpy_lacks(self):
        tensor = _problems.DeviceTensor(0x7000, "fp8", (3,), ordinal=0, stream=5)
        interface = tensor.__cuda_array_interface__
        self.assertEqual((interface["typestr"], interface["data"]), ("|u1", (0x7000, False)))
        self.assertEqual((tensor.nbytes, interface["stream"]), (3, 5))

    def test_numpy_sees_the_memory_itself(self):
        memory = np.arange(6, dtype=np.float32)
        view = _problems.host_array(memory.ctypes.data, "fp32", (2, 3))
        view[1, 2] = 7
        self.assertEqual(memory[5], 7)


class Messages(unittest.TestCase):
    def test_a_tensor_that_is_replaced_was_not_written(self):
        memory = np.zeros(2, dtype=np.float32)
        tensor = {"name": "out", "role": "output", "dtype": "fp32", "shape": [2], "data": memory.ctypes.data}
        stated = {"backend": "host", "stream": 0, "params": {}, "tensors": [tensor]}
        problem = _problems.Problem(None, 1, stated)
        with self.assertRaisesRegex(AttributeError, r"p.out\[...\] = values; nothing was written"):
            problem.out = np.ones(2, dtype=np.float32)
        problem.out += 3
        problem.compiled = "a variant's own"
        self.assertEqual((memory[0], problem.compiled), (3, "a variant's own"))

    def test_a_torch_error_is_its_first_line(self):
        torch_error = RuntimeError(
            "CUDA error: operation not permitted when stream is capturing\n"
            "CUDA kernel errors might be asynchronously reported at some other API call.\n"
            "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"
        )
        self.assertEqual(
            _bridge._one_line(torch_error),
            "RuntimeError: CUDA error: operation not permitted when stream is capturing",
        )

    def test_the_line_of_the_kernel_that_an_error_came_through_is_named(self):
        def launch():
            json.loads("{")  # stands for x.item()

        try:
            launch()
        except ValueError as error:
            here = {os.path.realpath(__file__)}
            self.assertRegex(_bridge._place(error, here), r"^ \(moegate_test.py:\d+: json.loads\(.*item\(\)\)$")
            self.assertEqual(_bridge._place(error, {"/elsewhere.py"}), "")

    def test_a_compilers_error_is_its_place_and_its_last_line(self):
        compiler = RuntimeError("at 3:4:\n    x = tl.load(y)\n    ^\nNameError('y is not defined')")
        self.assertEqual(_bridge._one_line(compiler), "RuntimeError: at 3:4: NameError('y is not defined')")
        try:
            compile("x = = 1", "kernels.py", "exec")
        except SyntaxError as error:
            self.assertEqual(_bridge._one_line(error), "SyntaxError: invalid syntax")

    def test_a_format_that_there_is_not_names_tensor_and_file(self):
        class Operator:
            name = "narrow"

            def tensors(self, case):
                return [moegate.Input("x", "e5m2", (4,), None)]

        side = _bridge.OperatorSide(None, Operator())
        with self.assertRaisesRegex(
            ValueError, "moegate_test.py: tensor x of narrow has dtype 'e5m2'; use fp32, .* states values="
        ):
            [side._tensor(t) for t in Operator().tensors(None)]


if __name__ == "__main__":
    unittest.main()
