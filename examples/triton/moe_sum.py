# SPDX-License-Identifier: Apache-2.0
"""moe_sum in Triton: the k rows of a token added up to one of bf16.

    moegate run --module examples/triton/moe_sum.py --suite deepseek-r1 --device cuda --filter '^moe_sum/'

Needs torch and Triton in the Python that moegate uses (MOEGATE_PYTHON).
"""

import moegate
import torch  # noqa: F401: with it imported, the tensors of `p` are torch's, as Triton wants them
import triton
import triton.language as tl

COLUMNS = 1024  # of a program: with 128 threads, eight columns or 16 bytes of a row each


@triton.jit
def sum_rows(y, out, hidden, scale, TOPK: tl.constexpr, COLUMNS: tl.constexpr):
    # 64 bits: y has more than 2^31 elements from 37450 tokens of 8 rows of 7168 on.
    token = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = column < hidden
    total = tl.zeros([COLUMNS], tl.float32)
    # Unrolled, so that the loads of all rows are under way at once; the additions keep their order.
    for slot in tl.static_range(TOPK):
        row = y + (token * TOPK + slot) * hidden
        total += tl.load(row + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + token * hidden + column, (total * scale).to(tl.bfloat16), mask=inside)


@moegate.variant("moe_sum", "triton_rows")
def triton_rows(p):
    """Triton: a program per token and 1024 columns, sums in fp32"""
    grid = (p.tokens, triton.cdiv(p.hidden, COLUMNS))
    # float(): Triton would compile a kernel of its own for a scale of 1, an int here.
    sum_rows[grid](p.y, p.out, p.hidden, float(p.scale), TOPK=p.topk, COLUMNS=COLUMNS, num_warps=4)
