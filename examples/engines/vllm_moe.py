# SPDX-License-Identifier: Apache-2.0
r"""moe_gate_up and moe_down by vLLM's Triton kernel, as its fused_experts() calls it, with the configuration that vLLM
looks up for this GPU, shape and token count.

    moegate run --module examples/engines/vllm_moe.py --suite deepseek-r1 \
        --device cuda --filter '^moe_(gate_up|down)/'

The rows of a block are the case's: vLLM would align to its configuration's BLOCK_SIZE_M. With few tokens vLLM skips
the alignment; that path is not here.
"""

import os
import sys

import moegate

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from _ask import ask, rows_per_block  # noqa: E402

MODULE = "vllm.model_executor.layers.fused_moe.fused_moe"
KERNEL = ask(
    "vllm",
    [(MODULE, "invoke_fused_moe_triton_kernel"), (MODULE, "invoke_fused_moe_kernel")],
    """A B C A_scale B_scale topk_weights sorted_token_ids expert_ids num_tokens_post_padded mul_routed_weight top_k
    config compute_type use_fp8_w8a8 use_int8_w8a8 use_int8_w8a16 use_int4_w4a16 per_channel_quant block_shape""".split(),
    optional=["B_zp"],
)
CONFIG = ask(
    "vllm",
    [(MODULE, "try_get_optimal_moe_config")],
    ["w1_shape", "w2_shape", "top_k", "dtype", "M", "block_shape"],
)
if not KERNEL.why:
    import torch  # noqa: F401: with it imported, the tensors of `p` are torch's
    import triton.language as tl


def unsupported(case, device):
    if case.dtype != "fp8":
        return f"dtype = {case.dtype}: this adapter knows fp8 with scale factors per 128 only"
    return KERNEL.why or CONFIG.why or None


def launch(p, gate_up):
    experts, n, k = p.weights.shape
    # vLLM looks both products up by the layer: w1 [E, 2 I, H] and w2 [E, H, I].
    hidden, width = (k, n // 2) if gate_up else (n, k)
    config = CONFIG(
        w1_shape=(experts, 2 * width, hidden),
        w2_shape=(experts, hidden, width),
        top_k=p.topk,
        dtype="fp8_w8a8",
        M=p.tokens,
        block_shape=[128, 128],
    )
    weights = None if gate_up or not p.weighted else p.routing_weights.reshape(p.tokens, p.topk)
    KERNEL(
        A=p.x,
        B=p.weights,
        C=p.out.reshape(p.tokens, p.topk, n),
        A_scale=p.x_scales,
        B_scale=p.weight_scales,
        B_zp=None,
        topk_weights=weights,
        sorted_token_ids=p.sorted_token_ids,
        expert_ids=p.expert_ids,
        num_tokens_post_padded=p.num_tokens_post_padded,
        mul_routed_weight=weights is not None,
        top_k=p.topk if gate_up else 1,
        config={**config, "BLOCK_SIZE_M": rows_per_block(p)},
        compute_type=tl.bfloat16,
        use_fp8_w8a8=True,
        use_int8_w8a8=False,
        use_int8_w8a16=False,
        use_int4_w4a16=False,
        per_channel_quant=False,
        block_shape=[128, 128],
    )


@moegate.variant("moe_gate_up", "vllm_triton", unsupported=unsupported, requires={"vllm": ""})
def gate_up(p):
    """vLLM's fused_moe_kernel, with the configuration that vLLM looks up"""
    launch(p, gate_up=True)


@moegate.variant("moe_down", "vllm_triton", unsupported=unsupported, requires={"vllm": ""})
def down(p):
    """vLLM's fused_moe_kernel, with the configuration that vLLM looks up"""
    launch(p, gate_up=False)
