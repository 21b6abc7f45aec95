# SPDX-License-Identifier: Apache-2.0
r"""w4_gate_up and w4_down with MXFP4 weights by triton_kernels of the Triton repository, which vLLM and gpt-oss use.

    moegate run --module examples/engines/triton_kernels_moe.py --suite gpt-oss-120b \
        --device cuda --filter '^w4_(gate_up|down)/'

triton_kernels fixes the warps of its product when weights are laid out: 8 by its default, or 4. A launch begins with
the schedule of blocks, of which the engine makes one for both products, and ends with a copy where the engine sums the
rows of a token: `moegate report kernels` has the product alone.
"""

import os
import sys

import moegate

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from _ask import ask  # noqa: E402

NAME = "triton_kernels"
MATMUL = ask(
    NAME,
    [(f"{NAME}.matmul_ogs", "matmul_ogs")],
    "x w bias routing_data gather_indx scatter_indx precision_config gammas y fused_activation".split(),
)
METADATA = ask(
    NAME,
    [(f"{NAME}.tensor_details.ragged_tensor", "make_ragged_tensor_metadata")],
    ["slice_sizes", "n_total_rows"],
)
WEIGHTS = ask(NAME, [(f"{NAME}.tensor", "convert_layout")], ["tensor", "layout_cls"], optional=["layout_kwargs"])
WHY = MATMUL.why or METADATA.why or WEIGHTS.why
if not WHY:
    import torch
    from triton_kernels import matmul_ogs, swiglu
    from triton_kernels.tensor import FP4, wrap_torch_tensor
    from triton_kernels.tensor_details import layout

WARPS = {"num_warps": [4, 8], "invariant": [False, True]}


def shipped(case, device):
    return moegate.Choice({"num_warps": 8, "invariant": False})


def unsupported(case, device):
    if getattr(case, "weights", "mxfp4") != "mxfp4":
        return f"weights = {case.weights}: triton_kernels has MXFP4"
    if getattr(case, "beta", 1) != 1:
        return f"beta = {case.beta}: triton_kernels adds 1"
    return WHY or None


def up_unsupported(case, device):
    return unsupported(case, device) or ragged(case.hidden)


def down_unsupported(case, device):
    return unsupported(case, device) or ragged(case.inter)


def ragged(k):
    """Its layout of values on Hopper was right in 14 sizes with K in whole 64, and in none of 22 others (318fa9c4)."""
    return f"K = {k} is not a multiple of 64: triton_kernels' layout on Hopper is wrong there" if k % 64 else None


def prepare(p):
    """Values and scales, [E, K, N] with K innermost, as triton_kernels lays them out for this GPU."""
    values, about_values = layout.make_default_matmul_mxfp4_w_layout(mx_axis=1)
    scales, about_scales = layout.make_default_matmul_mxfp4_w_scale_layout(
        mx_axis=1, num_warps=p.config["num_warps"]
    )
    codes = wrap_torch_tensor(torch.transpose(p.codes, 1, 2), dtype=FP4)
    p.w = WEIGHTS.function(codes, values, **about_values)
    p.w_scales = WEIGHTS.function(wrap_torch_tensor(torch.transpose(p.scales, 1, 2)), scales, **about_scales)
    p.bias_in_fp32 = torch.as_tensor(p.bias, dtype=torch.float32)  # its kernel wants it so


def multiply(p, tokens, gammas, activation):
    """`tokens` [R]: the row of x of every routed row, by expert."""
    rows = p.rows_by_expert
    MATMUL.function(
        p.x,
        p.w,
        p.bias_in_fp32,
        matmul_ogs.RoutingData(
            gate_scal=None,
            expt_hist=p.expert_rows,
            n_expts_tot=p.experts,
            n_expts_act=1,
            expt_data=METADATA.function(p.expert_rows, rows.shape[0]),
        ),
        gather_indx=matmul_ogs.GatherIndx(src_indx=tokens, dst_indx=rows),
        scatter_indx=matmul_ogs.ScatterIndx(src_indx=rows, dst_indx=rows),
        precision_config=matmul_ogs.PrecisionConfig(
            weight_scale=p.w_scales, enforce_bitwise_invariance=p.config["invariant"]
        ),
        gammas=gammas,
        y=p.out,
        fused_activation=activation,
    )


def variant(op, why):
    return moegate.variant(
        op,
        NAME,
        prepare=prepare,
        unsupported=why,
        rows="listed",
        allocates=True,
        knobs=WARPS,
        choose=shipped,
        requires={NAME: ""},
    )


@variant("w4_gate_up", up_unsupported)
def gate_up(p):
    """triton_kernels' matmul_ogs with SwiGLU"""
    specs = matmul_ogs.FnSpecs("swiglu", swiglu.swiglu_fn, ("alpha", "limit"), reduction_n=2)
    activation = matmul_ogs.FusedActivation(specs, (p.alpha, p.limit or None))
    multiply(p, torch.div(p.rows_by_expert, p.topk, rounding_mode="trunc"), None, activation)


@variant("w4_down", down_unsupported)
def down(p):
    """triton_kernels' matmul_ogs with the routing weights as factors of rows"""
    multiply(p, p.rows_by_expert, p.routing_weights[p.rows_by_expert], None)
