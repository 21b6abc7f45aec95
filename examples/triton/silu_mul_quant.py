# SPDX-License-Identifier: Apache-2.0
r"""silu_mul_quant in Triton: silu(gate) * up, to fp8 with a scale factor per 128 columns, in one go.

    moegate run --module examples/triton/silu_mul_quant.py --suite deepseek-r1 \
        --device cuda --filter '^silu_mul_quant/'

Needs torch and Triton in the Python that moegate uses (MOEGATE_PYTHON), and a GPU that converts to fp8 (from
compute capability 8.9 on).
"""

import moegate
import torch  # noqa: F401: with it imported, the tensors of `p` are torch's, as Triton wants them
import triton
import triton.language as tl

GROUPS = 8  # of a program: with 128 threads, 16 of them per group and 16 bytes of gates and of ups each


@triton.jit
def silu_mul_quantise(h, q, scales, groups, groups_per_row, GROUPS: tl.constexpr):
    # Groups are counted through all rows: number g has the codes from g * 128 on, and scales[g].
    group = tl.program_id(0).to(tl.int64) * GROUPS + tl.arange(0, GROUPS)
    there = (group < groups)[:, None]
    lane = tl.arange(0, 128)[None, :]
    row = group // groups_per_row
    inter = groups_per_row * 128
    first = row * 2 * inter + group % groups_per_row * 128
    gates = h + first[:, None] + lane
    gate = tl.load(gates, mask=there, other=0.0).to(tl.float32)
    up = tl.load(gates + inter, mask=there, other=0.0).to(tl.float32)
    # Not rounded to bf16 in between. Where e^-x overflows, the quotient is the zero that it should be.
    value = gate / (1.0 + tl.exp(-gate)) * up
    largest = tl.maximum(tl.max(tl.abs(value), axis=1), 1e-10)
    scale = largest / 448.0
    # The quotient of a group's largest value may round to just above 448.
    code = tl.clamp(value / scale[:, None], -448.0, 448.0)
    tl.store(q + group[:, None] * 128 + lane, code.to(tl.float8e4nv), mask=there)
    tl.store(scales + group, scale, mask=group < groups)


@moegate.variant("silu_mul_quant", "triton_fused")
def triton_fused(p):
    """Triton: eight groups of 128 columns per program, activations stay in registers"""
    groups = p.scales.numel()
    grid = (triton.cdiv(groups, GROUPS),)
    silu_mul_quantise[grid](p.h, p.q, p.scales, groups, p.inter // 128, GROUPS=GROUPS, num_warps=4)
