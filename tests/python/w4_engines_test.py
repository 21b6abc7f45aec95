# SPDX-License-Identifier: Apache-2.0
"""The adapters of w4_gate_up and w4_down in examples/engines against stub packages."""

import types
import unittest

import numpy as np
from engine_stubs import TORCH, Routed, imported, module


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


if __name__ == "__main__":
    unittest.main()
