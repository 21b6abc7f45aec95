# SPDX-License-Identifier: Apache-2.0
r"""fused_moe by the layer of Tencent's hpc-ops.

    moegate run --module examples/engines/hpc_ops_moe.py --suite deepseek-r1 --device cuda --filter '^fused_moe/'
"""

import os
import sys

import moegate

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from _ask import ask, no_layer  # noqa: E402

NAME = "hpc-ops"
LAYER = ask(
    NAME,
    [("hpc", "fuse_moe_blockwise")],
    """x x_scale gate_up_weight gate_up_weight_scale down_weight down_weight_scale topk_ids topk_scale rank_ep
    num_expert_total output""".split(),
)
if not LAYER.why:
    import torch

MOST_EXPERTS = 256


def unsupported(case, device):
    if case.experts > MOST_EXPERTS:
        return f"experts = {case.experts}: hpc-ops takes at most {MOST_EXPERTS}"
    return no_layer(case, "hpc-ops", "fp8") or LAYER.why or None


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
