# SPDX-License-Identifier: Apache-2.0
r"""moe_gate_up and moe_down by DeepGEMM's grouped GEMMs: rows in expert order, or each expert's in a part of its own.

    moegate run --module examples/engines/deepgemm_moe.py --suite deepseek-r1 --axis block=128 \
        --device cuda --filter '^moe_(gate_up|down)/'

For `deepgemm`, `block` is its alignment of an expert's rows, and with it the block that it multiplies. A launch begins
with what an engine's quantisation writes at once: factors column by column, and the expert of every row. DeepGEMM has
no routing weights: with `weighted = 1` they are multiplied into the factors of x, with `--axis weighted=0` nowhere.
`moegate report kernels` has the product alone.
"""

import os
import sys

import moegate

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from _ask import ask, factors_with_weights, no_block_scaling, rows_per_block  # noqa: E402

MULTIPLY = ask(
    "deep_gemm",
    [("deep_gemm", "m_grouped_fp8_gemm_nt_contiguous"), ("deep_gemm", "m_grouped_gemm_fp8_fp8_bf16_nt_contiguous")],
    None,
)
MASKED = ask(
    "deep_gemm",
    [("deep_gemm", "m_grouped_fp8_gemm_nt_masked"), ("deep_gemm", "m_grouped_gemm_fp8_fp8_bf16_nt_masked")],
    None,
)
ALIGN = ask("deep_gemm", [("deep_gemm", "set_mk_alignment_for_contiguous_layout")], None)
if not (MULTIPLY.why and MASKED.why):
    import torch


def unsupported(case, device):
    if why := no_block_scaling(case):
        return why
    if ALIGN.why and case.block != 128:
        return f"block = {case.block}: {ALIGN.why}, so that its alignment is 128"
    return MULTIPLY.why or None


def masked_unsupported(case, device):
    return no_block_scaling(case) or MASKED.why or None


def multiply(p, x_scales):
    block = rows_per_block(p)
    if not ALIGN.why:
        ALIGN.function(block)
    experts = torch.repeat_interleave(p.expert_ids, block)[: p.x.shape[0]]
    MULTIPLY.function((p.x, x_scales), (p.weights, p.weight_scales), p.out, experts)


def multiply_masked(p, x_scales):
    expected = -(-p.tokens * p.topk // p.experts)  # rows of an expert, as engines tell that do not know them
    MASKED.function((p.x, x_scales), (p.weights, p.weight_scales), p.out, p.expert_rows, expected)


def variant(op, name="deepgemm", rows="sorted", why=unsupported):
    return moegate.variant(op, name, unsupported=why, rows=rows, allocates=True, requires={"deep_gemm": ""})


def masked_variant(op):
    return variant(op, "deepgemm_masked", "masked", masked_unsupported)


@variant("moe_gate_up")
def gate_up(p):
    """DeepGEMM's m_grouped_fp8_gemm_nt_contiguous"""
    multiply(p, p.x_scales)


@variant("moe_down")
def down(p):
    """DeepGEMM's m_grouped_fp8_gemm_nt_contiguous, routing weights in the factors of x"""
    multiply(p, factors_with_weights(p))


@masked_variant("moe_gate_up")
def masked_gate_up(p):
    """DeepGEMM's m_grouped_fp8_gemm_nt_masked"""
    multiply_masked(p, p.x_scales)


@masked_variant("moe_down")
def masked_down(p):
    """DeepGEMM's m_grouped_fp8_gemm_nt_masked, routing weights in the factors of x"""
    if not p.weighted:
        return multiply_masked(p, p.x_scales)
    starts = torch.cumsum(p.expert_rows, 0) - p.expert_rows
    places = starts[:, None] + torch.arange(p.x.shape[1], device=p.expert_rows.device)
    rows = p.rows_by_expert[torch.clamp(places, max=p.tokens * p.topk - 1)]  # of padding: any
    return multiply_masked(p, p.x_scales * p.routing_weights[rows][:, :, None])
