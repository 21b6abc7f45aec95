# SPDX-License-Identifier: Apache-2.0
r"""fused_moe by FlashInfer's CUTLASS layer, which quantises x itself: Hopper and CUDA 12.8 or later.

    moegate run --module examples/engines/flashinfer_moe.py --suite deepseek-r1 --device cuda \
        --filter '^fused_moe/' --axis input=bf16

Its first launch compiles for minutes: give `--case-timeout`. It runs the tactics that FlashInfer takes untuned.
"""

import os
import sys

import moegate

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from _ask import AS_CHAIN_GATHER, ask, no_layer  # noqa: E402

NAME = "flashinfer-python"
LAYER = ask(
    NAME,
    [("flashinfer.fused_moe", "cutlass_fused_moe")],
    """input token_selected_experts token_final_scales fc1_expert_weights fc2_expert_weights output_dtype quant_scales
    output use_deepseek_fp8_block_scale use_fused_finalize""".split(),
)
if not LAYER.why:
    import torch


def unsupported(case, device):
    return no_layer(case, "FlashInfer", "bf16") or LAYER.why or None


def swapped(tensor):
    """[E, gate rows, then up] as up, then gate."""
    half = tensor.shape[1] // 2
    other = torch.empty_like(tensor)
    other[:, :half] = tensor[:, half:]
    other[:, half:] = tensor[:, :half]
    return other


def prepare(p):
    p.fc1, p.fc1_scales = swapped(p.w1), swapped(p.w1_scales)


def run(p, fused_finalize):
    LAYER(
        input=p.x,
        token_selected_experts=p.topk_ids,
        token_final_scales=p.topk_weights,
        fc1_expert_weights=p.fc1,
        fc2_expert_weights=p.w2,
        output_dtype=p.out.dtype,
        quant_scales=[p.fc1_scales, p.w2_scales],
        output=p.out,
        use_deepseek_fp8_block_scale=True,
        use_fused_finalize=fused_finalize,
    )


def variant(name):
    return moegate.variant(
        "fused_moe",
        name,
        prepare=prepare,
        unsupported=unsupported,
        allocates=True,
        requires={NAME: ""},
        **AS_CHAIN_GATHER,
    )


@variant("flashinfer")
def layer(p):
    """FlashInfer's cutlass_fused_moe, rows added to their tokens by a kernel of its own"""
    run(p, fused_finalize=False)


@variant("flashinfer_fused_finalize")
def fused_finalize(p):
    """FlashInfer's cutlass_fused_moe, rows added to their tokens by the second product (atomics)"""
    run(p, fused_finalize=True)
