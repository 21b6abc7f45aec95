# SPDX-License-Identifier: Apache-2.0
"""The adapters of w4_gate_up and w4_down in examples/engines against stub packages."""

import types
import unittest

import numpy as np
from engine_stubs import TORCH, Routed, imported, module
from moegate._kernels import VARIANTS


class TritonKernels(unittest.TestCase):
    CODES = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])

    def multiply(self, x, w, bias, routing_data, gather_indx, scatter_indx, precision_config, gammas, y, fused_activation):
        """matmul_ogs with values and scales [E, K / 2, N] and [E, K / 32, N]."""
        ends = np.cumsum(routing_data["expt_hist"])
        for place, row in enumerate(scatter_indx["dst_indx"]):
            expert = np.searchsorted(ends, place, side="right")
            values = np.stack([self.CODES[w[expert] % 16], self.CODES[w[expert] // 16]], 1).reshape(-1, w.shape[2])
            scales = np.repeat(2.0 ** (precision_config["weight_scale"][expert].astype(int) - 127), 32, 0)
            out = x[gather_indx["src_indx"][place]] @ (values * scales) + bias[expert]
            y[row] = fused_activation(out) if fused_activation else out * gammas[place]

    def setUp(self):
        def named(**given):
            return given

        self.layouts = []
        layout = module(
            "triton_kernels.tensor_details.layout",
            make_default_matmul_mxfp4_w_layout=lambda mx_axis: ("values", {"mx_axis": mx_axis}),
            make_default_matmul_mxfp4_w_scale_layout=lambda mx_axis, num_warps: ("scales", {"num_warps": num_warps}))

        def convert_layout(tensor, layout_cls, **layout_kwargs):
            self.layouts.append((layout_cls, layout_kwargs))
            return tensor

        self.engine = imported("triton_kernels_moe", [
            module("torch", **TORCH), layout,
            module("triton_kernels.matmul_ogs", matmul_ogs=self.multiply, RoutingData=named, GatherIndx=named,
                   ScatterIndx=named, PrecisionConfig=named,
                   FnSpecs=lambda name, function, names, reduction_n: function,
                   FusedActivation=lambda function, values: lambda out: function(out, *values)),
            module("triton_kernels.swiglu", swiglu_fn=lambda out, alpha, limit: out[::2] * alpha + out[1::2] * limit),
            module("triton_kernels.tensor", FP4="fp4", convert_layout=convert_layout,
                   wrap_torch_tensor=lambda tensor, dtype=None: tensor),
            module("triton_kernels.tensor_details.ragged_tensor",
                   make_ragged_tensor_metadata=lambda slice_sizes, n_total_rows: None)], "triton_kernels")

    def test_both_products_get_their_operands(self):
        random = np.random.default_rng(3)
        routed = Routed(random, tokens=5, topk=2, experts=4, block=8)
        for op in ("gate_up", "down"):
            codes = random.integers(0, 256, (4, 64, 48))
            p = types.SimpleNamespace(
                tokens=5, topk=2, experts=4, alpha=1.5, limit=7.0, config={"num_warps": 4, "invariant": False},
                codes=codes, scales=random.integers(120, 130, (4, 64, 3)), bias=np.float32(random.normal(size=(4, 64))),
                x=random.normal(size=(5 if op == "gate_up" else 10, 96)), routing_weights=random.uniform(size=10),
                expert_rows=routed.counts, rows_by_expert=routed.listed,
                out=np.zeros((10, 32 if op == "gate_up" else 64)))
            self.engine.prepare(p)
            getattr(self.engine, op)(p)
            weights = np.stack([self.CODES[codes % 16], self.CODES[codes // 16]], -1).reshape(4, 64, 96)
            weights = weights * np.repeat(2.0 ** (p.scales - 127), 32, 2)
            for row, expert in enumerate(routed.expert):
                out = weights[expert] @ p.x[row // 2 if op == "gate_up" else row] + p.bias[expert]
                truth = out[::2] * 1.5 + out[1::2] * 7 if op == "gate_up" else out * p.routing_weights[row]
                np.testing.assert_allclose(p.out[row], truth)
        self.assertEqual(self.layouts[:2], [("values", {"mx_axis": 1}), ("scales", {"num_warps": 4})])

    def test_other_formats_are_unsupported(self):
        case = types.SimpleNamespace(weights="int4")
        self.assertEqual(self.engine.unsupported(case, None), "weights = int4: triton_kernels has MXFP4")
        case = types.SimpleNamespace(weights="mxfp4", beta=0)
        self.assertEqual(self.engine.unsupported(case, None), "beta = 0: triton_kernels adds 1")

    def test_ragged_k_is_unsupported(self):
        case = types.SimpleNamespace(weights="mxfp4", hidden=96, inter=2880)
        self.assertIn("K = 96 is not a multiple of 64", self.engine.up_unsupported(case, None))
        self.assertIsNone(self.engine.down_unsupported(case, None))


class Torch(np.ndarray):
    device = "cuda:0"

    def contiguous(self):
        return np.ascontiguousarray(self)

    def to(self, dtype):
        return np.array(self, dtype).view(Torch)


class Marlin(unittest.TestCase):
    """Orders that differ from vLLM's, so that a part that was not reordered shows: words of weights stand backwards, as do
    columns of scales; biases are negative."""

    CODES = TritonKernels.CODES
    UTILS = "vllm.model_executor.layers.quantization.utils"

    def multiply(self, input, output, b_qweight, b_bias, b_scales, a_scales, global_scale, b_qzeros, g_idx, perm, workspace,
                 sorted_token_ids, expert_ids, num_tokens_past_padded, topk_weights, moe_block_size, top_k,
                 mul_topk_weights, b_q_type, size_m, size_n, size_k, is_k_full, use_atomic_add, use_fp32_reduce,
                 is_zp_float, thread_k=-1):
        self.assertEqual((input.shape, output.shape), ((size_m, size_k), (size_m * top_k, size_n)))
        self.assertEqual((use_atomic_add, use_fp32_reduce, workspace), (False, True, "locks"))
        self.shapes.append((size_n, size_k))
        for place in range(int(num_tokens_past_padded[0])):
            row, expert = sorted_token_ids[place], expert_ids[place // moe_block_size]
            if row >= len(output):
                continue
            words = b_qweight[expert].view(np.uint32)[:, ::-1]
            codes = np.stack([words >> 4 * i & 15 for i in range(8)], 1).reshape(size_k, size_n)
            values = self.CODES[codes] if b_q_type == "e2m1" else codes.astype(float) - 8
            scales = np.repeat(b_scales[expert][:, ::-1], size_k // b_scales.shape[1], 0)
            output[row] = input[row // top_k] @ (values * scales) - (0 if b_bias is None else b_bias[expert])
            if mul_topk_weights:
                output[row] *= topk_weights[row]
        return output

    def engine(self, multiply=None, version="0.19"):
        self.shapes = []

        def swiglu(out, h, alpha, limit):
            out[:] = h[:, ::2] * alpha + np.minimum(h[:, 1::2], limit)

        def repack(b_q_weight, perm, size_k, size_n, num_bits, is_a_8bit=False):
            self.assertEqual((b_q_weight.shape, num_bits), ((size_k // 8, size_n), 4))
            return b_q_weight[:, ::-1]

        def reorder(s, size_k, size_n, group_size, is_a_8bit=False):
            self.assertEqual(s.shape, (size_k // group_size, size_n))
            return s[:, ::-1]

        return imported("marlin_moe", [
            module("torch", **TORCH, bfloat16=float, float8_e8m0fnu=np.uint8, cat=np.concatenate,
                   empty=lambda shape, dtype, device: np.full(shape, 9, dtype).view(Torch),
                   ops=types.SimpleNamespace(_C=types.SimpleNamespace(swigluoai_and_mul=swiglu))),
            module("torch.nn.functional", pad=lambda array, by: np.pad(
                array, [(0, 0)] * (array.ndim - len(by) // 2) + list(zip(by[-2::-2], by[::-2]))).view(Torch)),
            module("vllm._custom_ops", gptq_marlin_repack=repack, moe_wna16_marlin_gemm=multiply or self.multiply),
            module(f"{self.UTILS}.marlin_utils", marlin_permute_scales=reorder, marlin_permute_bias=lambda s: -s,
                   marlin_make_workspace_new=lambda device, max_blocks_per_sm: "locks"),
            module(f"{self.UTILS}.marlin_utils_fp4",
                   mxfp4_marlin_process_scales=lambda marlin_scales, input_dtype=None: 2.0 ** (marlin_scales - 127)),
            module("vllm.scalar_type", scalar_types=types.SimpleNamespace(float4_e2m1f="e2m1", uint4b8="u4b8"))],
                        "vllm", version)

    def expect_right(self, engine, op, weights, n, k, group=32, biased=True):
        random = np.random.default_rng(6)
        routed = Routed(random, tokens=5, topk=2, experts=4, block=8)
        codes = random.integers(0, 256, (4, n, k // 2), np.uint8)
        scales = (random.integers(120, 130, (4, n, k // group), np.uint8) if weights == "mxfp4"
                  else random.uniform(size=(4, n, k // group)))
        bias = random.normal(size=(4, n))
        p = types.SimpleNamespace(
            tokens=5, topk=2, experts=4, alpha=1.5, limit=0, weights=weights, group=group, codes=codes.view(Torch),
            scales=scales.view(Torch), bias=bias.view(Torch) if biased else 0,
            x=random.normal(size=(5 if op == "gate_up" else 10, k)).view(Torch), sorted_token_ids=routed.sorted,
            expert_ids=routed.blocks, num_tokens_post_padded=np.array([routed.padded]),
            out=np.zeros((10, n // 2 if op == "gate_up" else n)).view(Torch))
        if op == "down":
            p.routing_weights = random.uniform(size=10)
        engine.prepare(p)
        getattr(engine, op)(p)
        values = np.stack([codes % 16, codes // 16], -1).reshape(4, n, k)
        values = self.CODES[values] if weights == "mxfp4" else values.astype(float) - 8
        values = values * np.repeat(2.0 ** (scales - 127.0) if weights == "mxfp4" else scales, group, 2)
        for row, e in enumerate(routed.expert):
            out = values[e] @ p.x[row // 2 if op == "gate_up" else row] + (bias[e] if biased else 0)
            truth = out[::2] * 1.5 + out[1::2] if op == "gate_up" else out * p.routing_weights[row]
            np.testing.assert_allclose(p.out[row], truth, err_msg=f"{op} {weights} row {row}")

    def test_both_products_get_their_operands(self):
        engine = self.engine()
        for op in ("gate_up", "down"):
            self.expect_right(engine, op, "mxfp4", 320, 288)
            self.expect_right(engine, op, "mxfp4", 512, 256)
            self.expect_right(engine, op, "int4", 192, 128, group=64, biased=False)
        self.assertEqual(self.shapes, [(512, 512), (512, 256), (192, 128), (512, 384), (512, 256), (192, 128)])

    def test_blocks_are_marlins(self):
        engine = self.engine()

        def why(block, tokens, **more):
            return engine.unsupported(types.SimpleNamespace(block=block, tokens=tokens, topk=4, experts=32, **more), None)

        self.assertEqual([why(block, 64) for block in (0, 8, 48, 64)], [None] * 4)
        self.assertEqual(why(0, 2048), "block = 128: Marlin has 8 to 64; give block = 64, as vLLM")
        self.assertIn("block = 256: Marlin has 8 to 64; give block = 8,", why(256, 57))
        self.assertIn("give block = 16,", why(128, 58))  # 7.25 rows per expert are 0.906 of 8
        self.assertEqual(why(8, 1, beta=0), "beta = 0: vLLM's swigluoai_and_mul adds 1")

    def test_what_is_missing_or_other_is_unsupported(self):
        case = types.SimpleNamespace(block=8, tokens=8, topk=4, experts=32)
        self.assertEqual(self.engine(lambda a, b: None).unsupported(case, None),
                         "vllm 0.19: moe_wna16_marlin_gemm has no parameter 'input'")
        self.engine(version=None)
        self.assertEqual({one.unmet for one in VARIANTS[-2:]}, {"needs vllm, here not installed"})


if __name__ == "__main__":
    unittest.main()
