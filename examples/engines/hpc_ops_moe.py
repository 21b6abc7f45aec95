# SPDX-License-Identifier: Apache-2.0
r"""fused_moe, moe_gate_up and moe_down by Tencent's hpc-ops.

    moegate run --module examples/engines/hpc_ops_moe.py --suite deepseek-r1 --device cuda --filter '^fused_moe/'

Of a product a launch begins with what hpc-ops' gathering writes at once: factors column by column, each expert's padded
to whole tiles, and tensor maps. Routing weights, which it multiplies in its sum, are in the factors of x as with
DeepGEMM; `--axis weighted=0` leaves them out. `moegate report kernels` has the product alone.
"""

import os
import sys

import moegate

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from _ask import ask, factors_with_weights, no_block_scaling, no_layer, rows_per_block  # noqa: E402

NAME = "hpc-ops"
LAYER = ask(
    NAME,
    [("hpc", "fuse_moe_blockwise")],
    """x x_scale gate_up_weight gate_up_weight_scale down_weight down_weight_scale topk_ids topk_scale rank_ep
    num_expert_total output""".split(),
)
MULTIPLY = ask(
    NAME,
    [("hpc", "group_gemm_blockwise_fp8")],
    "x weight seqlens cu_seqlens x_scale w_scale num_seq_per_group_avg output".split(),
)
if not (LAYER.why and MULTIPLY.why):
    import torch

MOST_EXPERTS = 256


# Up to so many rows of an expert on average: rows of its tile. Beyond: 64 (6e2eced).
TILES = {8: 8, 16: 16, 32: 32, 48: 48, 64: 64, 96: 48, 128: 32, 144: 48}


def too_many(experts):
    if experts > MOST_EXPERTS:
        return f"experts = {experts}: hpc-ops takes at most {MOST_EXPERTS}"
    return None


def unsupported(case, device):
    return too_many(case.experts) or no_layer(case, "hpc-ops", "fp8") or LAYER.why or None


def padded(factors):
    """[E, N/128, K/128], K/128 padded to a multiple of 4."""
    return torch.nn.functional.pad(factors, (0, -factors.shape[2] % 4))


def prepare(p):
    p.w1_factors, p.w2_factors = padded(p.w1_scales), padded(p.w2_scales)


# Tensor cores sum fp8 with fewer bits than fp32, as our chains' do (fused_moe.h: kOtherSums, kSumsRounded).
@moegate.variant(
    "fused_moe",
    "hpc_ops",
    prepare=prepare,
    unsupported=unsupported,
    allocates=True,
    tolerance=2,
    between=0.0125,
    requires={NAME: ""},
)
def layer(p):
    """hpc-ops' fuse_moe_blockwise"""
    LAYER(
        x=p.x,
        x_scale=p.x_scales,
        gate_up_weight=p.w1,
        gate_up_weight_scale=p.w1_factors,
        down_weight=p.w2,
        down_weight_scale=p.w2_factors,
        topk_ids=p.topk_ids,
        topk_scale=p.topk_weights,
        rank_ep=0,
        num_expert_total=p.experts,
        output=p.out,
    )


def product_unsupported(case, device):
    return no_block_scaling(case) or too_many(case.experts) or MULTIPLY.why or None


def prepare_product(p):
    p.factors = padded(p.weight_scales)


def multiply(p, x_scales):
    block, experts = rows_per_block(p), p.expert_rows.shape[0]
    average = p.tokens * p.topk // p.experts  # as its layer tells it
    tile = next((rows for most, rows in TILES.items() if average <= most), 64)
    block_rows, tile_rows = (-(-p.expert_rows // size) * size for size in (block, tile))
    ends, tile_ends = (torch.cumsum(sizes, 0, dtype=torch.int32) for sizes in (block_rows, tile_rows))
    most = (p.tokens * p.topk + experts * (tile - 1)) // tile * tile
    place = torch.arange(most, device=p.expert_rows.device)
    expert = torch.clamp(torch.searchsorted(tile_ends, place, right=True), max=experts - 1)
    moved = (ends - block_rows) - (tile_ends - tile_rows)
    rows = torch.clamp(place + moved[expert], max=p.x.shape[0] - 1)  # of padding: any
    MULTIPLY.function(
        x=p.x,
        weight=p.weights,
        seqlens=p.expert_rows,
        cu_seqlens=torch.nn.functional.pad(ends, (1, 0)),
        x_scale=torch.index_select(torch.transpose(x_scales, 0, 1), 1, rows),
        w_scale=p.factors,
        num_seq_per_group_avg=average,
        output=p.out,
    )


def product(op):
    return moegate.variant(
        op,
        "hpc_ops",
        prepare=prepare_product,
        unsupported=product_unsupported,
        rows="sorted",
        allocates=True,
        requires={NAME: ""},
    )


@product("moe_gate_up")
def gate_up(p):
    """hpc-ops' group_gemm_blockwise_fp8"""
    multiply(p, p.x_scales)


@product("moe_down")
def down(p):
    """hpc-ops' group_gemm_blockwise_fp8, routing weights in the factors of x"""
    multiply(p, factors_with_weights(p))
