# SPDX-License-Identifier: Apache-2.0
"""The adapters of examples/engines against stub packages: operands arrive where the engine looks for them."""

import importlib
import importlib.metadata
import inspect
import pathlib
import sys
import types
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "examples/engines")]

import numpy as np  # noqa: E402
from moegate._kernels import VARIANTS  # noqa: E402

MODULE = "vllm.model_executor.layers.fused_moe.fused_moe"


def multiply(A, B, C, A_scale, B_scale, topk_weights, sorted_token_ids, expert_ids, num_tokens_post_padded,
             mul_routed_weight, top_k, config, compute_type, use_fp8_w8a8, use_int8_w8a8, use_int8_w8a16,
             use_int4_w4a16, per_channel_quant, block_shape=None, B_bias=None):
    """What vLLM's kernel computes, block by block, with its own view of the operands."""
    rows = A.shape[0] * top_k
    out = C.reshape(rows, -1)
    for row in range(int(num_tokens_post_padded[0])):
        at, expert = sorted_token_ids[row], expert_ids[row // config["BLOCK_SIZE_M"]]
        if at >= rows:
            continue
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


def look_up(w1_shape, w2_shape, top_k, dtype, M, block_shape=None):
    look_up.asked = (w1_shape, w2_shape, top_k, dtype, M)
    return {"BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 128, "GROUP_SIZE_M": 32}


def adapter(kernel, name="invoke_fused_moe_triton_kernel", installed=True):
    """examples/engines/vllm_moe.py, imported where a vLLM with this kernel is installed, or none."""
    modules = {part: types.ModuleType(part) for part in ("torch", "triton", "triton.language")}
    modules["triton.language"].bfloat16 = "bf16"
    modules["triton"].language = modules["triton.language"]
    parts = MODULE.split(".")
    for n in range(1, len(parts) + 1):
        modules[".".join(parts[:n])] = types.ModuleType(".".join(parts[:n]))
    setattr(modules[MODULE], name, kernel)
    modules[MODULE].try_get_optimal_moe_config = look_up
    missing = importlib.metadata.PackageNotFoundError("vllm")
    version = mock.Mock(return_value="0.11", side_effect=None if installed else missing)
    found = mock.Mock(return_value=[types.SimpleNamespace(version="0.11")] if installed else [])
    sys.modules.pop("vllm_moe", None)
    with mock.patch.dict(sys.modules, modules), mock.patch.multiple(
            "importlib.metadata", version=version, distributions=found):
        return importlib.import_module("vllm_moe")


class Vllm(unittest.TestCase):
    TOKENS, TOPK, EXPERTS, BLOCK, N, K = 5, 2, 4, 4, 256, 384

    def problem(self, rows_of_x):
        random = np.random.default_rng(1)
        rows = self.TOKENS * self.TOPK
        experts = random.integers(0, self.EXPERTS, rows)
        ids, blocks = [], []
        for expert in range(self.EXPERTS):
            mine = [row for row in range(rows) if experts[row] == expert]
            mine += [rows] * (-len(mine) % self.BLOCK)
            ids += mine
            blocks += [expert] * (len(mine) // self.BLOCK)
        capacity = rows + self.EXPERTS * (self.BLOCK - 1)
        ids_in_use = len(ids)
        ids += [rows] * (capacity - len(ids))
        self.experts = experts
        return types.SimpleNamespace(
            tokens=self.TOKENS, topk=self.TOPK, experts=self.EXPERTS,
            x=random.normal(size=(rows_of_x, self.K)), x_scales=random.uniform(size=(rows_of_x, self.K // 128)),
            weights=random.normal(size=(self.EXPERTS, self.N, self.K)),
            weight_scales=random.uniform(size=(self.EXPERTS, self.N // 128, self.K // 128)),
            routing_weights=random.uniform(size=rows), out=np.zeros((rows, self.N)),
            sorted_token_ids=np.array(ids), expert_ids=np.array(blocks), num_tokens_post_padded=np.array([ids_in_use]))

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
        self.assertIsNone(vllm.unsupported(types.SimpleNamespace(dtype="fp8"), None))
        p = self.problem(self.TOKENS)
        vllm.gate_up(p)
        np.testing.assert_allclose(p.out, self.truth(p, self.TOPK, weighted=False))
        self.assertEqual(look_up.asked, ((4, 256, 384), (4, 384, 128), 2, "fp8_w8a8", 5))
        p = self.problem(self.TOKENS * self.TOPK)
        vllm.down(p)
        np.testing.assert_allclose(p.out, self.truth(p, 1, weighted=True))
        self.assertEqual(look_up.asked, ((4, 768, 256), (4, 256, 384), 2, "fp8_w8a8", 5))

    def test_the_older_kernel_has_zero_points(self):
        vllm = adapter(also_taking("B_zp"), "invoke_fused_moe_kernel")
        p = self.problem(self.TOKENS)
        vllm.gate_up(p)
        np.testing.assert_allclose(p.out, self.truth(p, self.TOPK, weighted=False))

    def test_what_is_missing_or_other_is_unsupported(self):
        case = types.SimpleNamespace(dtype="fp8")
        adapter(multiply, installed=False)
        self.assertEqual({one.unmet for one in VARIANTS[-2:]}, {"needs vllm, here not installed"})
        adapter(multiply)
        self.assertEqual({one.unmet for one in VARIANTS[-2:]}, {""})
        why = adapter(lambda A, B: None).unsupported(case, None)
        self.assertEqual(why, "vllm 0.11: invoke_fused_moe_triton_kernel has no parameter 'C'")
        why = adapter(multiply, "moved").unsupported(case, None)
        self.assertIn("has no attribute 'invoke_fused_moe_kernel'", why)
        self.assertIn("dtype = bf16", adapter(multiply).unsupported(types.SimpleNamespace(dtype="bf16"), None))
        why = adapter(also_taking("plan")).unsupported(case, None)
        self.assertEqual(
            why, "vllm 0.11: invoke_fused_moe_triton_kernel demands 'plan', which this file does not know")


if __name__ == "__main__":
    unittest.main()
