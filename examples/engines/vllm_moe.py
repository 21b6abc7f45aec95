# SPDX-License-Identifier: Apache-2.0
r"""moe_gate_up and moe_down by vLLM's Triton kernel, as its fused_experts() calls it, with the configuration that vLLM
looks up for this GPU, shape and token count; and fused_moe by fused_experts() itself, which gets x in bf16.

    moegate run --module examples/engines/vllm_moe.py --suite deepseek-r1 \
        --device cuda --filter '^moe_(gate_up|down)/'  # fused_experts: '^fused_moe/' --axis input=bf16

The rows of a block are the case's; --axis block=shipped is vLLM's BLOCK_SIZE_M. Where this vLLM does not align so few
tokens, blocks are of one row each, in token order; a vLLM that cannot be asked is given aligned rows. The layer ends with
a copy of what vLLM allocates. `moegate tune --check` compares a configuration with those that differ from it in one value,
so that others may be faster still.
"""

import os
import sys

import moegate

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from _ask import AS_CHAIN_GATHER, ask, no_block_scaling, no_layer, rows_per_block  # noqa: E402

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
FILE = ask("vllm", [(MODULE, "get_moe_configs")], ["E", "N", "dtype", "block_n", "block_k"])
NAME = ask("vllm", [(MODULE, "get_config_file_name")], ["E", "N", "dtype", "block_shape"])
ASSIGN = ask(
    "vllm",
    [(MODULE, "_prepare_expert_assignment")],
    "topk_ids config num_tokens top_k_num global_num_experts expert_map".split(),
)
LAYER = ask(
    "vllm",
    [(MODULE, "fused_experts")],
    "hidden_states w1 w2 topk_weights topk_ids quant_config".split(),
)
QUANTISED = ask(
    "vllm",
    [("vllm.model_executor.layers.fused_moe.config", "fp8_w8a8_moe_quant_config")],
    ["w1_scale", "w2_scale", "block_shape"],
)
SETTINGS = ask("vllm", [("vllm.config", "VllmConfig")], [])
SET = ask("vllm", [("vllm.config", "set_current_vllm_config")], ["vllm_config"])
if not KERNEL.why:
    import torch  # noqa: F401: with it imported, the tensors of `p` are torch's
    import triton.language as tl


WHY = next((one.why for one in (KERNEL, CONFIG, FILE, NAME) if one.why), "")
# Of vLLM's benchmark_moe.py, without values that a scale per 128 rules out.
KNOBS = {
    "BLOCK_SIZE_M": [16, 32, 64],
    "BLOCK_SIZE_N": [64, 128],
    "GROUP_SIZE_M": [1, 32],
    "num_warps": [4, 8],
    "num_stages": [3, 4, 5],
}


def shipped(case, device):
    if WHY:
        return moegate.Choice({"BLOCK_SIZE_M": 16})  # unsupported() says why it does not run
    experts = case.experts // int(case.rank.split("@")[0].split("/")[1])
    # vLLM looks both products up by the layer: w1 [E, 2 I, H] and w2 [E, H, I].
    config = CONFIG(
        w1_shape=(experts, 2 * case.inter, case.hidden),
        w2_shape=(experts, case.hidden, case.inter),
        top_k=case.topk,
        dtype="fp8_w8a8",
        M=case.tokens,
        block_shape=[128, 128],
    )
    of = {"E": experts, "N": case.inter, "dtype": "fp8_w8a8"}
    entries = FILE(**of, block_n=128, block_k=128)
    if not entries:
        return moegate.Choice(config)
    entry = min(entries, key=lambda tokens: abs(tokens - case.tokens))
    return moegate.Choice(config, "file", file=NAME(**of, block_shape=[128, 128]), entry=entry)


def neighbours(case, device):
    config = shipped(case, device).config
    for name, values in KNOBS.items():
        if name != "BLOCK_SIZE_M" or case.block == "shipped":
            yield from ({**config, name: value} for value in values)


def unsupported(case, device):
    return no_block_scaling(case) or WHY or None


def arrange(p):
    """Untimed: which rows are in a block."""
    p.kernel_config, p.blocks = {**p.config, "BLOCK_SIZE_M": rows_per_block(p)}, None
    # A rank's experts are known by an expert_map, and with one vLLM always aligns.
    if ASSIGN.why or getattr(p, "rank", "0/1") != "0/1":
        return
    sorted_ids, _, padded_rows = ASSIGN(
        topk_ids=p.topk_ids,
        config=p.config,
        num_tokens=p.tokens,
        top_k_num=p.topk,
        global_num_experts=p.weights.shape[0],
        expert_map=None,
    )
    if sorted_ids is None:  # other activations have other ids, but as many blocks
        p.kernel_config, p.blocks = p.config, p.packed("blocks of a row", (1,), "int32")
        p.blocks[:] = padded_rows


def launch(p, gate_up):
    n = p.weights.shape[1]
    aligned = p.blocks is None
    weights = None if gate_up or not p.weighted else p.routing_weights.reshape(p.tokens, p.topk)
    KERNEL(
        A=p.x,
        B=p.weights,
        C=p.out.reshape(p.tokens, p.topk, n),
        A_scale=p.x_scales,
        B_scale=p.weight_scales,
        B_zp=None,
        topk_weights=weights,
        sorted_token_ids=p.sorted_token_ids if aligned else None,
        expert_ids=p.expert_ids if aligned else p.topk_ids.reshape(-1),
        num_tokens_post_padded=p.num_tokens_post_padded if aligned else p.blocks,
        mul_routed_weight=weights is not None,
        top_k=p.topk if gate_up else 1,
        config=p.kernel_config,
        compute_type=tl.bfloat16,
        use_fp8_w8a8=True,
        use_int8_w8a8=False,
        use_int8_w8a16=False,
        use_int4_w4a16=False,
        per_channel_quant=False,
        block_shape=[128, 128],
    )


def variant(op):
    return moegate.variant(
        op,
        "vllm_triton",
        prepare=arrange,
        unsupported=unsupported,
        knobs=neighbours,
        choose=shipped,
        requires={"vllm": ""},
        rows="listed",
    )


@variant("moe_gate_up")
def gate_up(p):
    """vLLM's fused_moe_kernel, with the configuration that vLLM looks up"""
    launch(p, gate_up=True)


@variant("moe_down")
def down(p):
    """vLLM's fused_moe_kernel, with the configuration that vLLM looks up"""
    launch(p, gate_up=False)


def layer_unsupported(case, device):
    return no_layer(case, "vLLM", "bf16") or LAYER.why or QUANTISED.why or SETTINGS.why or SET.why or None


def prepare(p):
    p.settings = SETTINGS()
    p.quantised = QUANTISED(w1_scale=p.w1_scales, w2_scale=p.w2_scales, block_shape=[128, 128])


@moegate.variant(
    "fused_moe",
    "vllm",
    prepare=prepare,
    unsupported=layer_unsupported,
    allocates=True,
    requires={"vllm": ""},
    **AS_CHAIN_GATHER,
)
def layer(p):
    """vLLM's fused_experts"""
    with SET(vllm_config=p.settings):
        p.out[:] = LAYER(
            hidden_states=p.x,
            w1=p.w1,
            w2=p.w2,
            topk_weights=p.topk_weights,
            topk_ids=p.topk_ids,
            inplace=False,
            quant_config=p.quantised,
        )
