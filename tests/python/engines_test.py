# SPDX-License-Identifier: Apache-2.0
"""The adapters of examples/engines against stub packages: operands arrive where the engine looks for them."""

import contextlib
import inspect
import types
import unittest
from unittest import mock

import numpy as np
from engine_stubs import TORCH, OnDevice, Routed, imported, module, pad
from moegate._kernels import VARIANTS

MODULE = "vllm.model_executor.layers.fused_moe.fused_moe"


def multiply(A, B, C, A_scale, B_scale, topk_weights, sorted_token_ids, expert_ids, num_tokens_post_padded,
             mul_routed_weight, top_k, config, compute_type, use_fp8_w8a8, use_int8_w8a8, use_int8_w8a16,
             use_int4_w4a16, per_channel_quant, block_shape=None, B_bias=None):
    """What vLLM's kernel computes, block by block, with its own view of the operands."""
    multiply.config = config
    rows = A.shape[0] * top_k
    out = C.reshape(rows, -1)
    block = config["BLOCK_SIZE_M"]
    for row in range(int(num_tokens_post_padded[0])):
        if sorted_token_ids is None:  # each block's first row is the block's number
            at = rows if row % block else row // block
        else:
            at = sorted_token_ids[row]
        if at >= rows:
            continue
        expert = expert_ids[row // block]
        a = A[at // top_k] * np.repeat(A_scale[at // top_k], block_shape[1])
        scales = np.repeat(np.repeat(B_scale[expert], block_shape[0], 0), block_shape[1], 1)
        out[at] = (B[expert] * scales[: B.shape[1]]) @ a
        if mul_routed_weight:
            out[at] *= topk_weights.reshape(-1)[at]


def also_taking(name):
    """multiply() with one more parameter."""

    def kernel(**given):
        given.pop(name)
        multiply(**given)

    one = inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    kernel.__signature__ = inspect.Signature([one, *inspect.signature(multiply).parameters.values()])
    return kernel


FILE = {1: {"BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 64, "GROUP_SIZE_M": 1, "num_warps": 4, "num_stages": 3},
        8: {"BLOCK_SIZE_M": 16, "BLOCK_SIZE_N": 128, "GROUP_SIZE_M": 16, "num_warps": 4, "num_stages": 5}}


def look_up(w1_shape, w2_shape, top_k, dtype, M, block_shape=None):
    look_up.asked = (w1_shape, w2_shape, top_k, dtype, M)
    return FILE[8 if M > 4 else 1]


LOOKUP = {
    "try_get_optimal_moe_config": look_up,
    "get_moe_configs": lambda E, N, dtype, block_n=None, block_k=None: FILE if (E, N, block_n) == (4, 128, 128) else None,
    "get_config_file_name": lambda E, N, dtype, block_shape=None: f"{E=},{N=},{dtype=},{block_shape=}.json",
}


def assign(topk_ids, config, num_tokens, top_k_num, global_num_experts, expert_map, *, block_shape=None):
    """What vLLM passes on in place of moe_align, at few tokens."""
    assert expert_map is None
    if num_tokens * top_k_num * 4 > global_num_experts:
        return "sorted", "experts", "padded"
    return None, topk_ids.reshape(-1), np.array([topk_ids.size * config["BLOCK_SIZE_M"]])


def adapter(kernel, name="invoke_fused_moe_triton_kernel", installed=True, **more):
    """examples/engines/vllm_moe.py, imported where a vLLM with this kernel is installed, or none."""
    modules = [
        module("torch"),
        module("triton.language", bfloat16="bf16"),
        module(MODULE, **{name: kernel}, **LOOKUP, **more),
    ]
    return imported("vllm_moe", modules, "vllm", "0.11" if installed else None)


class Vllm(unittest.TestCase):
    TOKENS, TOPK, EXPERTS, BLOCK, N, K = 5, 2, 4, 4, 256, 384

    def problem(self, vllm, op, weighted=1):
        rows_of_x = self.TOKENS * (1 if op == "gate_up" else self.TOPK)
        random = np.random.default_rng(1)
        routed = Routed(random, self.TOKENS, self.TOPK, self.EXPERTS, self.BLOCK)
        rows, self.experts = routed.rows, routed.expert
        p = types.SimpleNamespace(
            tokens=self.TOKENS, topk=self.TOPK, experts=self.EXPERTS, weighted=weighted, rank="0/1",
            config={"BLOCK_SIZE_M": 64, "num_warps": 8},
            x=random.normal(size=(rows_of_x, self.K)), x_scales=random.uniform(size=(rows_of_x, self.K // 128)),
            weights=random.normal(size=(self.EXPERTS, self.N, self.K)),
            weight_scales=random.uniform(size=(self.EXPERTS, self.N // 128, self.K // 128)),
            routing_weights=random.uniform(size=rows), out=np.zeros((rows, self.N)),
            sorted_token_ids=routed.sorted, expert_ids=routed.blocks, num_tokens_post_padded=np.array([routed.padded]),
            topk_ids=np.zeros((self.TOKENS, self.TOPK), int), packed=lambda name, shape, dtype: np.zeros(shape, dtype))
        if not weighted:
            del p.routing_weights
        vllm.arrange(p)
        p.topk_ids[:] = routed.expert.reshape(self.TOKENS, self.TOPK)  # other ones than prepare() saw
        getattr(vllm, op)(p)
        return p

    def truth(self, p, share, weighted):
        rows = []
        for row, expert in enumerate(self.experts):
            x = p.x[row // share].reshape(-1, 128) * p.x_scales[row // share][:, None]
            w = p.weights[expert].reshape(self.N // 128, 128, self.K // 128, 128)
            w = w * p.weight_scales[expert][:, None, :, None]
            rows.append(np.einsum("akcd,cd->ak", w, x).reshape(-1) * (p.routing_weights[row] if weighted else 1))
        return np.array(rows)

    def test_both_products_get_their_operands(self):
        vllm = adapter(multiply)
        self.assertIsNone(vllm.unsupported(types.SimpleNamespace(dtype="fp8", scaling="block"), None))
        p = self.problem(vllm, "gate_up")
        np.testing.assert_allclose(p.out, self.truth(p, self.TOPK, weighted=False))
        self.assertEqual(multiply.config, {"num_warps": 8, "BLOCK_SIZE_M": self.BLOCK})
        p = self.problem(vllm, "down")
        np.testing.assert_allclose(p.out, self.truth(p, 1, weighted=True))
        p = self.problem(vllm, "down", weighted=0)
        np.testing.assert_allclose(p.out, self.truth(p, 1, weighted=False))

    def test_few_tokens_have_a_block_for_each_row(self):
        given = []

        def kernel(**operands):
            given.append((operands["sorted_token_ids"] is None, operands["config"]["BLOCK_SIZE_M"]))
            multiply(**operands)

        kernel.__signature__ = inspect.signature(multiply)
        vllm = adapter(kernel, _prepare_expert_assignment=assign)
        for experts in (39, 40):
            with mock.patch.object(self, "EXPERTS", experts):
                p = self.problem(vllm, "gate_up")
                np.testing.assert_allclose(p.out, self.truth(p, self.TOPK, weighted=False))
                p = self.problem(vllm, "down")
                np.testing.assert_allclose(p.out, self.truth(p, 1, weighted=True))
        self.assertEqual(given, [(False, self.BLOCK)] * 2 + [(True, 64)] * 2)
        vllm = adapter(multiply, _prepare_expert_assignment=lambda ids, config: None)
        self.assertEqual(vllm.ASSIGN.why, "vllm 0.11: _prepare_expert_assignment has no parameter 'topk_ids'")
        with mock.patch.object(self, "EXPERTS", 40):
            p = self.problem(vllm, "gate_up")
        self.assertIsNone(p.blocks)
        np.testing.assert_allclose(p.out, self.truth(p, self.TOPK, weighted=False))

    def test_a_choice_is_what_vllm_looks_up(self):
        vllm = adapter(multiply)
        case = types.SimpleNamespace(tokens=5, topk=2, experts=8, rank="1/2", hidden=384, inter=128, block="shipped")
        choice = vllm.shipped(case, None)
        self.assertEqual(look_up.asked, ((4, 256, 384), (4, 384, 128), 2, "fp8_w8a8", 5))
        self.assertEqual((choice.config, choice.source, choice.entry), (FILE[8], "file", 8))
        self.assertEqual(choice.file, "E=4,N=128,dtype='fp8_w8a8',block_shape=[128, 128].json")
        others = [set(one.items()) - set(FILE[8].items()) for one in vllm.neighbours(case, None)]
        self.assertEqual({len(one) for one in others}, {0, 1})
        self.assertIn({("BLOCK_SIZE_M", 64)}, others)
        case.block = 16
        self.assertNotIn({("BLOCK_SIZE_M", 64)}, [set(one.items()) - set(FILE[8].items())
                                                  for one in vllm.neighbours(case, None)])
        case.inter = 256
        self.assertEqual(vllm.shipped(case, None).source, "default")
        self.assertEqual(adapter(lambda A, B: None).shipped(case, None).config, {"BLOCK_SIZE_M": 16})

    def test_the_older_kernel_has_zero_points(self):
        vllm = adapter(also_taking("B_zp"), "invoke_fused_moe_kernel")
        p = self.problem(vllm, "gate_up")
        np.testing.assert_allclose(p.out, self.truth(p, self.TOPK, weighted=False))

    def test_what_is_missing_or_other_is_unsupported(self):
        case = types.SimpleNamespace(dtype="fp8", scaling="block")
        adapter(multiply, installed=False)
        self.assertEqual({one.unmet for one in VARIANTS[-3:]}, {"needs vllm, here not installed"})
        adapter(multiply)
        self.assertEqual({one.unmet for one in VARIANTS[-3:]}, {""})
        why = adapter(lambda A, B: None).unsupported(case, None)
        self.assertEqual(why, "vllm 0.11: invoke_fused_moe_triton_kernel has no parameter 'C'")
        why = adapter(multiply, "moved").unsupported(case, None)
        self.assertIn("has no attribute 'invoke_fused_moe_kernel'", why)
        for dtype, scaling in (("bf16", "block"), ("fp8", "channel")):
            why = adapter(multiply).unsupported(types.SimpleNamespace(dtype=dtype, scaling=scaling), None)
            self.assertIn(f"dtype = {dtype}, scaling = {scaling}", why)
        why = adapter(also_taking("plan")).unsupported(case, None)
        self.assertEqual(
            why, "vllm 0.11: invoke_fused_moe_triton_kernel demands 'plan', which this file does not know")


class DeepGemm(unittest.TestCase):
    def test_rows_in_expert_order_get_their_expert_and_their_routing_weight(self):
        random = np.random.default_rng(2)
        routed = Routed(random, tokens=5, topk=2, experts=4, block=8)
        aligned_to = []

        def multiply(a, b, d, grouped_layout):
            (x, x_scales), (weights, weight_scales) = a, b
            for row, expert in enumerate(grouped_layout):
                if expert >= 0:
                    factors = np.kron(weight_scales[expert], np.ones((128, 128)))
                    d[row] = weights[expert] * factors @ (x[row] * np.repeat(x_scales[row], 128))

        deepgemm = imported("deepgemm_moe", [
            module("torch", **TORCH),
            module("deep_gemm", m_grouped_fp8_gemm_nt_contiguous=multiply,
                   set_mk_alignment_for_contiguous_layout=aligned_to.append)], "deep_gemm")
        self.assertIsNone(deepgemm.unsupported(types.SimpleNamespace(dtype="fp8", scaling="block", block=8), None))
        places = len(routed.sorted)
        p = types.SimpleNamespace(
            tokens=5, topk=2, experts=4, x=random.normal(size=(places, 256)), x_scales=random.uniform(size=(places, 2)),
            weights=random.normal(size=(4, 128, 256)), weight_scales=random.uniform(size=(4, 1, 2)),
            routing_weights=random.uniform(size=10), out=np.zeros((places, 128)),
            sorted_token_ids=routed.sorted, expert_ids=routed.blocks, weighted=1)
        deepgemm.gate_up(p)
        unweighted, p.out = p.out, np.zeros((places, 128))
        deepgemm.down(p)
        self.assertEqual(aligned_to, [8, 8])
        for place, row in enumerate(routed.sorted):
            if row >= routed.rows:
                continue
            expert = routed.expert[row]
            x = p.x[place] * np.repeat(p.x_scales[place], 128)
            truth = p.weights[expert] * np.repeat(p.weight_scales[expert], 128, 1) @ x
            np.testing.assert_allclose(unweighted[place], truth)
            np.testing.assert_allclose(p.out[place], truth * p.routing_weights[row])
        p.weighted, p.out = 0, np.zeros((places, 128))
        del p.routing_weights
        deepgemm.down(p)
        np.testing.assert_array_equal(p.out, unweighted)

    def test_masked_rows_stand_with_their_expert(self):
        random = np.random.default_rng(4)
        routed = Routed(random, tokens=5, topk=2, experts=4, block=8)
        told = []

        def multiply(a, b, d, masked_m, expected_m):
            (x, x_scales), (weights, weight_scales) = a, b
            told.append(expected_m)
            for expert, count in enumerate(masked_m):
                w = weights[expert] * np.repeat(weight_scales[expert], 128, 1)
                for row in range(count):
                    d[expert, row] = w @ (x[expert, row] * np.repeat(x_scales[expert, row], 128))

        deepgemm = imported("deepgemm_moe", [
            module("torch", **TORCH), module("deep_gemm", m_grouped_fp8_gemm_nt_masked=multiply)], "deep_gemm")
        case = types.SimpleNamespace(dtype="fp8", scaling="block", block=64)
        self.assertIsNone(deepgemm.masked_unsupported(case, None))
        self.assertIn("m_grouped_gemm_fp8_fp8_bf16_nt_contiguous", deepgemm.unsupported(
            types.SimpleNamespace(dtype="fp8", scaling="block", block=128), None))
        self.assertEqual([(one.name, one.rows) for one in VARIANTS[-2:]], [("deepgemm_masked", "masked")] * 2)
        p = types.SimpleNamespace(
            tokens=5, topk=2, experts=4, weighted=1,
            x=random.normal(size=(4, 16, 256)), x_scales=random.uniform(size=(4, 16, 2)),
            weights=random.normal(size=(4, 128, 256)), weight_scales=random.uniform(size=(4, 1, 2)),
            routing_weights=random.uniform(size=10), out=np.zeros((4, 16, 128)),
            expert_rows=routed.counts.view(OnDevice), rows_by_expert=routed.listed)
        deepgemm.masked_gate_up(p)
        unweighted, p.out = p.out, np.zeros((4, 16, 128))
        deepgemm.masked_down(p)
        weighted, p.weighted, p.out = p.out, 0, np.zeros((4, 16, 128))
        deepgemm.masked_down(p)
        self.assertEqual(told, [3, 3, 3])
        np.testing.assert_array_equal(p.out, unweighted)
        listed = iter(routed.listed)
        for expert, count in enumerate(routed.counts):
            for row in range(count):
                x = p.x[expert, row] * np.repeat(p.x_scales[expert, row], 128)
                truth = p.weights[expert] * np.repeat(p.weight_scales[expert], 128, 1) @ x
                np.testing.assert_allclose(unweighted[expert, row], truth)
                np.testing.assert_allclose(weighted[expert, row], truth * p.routing_weights[next(listed)])

    def test_an_older_one_has_one_alignment(self):
        deepgemm = imported("deepgemm_moe", [
            module("torch"), module("deep_gemm", m_grouped_fp8_gemm_nt_contiguous=min)], "deep_gemm")
        self.assertIsNone(deepgemm.unsupported(types.SimpleNamespace(dtype="fp8", scaling="block", block=128), None))
        why = deepgemm.unsupported(types.SimpleNamespace(dtype="fp8", scaling="block", block=64), None)
        self.assertIn("has no attribute 'set_mk_alignment_for_contiguous_layout'", why)


def multiply_layer(x, w1, w2, weights, ids, w1_scale, w2_scale, up_first=False):
    """What a layer computes with its own view of the operands, but for its roundings."""
    out = np.zeros(x.shape)
    for token, experts in enumerate(ids):
        for place, e in enumerate(experts):
            h = (w1[e] * np.kron(w1_scale[e], np.ones((128, 128)))) @ x[token]
            gate, up = np.split(h, 2)[::-1] if up_first else np.split(h, 2)
            y = (w2[e] * np.kron(w2_scale[e], np.ones((128, 128)))) @ (gate / (1 + np.exp(-gate)) * up)
            out[token] += weights[token, place] * y
    return out


class Layers(unittest.TestCase):
    """Layers that quantise x themselves."""

    E, H, I = 3, 256, 128
    BF16 = types.SimpleNamespace(input="bf16")
    PLACES = ["sglang.srt.layers.moe.moe_runner.triton_utils.fused_moe",
              "sglang.srt.layers.moe.fused_moe_triton.fused_moe"]

    def vllm(self, layer):
        @contextlib.contextmanager
        def set_current_vllm_config(vllm_config):
            self.current = vllm_config
            yield
            self.current = None

        return imported("vllm_moe", [
            module("torch"), module("triton.language", bfloat16="bf16"),
            module(MODULE, invoke_fused_moe_triton_kernel=multiply, fused_experts=layer, **LOOKUP),
            module("vllm.model_executor.layers.fused_moe.config",
                   fp8_w8a8_moe_quant_config=lambda w1_scale, w2_scale, block_shape: (w1_scale, w2_scale, block_shape)),
            module("vllm.config", VllmConfig=lambda: "settings", set_current_vllm_config=set_current_vllm_config)], "vllm")

    def sglang(self, layer, place=PLACES[0]):
        self.arguments = []
        return imported("sglang_moe", [
            module(place, fused_experts=layer),
            module("sglang.srt.layers.moe.moe_runner",
                   MoeRunnerConfig=lambda inplace=True, num_experts=None, num_local_experts=None: types.SimpleNamespace(
                       inplace=inplace, filters=num_experts is None or num_experts != num_local_experts)),
            module("sglang.srt.server_args", ServerArgs=lambda model_path: model_path,
                   set_global_server_args_for_scheduler=self.arguments.append)], "sglang")

    def flashinfer(self, layer, version="0.6"):
        return imported("flashinfer_moe", [
            module("torch", empty_like=np.empty_like), module("flashinfer.fused_moe", cutlass_fused_moe=layer)],
                        "flashinfer-python", version)

    def vllm_layer(self, hidden_states, w1, w2, topk_weights, topk_ids, inplace=True, quant_config=None):
        self.assertEqual((inplace, self.current, quant_config[2]), (False, "settings", [128, 128]))
        return multiply_layer(hidden_states, w1, w2, topk_weights, topk_ids, *quant_config[:2])

    def sglang_layer(self, hidden_states, w1, w2, topk_output, moe_runner_config, b1=None, use_fp8_w8a8=False,
                     w1_scale=None, w2_scale=None, block_shape=None):
        self.assertEqual((moe_runner_config.inplace, moe_runner_config.filters), (False, False))
        self.assertEqual((use_fp8_w8a8, block_shape, self.arguments), (True, [128, 128], ["dummy"]))
        weights, ids, _ = topk_output
        return multiply_layer(hidden_states, w1, w2, weights, ids, w1_scale, w2_scale)

    def flashinfer_layer(self, input, token_selected_experts, token_final_scales, fc1_expert_weights,
                         fc2_expert_weights, output_dtype, quant_scales, output=None,
                         use_deepseek_fp8_block_scale=False, use_fused_finalize=True):
        self.assertEqual((output_dtype, use_deepseek_fp8_block_scale), (output.dtype, True))
        self.finalize = use_fused_finalize
        output[:] = multiply_layer(input, fc1_expert_weights, fc2_expert_weights, token_final_scales,
                                   token_selected_experts, *quant_scales, up_first=True)

    def expect_right(self, engine, launch):
        """On a problem whose numbers are all unlike each other."""
        self.assertIsNone(engine.unsupported(self.BF16, None) if engine.__name__ != "vllm_moe"
                          else engine.layer_unsupported(self.BF16, None))
        random = np.random.default_rng(4)
        p = types.SimpleNamespace(
            tokens=4, topk=2, experts=self.E, x=random.normal(size=(4, self.H)), out=np.zeros((4, self.H)),
            topk_ids=np.array([[0, 1], [2, 0], [1, 2], [0, 2]]), topk_weights=random.uniform(size=(4, 2)),
            w1=random.normal(size=(self.E, 2 * self.I, self.H)) / 16, w2=random.normal(size=(self.E, self.H, self.I)),
            w1_scales=random.uniform(size=(self.E, 2, 2)), w2_scales=random.uniform(size=(self.E, 2, 1)))
        engine.prepare(p)
        launch(p)
        # The definition, by blocks of 128.
        w1 = p.w1.reshape(self.E, 2, 128, 2, 128) * p.w1_scales[:, :, None, :, None]
        w2 = p.w2.reshape(self.E, 2, 128, 1, 128) * p.w2_scales[:, :, None, :, None]
        h = np.einsum("ehnkc,tkc->tehn", w1, p.x.reshape(4, 2, 128))
        a = h[:, :, 0] / (1 + np.exp(-h[:, :, 0])) * h[:, :, 1]
        y = np.einsum("ebnkc,tec->tebn", w2, a).reshape(4, self.E, self.H)
        for t in range(4):
            truth = sum(w * y[t, e] for w, e in zip(p.topk_weights[t], p.topk_ids[t]))
            np.testing.assert_allclose(p.out[t], truth)

    def test_all_get_their_operands(self):
        vllm = self.vllm(self.vllm_layer)
        self.expect_right(vllm, vllm.layer)
        for place in self.PLACES:
            sglang = self.sglang(self.sglang_layer, place)
            self.expect_right(sglang, sglang.layer)
        flashinfer = self.flashinfer(self.flashinfer_layer)
        for launch, fused in ((flashinfer.layer, False), (flashinfer.fused_finalize, True)):
            self.expect_right(flashinfer, launch)
            self.assertEqual(self.finalize, fused)

    def test_what_is_missing_or_other_is_unsupported(self):
        renamed = [
            (self.vllm(lambda hidden, w1: None).layer_unsupported, "vllm 0.11: fused_experts has no parameter 'hidden_states'"),
            (self.sglang(lambda hidden, w1: None).unsupported, "sglang 0.11: fused_experts has no parameter 'hidden_states'"),
            (self.flashinfer(lambda output, w1: None).unsupported,
             "flashinfer-python 0.6: cutlass_fused_moe has no parameter 'input'")]
        for unsupported, why in renamed:
            self.assertEqual(unsupported(self.BF16, None), why)
            self.assertIn("give input = bf16", unsupported(types.SimpleNamespace(input="fp8"), None))
        self.assertIn("no module", self.sglang(self.sglang_layer, "sglang.moved").unsupported(self.BF16, None).lower())
        self.flashinfer(self.flashinfer_layer, None)
        self.assertEqual({one.unmet for one in VARIANTS[-2:]}, {"needs flashinfer-python, here not installed"})


class HpcOps(unittest.TestCase):
    def test_the_layer_gets_padded_factors(self):
        names = """x x_scale gate_up_weight gate_up_weight_scale down_weight down_weight_scale topk_ids topk_scale
        rank_ep num_expert_total shared_output output""".split()
        given = {}

        def layer(**operands):
            given.update(operands)

        layer.__signature__ = inspect.Signature([
            inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD,
                              default=None if "output" in name else inspect.Parameter.empty) for name in names])
        hpc = imported("hpc_ops_moe", [module("torch.nn.functional", pad=pad), module("hpc", fuse_moe_blockwise=layer)],
                       "hpc-ops")
        self.assertIsNone(hpc.unsupported(types.SimpleNamespace(experts=256), None))
        why = hpc.unsupported(types.SimpleNamespace(experts=256, input="bf16"), None)
        self.assertEqual(why, "input = bf16: hpc-ops takes x in fp8; give input = fp8")
        self.assertIn("at most 256", hpc.unsupported(types.SimpleNamespace(experts=512), None))
        self.assertIn("rank = 1/8", hpc.unsupported(types.SimpleNamespace(experts=256, rank="1/8"), None))
        p = types.SimpleNamespace(**dict.fromkeys("x x_scales w1 w2 topk_ids topk_weights out".split()), experts=2,
                                  w1_scales=np.ones((2, 4, 6)), w2_scales=np.ones((2, 6, 2)))
        hpc.prepare(p)
        hpc.layer(p)
        self.assertEqual(given["gate_up_weight_scale"].shape, (2, 4, 8))
        self.assertEqual(given["down_weight_scale"].shape, (2, 6, 4))
        self.assertEqual(given["down_weight_scale"][..., 2:].sum(), 0)

    def test_products_get_factors_by_tiles(self):
        random = np.random.default_rng(5)
        # On average of an expert: 2 rows, tiles of 8; 12, of 16, which are not the blocks.
        for tokens, block, tile in ((5, 16, 8), (24, 8, 16)):
            routed = Routed(random, tokens=tokens, topk=2, experts=4, block=block)

            def multiply(x, weight, seqlens, cu_seqlens, x_scale, w_scale, num_seq_per_group_avg=32, output=None):
                self.assertEqual((num_seq_per_group_avg, w_scale.shape), (tokens // 2, (4, 1, 4)))
                tiles = np.cumsum([0, *-(-seqlens // tile)])
                for expert, (begin, count) in enumerate(zip(cu_seqlens, seqlens)):
                    factors = np.repeat(w_scale[expert, :, :2], 128, 1)
                    for row in range(count):
                        x_factors = np.repeat(x_scale[:, tiles[expert] * tile + row], 128)
                        output[begin + row] = weight[expert] * factors @ (x[begin + row] * x_factors)

            torch = types.SimpleNamespace(nn=types.SimpleNamespace(functional=types.SimpleNamespace(pad=pad)), **TORCH)
            hpc = imported("hpc_ops_moe", [
                module("torch", **vars(torch)), module("hpc", group_gemm_blockwise_fp8=multiply)], "hpc-ops")
            case = types.SimpleNamespace(dtype="fp8", scaling="block", experts=4)
            self.assertIsNone(hpc.product_unsupported(case, None))
            p = types.SimpleNamespace(
                tokens=tokens, topk=2, experts=4, weighted=1, weights=random.normal(size=(4, 128, 256)),
                weight_scales=random.uniform(size=(4, 1, 2)), routing_weights=random.uniform(size=tokens * 2),
                expert_rows=routed.counts.view(OnDevice), sorted_token_ids=routed.sorted, expert_ids=routed.blocks)
            places = len(routed.sorted)
            p.x, p.x_scales = random.normal(size=(places, 256)), random.uniform(size=(places, 2))
            hpc.prepare_product(p)
            for weighted, launch in ((0, hpc.gate_up), (1, hpc.down), (0, hpc.down)):
                p.out, p.weighted = np.zeros((places, 128)), weighted
                launch(p)
                for place, row in enumerate(routed.sorted):
                    if row < routed.rows:
                        e = routed.expert[row]
                        w = p.weights[e] * np.repeat(p.weight_scales[e], 128, 1)
                        truth = w @ (p.x[place] * np.repeat(p.x_scales[place], 128))
                        np.testing.assert_allclose(p.out[place], truth * (p.routing_weights[row] if weighted else 1))


if __name__ == "__main__":
    unittest.main()
