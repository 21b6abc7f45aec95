# SPDX-License-Identifier: Apache-2.0
r"""fused_moe by SGLang's Triton layer, with the configurations that SGLang looks up for this GPU, shape and token count.

    moegate run --module examples/engines/sglang_moe.py --suite deepseek-r1 --device cuda \
        --filter '^fused_moe/' --axis input=bf16

SGLang quantises x itself and has no products alone: `moegate report kernels` has their times. A launch ends with a copy
of what SGLang allocates.
"""

import functools
import os
import sys

import moegate

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from _ask import AS_CHAIN_GATHER, ask, no_layer  # noqa: E402

NAME = "sglang"
MOE = "sglang.srt.layers.moe"
LAYER = ask(
    NAME,
    [(f"{MOE}.moe_runner.triton_utils.fused_moe", "fused_experts"), (f"{MOE}.fused_moe_triton.fused_moe", "fused_experts")],
    "hidden_states w1 w2 topk_output moe_runner_config use_fp8_w8a8 w1_scale w2_scale block_shape".split(),
)
CONFIG = ask(NAME, [(f"{MOE}.moe_runner", "MoeRunnerConfig")], ["inplace"])
ARGUMENTS = ask(NAME, [("sglang.srt.server_args", "ServerArgs")], ["model_path"])
SET = ask(NAME, [("sglang.srt.server_args", "set_global_server_args_for_scheduler")], None)


def unsupported(case, device):
    return no_layer(case, "SGLang", "bf16") or LAYER.why or CONFIG.why or ARGUMENTS.why or SET.why or None


@functools.lru_cache(None)
def set_arguments():
    """The layer asks the server's; no model is read."""
    SET.function(ARGUMENTS(model_path="dummy"))


def prepare(p):
    set_arguments()
    p.config = CONFIG(inplace=False, num_experts=p.experts, num_local_experts=p.experts, top_k=p.topk)


@moegate.variant(
    "fused_moe",
    "sglang",
    prepare=prepare,
    unsupported=unsupported,
    allocates=True,
    requires={NAME: ""},
    **AS_CHAIN_GATHER,
)
def layer(p):
    """SGLang's fused_experts"""
    p.out[:] = LAYER(
        hidden_states=p.x,
        w1=p.w1,
        w2=p.w2,
        topk_output=(p.topk_weights, p.topk_ids, None),
        moe_runner_config=p.config,
        use_fp8_w8a8=True,
        w1_scale=p.w1_scales,
        w2_scale=p.w2_scales,
        block_shape=[128, 128],
    )
