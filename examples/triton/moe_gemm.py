# SPDX-License-Identifier: Apache-2.0
r"""moe_gate_up and moe_down in Triton: block-scaled fp8 grouped GEMMs that gather their rows.

    moegate run --module examples/triton/moe_gemm.py --suite deepseek-r1 \
        --device cuda --filter '^moe_(gate_up|down)/'

Scale factors are per 128 along K, and per 128 columns for weights: over a step of 128 along K, a row of a
tile of 128 columns has one factor. Blocks of 16 and 32 rows are too short for Hopper's warpgroup products;
Triton then takes those of a warp.

Needs torch and Triton in the Python that moegate uses (MOEGATE_PYTHON), and a GPU that knows fp8 (from
compute capability 8.9 on).
"""

import moegate
import torch  # noqa: F401: with it imported, the tensors of `p` are torch's, as Triton wants them
import triton
import triton.language as tl

# By rows of a block: warps and stages. A stage is (rows + 128) * 128 bytes of shared memory, of which an SM
# has enough for two programs.
LAUNCHES = {16: (4, 5), 32: (4, 5), 64: (4, 4), 128: (8, 3)}


@triton.jit
def multiply(
    x,  # [rows of x, k] fp8
    x_scales,  # [rows of x, k / 128]
    weights,  # [experts, n, k] fp8
    weight_scales,  # [experts, ceil(n / 128), k / 128]
    routing_weights,  # [rows], or None
    sorted_rows,  # routed rows by expert; `rows` and beyond are padding
    block_experts,  # of each block of sorted_rows
    padded_rows,  # [1]: those of sorted_rows that are in use
    out,  # [rows, n] bf16
    rows,
    n,
    k,
    BLOCK: tl.constexpr,  # rows
    SHARE: tl.constexpr,  # routed rows that read the same row of x
):
    # A block's tiles are neighbours, and so are an expert's blocks: what one read, L2 has for the next.
    tiles = tl.cdiv(n, 128)
    block = tl.program_id(0) // tiles
    tile = tl.program_id(0) % tiles
    if block * BLOCK >= tl.load(padded_rows):
        return  # the grid has room for the worst routing

    row = tl.load(sorted_rows + block * BLOCK + tl.arange(0, BLOCK))
    there = row < rows
    source = (row // SHARE).to(tl.int64)
    expert = tl.load(block_experts + block).to(tl.int64)
    column = tile * 128 + tl.arange(0, 128)
    # Beyond the last column its weights are read again, and nothing is stored.
    weight_row = expert * n + tl.minimum(column, n - 1)
    lane = tl.arange(0, 128)
    groups = k // 128
    a = x + source[:, None] * k + lane[None, :]
    b = weights + weight_row[None, :] * k + lane[:, None]
    a_scale = x_scales + source * groups
    b_scale = weight_scales + (expert * tiles + tile) * groups

    total = tl.zeros([BLOCK, 128], tl.float32)
    for group in range(groups):
        scale = tl.load(a_scale + group, mask=there, other=0.0) * tl.load(b_scale + group)
        product = tl.dot(tl.load(a, mask=there[:, None], other=0.0), tl.load(b))
        total += product * scale[:, None]
        a += 128
        b += 128

    if routing_weights is not None:
        total *= tl.load(routing_weights + row, mask=there, other=0.0)[:, None]
    place = out + row.to(tl.int64)[:, None] * n + column[None, :]
    tl.store(place, total.to(tl.bfloat16), mask=there[:, None] & (column < n)[None, :])


def rows_per_block(p):
    """BM, which the operands' sizes tell: with block = 0 the parameter does not."""
    rows, capacity = p.tokens * p.topk, p.sorted_token_ids.numel()
    if rows < p.experts:
        return capacity // rows  # a block for every row
    return (capacity - rows) // p.experts + 1  # every expert pads up to BM - 1


def launch(p, share, routing_weights):
    block = rows_per_block(p)
    warps, stages = LAUNCHES[block]
    n, k = p.weights.shape[1], p.weights.shape[2]
    grid = (p.expert_ids.numel() * triton.cdiv(n, 128),)
    multiply[grid](
        p.x,
        p.x_scales,
        p.weights,
        p.weight_scales,
        routing_weights,
        p.sorted_token_ids,
        p.expert_ids,
        p.num_tokens_post_padded,
        p.out,
        p.tokens * p.topk,
        n,
        k,
        BLOCK=block,
        SHARE=share,
        num_warps=warps,
        num_stages=stages,
    )


def unsupported(case, device):
    if case.dtype != "fp8" or case.scaling != "block":
        return f"dtype = {case.dtype}, scaling = {case.scaling}: multiplies fp8 scaled in blocks only"
    block = case.block or (16 if case.tokens <= 64 else 64)  # 0: the operator's default for fp8
    if block not in LAUNCHES:
        return f"block = {block}: has tiles of {', '.join(map(str, LAUNCHES))} rows only"
    return None


@moegate.variant("moe_gate_up", "triton_grouped", unsupported=unsupported)
def gate_up(p):
    """Triton: tiles of BM rows and 128 columns, rows gathered by their ids"""
    launch(p, share=p.topk, routing_weights=None)


@moegate.variant("moe_down", "triton_grouped", unsupported=unsupported)
def down(p):
    """Triton: tiles of BM rows and 128 columns, rows gathered by their ids"""
    launch(p, share=1, routing_weights=p.routing_weights if p.weighted else None)
