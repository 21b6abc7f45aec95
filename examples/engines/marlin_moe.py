# SPDX-License-Identifier: Apache-2.0
r"""w4_gate_up and w4_down by Marlin, as vLLM's fused_marlin_moe() calls it: MXFP4, and int4 of GPTQ.

    moegate run --module examples/engines/marlin_moe.py --suite gpt-oss-20b --device cuda --filter '^w4_(gate_up|down)/'

vLLM rounds an MXFP4 layer's inner width up to 128 and its hidden size up to 256. Where that changes a shape, a launch
begins with a copy of x, which vLLM makes once per layer, and ends with one of the output, which vLLM does not make. In
gate_up SwiGLU is a kernel of its own, with h rounded to bf16 before. `moegate report kernels` has the product alone.

The rows of a block are the case's. Marlin has blocks of up to 64, and vLLM chooses as vllm_block() does.
"""

import math
import os
import sys

import moegate

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from _ask import ask, rows_per_block  # noqa: E402

UTILS = "vllm.model_executor.layers.quantization.utils"
GEMM = ask(
    "vllm",
    [("vllm._custom_ops", "moe_wna16_marlin_gemm")],
    """input output b_qweight b_bias b_scales global_scale b_qzeros g_idx perm workspace sorted_token_ids expert_ids
    num_tokens_past_padded topk_weights moe_block_size top_k mul_topk_weights b_q_type size_m size_n size_k is_k_full
    use_atomic_add use_fp32_reduce is_zp_float""".split(),
    optional=["a_scales", "is_ep"],
)
REPACK = ask(
    "vllm", [("vllm._custom_ops", "gptq_marlin_repack")], ["b_q_weight", "perm", "size_k", "size_n", "num_bits"]
)
SCALES = ask("vllm", [(f"{UTILS}.marlin_utils", "marlin_permute_scales")], ["s", "size_k", "size_n", "group_size"])
E8M0 = ask("vllm", [(f"{UTILS}.marlin_utils_fp4", "mxfp4_marlin_process_scales")], ["marlin_scales"])
BIAS = ask("vllm", [(f"{UTILS}.marlin_utils", "marlin_permute_bias")], ["s"])
LOCKS = ask("vllm", [(f"{UTILS}.marlin_utils", "marlin_make_workspace_new")], ["device", "max_blocks_per_sm"])
TYPES = ask("vllm", [("vllm.scalar_type", "scalar_types")], None)
WHY = next((one.why for one in (GEMM, REPACK, SCALES, E8M0, BIAS, LOCKS, TYPES) if one.why), "")
if not WHY:
    import torch


def vllm_block(case):
    mean = case.tokens * case.topk / case.experts
    return next((block for block in (8, 16, 32, 48) if mean / block < 0.9), 64)


def unsupported(case, device):
    if getattr(case, "beta", 1) != 1:
        return f"beta = {case.beta}: vLLM's swigluoai_and_mul adds 1"
    mean = case.tokens * case.topk / case.experts
    block = case.block or (128 if mean > 64 else 8)  # of the operator's own, the only one that Marlin lacks
    if block not in (8, 16, 32, 48, 64):
        return f"block = {block}: Marlin has 8 to 64; give block = {vllm_block(case)}, as vLLM"
    return WHY or None


def prepare(p):
    """Values, scales and biases of each expert as Marlin reads them."""
    mxfp4 = p.weights == "mxfp4"
    _, n, k = p.codes.shape
    k *= 2
    of_k = 128 if hasattr(p, "routing_weights") else 256
    p.n, p.k = (-(-n // 256) * 256, -(-k // of_k) * of_k) if mxfp4 else (n, k)
    pad = torch.nn.functional.pad
    codes = pad(p.codes, [0, (p.k - k) // 2, 0, p.n - n])
    scales = pad(p.scales, [0, (p.k - k) // p.group, 0, p.n - n])
    if mxfp4:
        scales = scales.view(torch.float8_e8m0fnu).to(torch.bfloat16)
    unordered = torch.empty(0, dtype=torch.int32, device=codes.device)
    ws, ss, bs = [], [], []
    for e in range(p.experts):
        of_e = torch.transpose(codes[e].view(torch.int32), 0, 1).contiguous()
        ws.append(REPACK(b_q_weight=of_e, perm=unordered, size_k=p.k, size_n=p.n, num_bits=4)[None])
        s = torch.transpose(scales[e], 0, 1)
        s = SCALES(s=s, size_k=p.k, size_n=p.n, group_size=p.group)
        ss.append((E8M0(marlin_scales=s) if mxfp4 else s)[None])
        if hasattr(p.bias, "shape"):
            bs.append(BIAS(s=pad(p.bias[e], [0, p.n - n]))[None])
    p.w, p.s, p.b = torch.cat(ws), torch.cat(ss), torch.cat(bs) if bs else None
    p.type = TYPES.function.float4_e2m1f if mxfp4 else TYPES.function.uint4b8
    p.locks = LOCKS(device=codes.device, max_blocks_per_sm=4)
    p.unweighted = torch.empty(0, dtype=torch.float32, device=codes.device)


def multiply(p, top_k, weights=None, into=None):
    """[rows, n]. `into`: where that goes if nothing was rounded up."""
    rows, k = p.tokens * p.topk, p.x.shape[1]
    x = p.x if k == p.k else torch.nn.functional.pad(p.x, [0, p.k - k])
    if into is None or into.shape[1] != p.n:
        into = torch.empty((rows, p.n), dtype=p.x.dtype, device=p.x.device)
    return GEMM(
        input=x,
        output=into,
        b_qweight=p.w,
        b_bias=p.b,
        b_scales=p.s,
        a_scales=None,
        global_scale=None,
        b_qzeros=None,
        g_idx=None,
        perm=None,
        workspace=p.locks,
        sorted_token_ids=p.sorted_token_ids,
        expert_ids=p.expert_ids,
        num_tokens_past_padded=p.num_tokens_post_padded,
        topk_weights=p.unweighted if weights is None else weights,
        moe_block_size=rows_per_block(p, p.w),
        top_k=top_k,
        mul_topk_weights=weights is not None,
        is_ep=False,
        b_q_type=p.type,
        size_m=x.shape[0],
        size_n=p.n,
        size_k=p.k,
        is_k_full=True,
        use_atomic_add=False,
        use_fp32_reduce=True,
        is_zp_float=False,
    )


def variant(op, **limits):
    return moegate.variant(
        op, "marlin", prepare=prepare, unsupported=unsupported, allocates=True, requires={"vllm": ""}, **limits
    )


@variant("w4_gate_up", tolerance=4, between=0.004)
def gate_up(p):
    """vLLM's Marlin, then its swigluoai_and_mul"""
    h = multiply(p, p.topk)
    width = p.out.shape[1]
    out = p.out if p.n == 2 * width else torch.empty((h.shape[0], p.n // 2), dtype=h.dtype, device=h.device)
    torch.ops._C.swigluoai_and_mul(out, h, p.alpha, p.limit or math.inf)
    if out is not p.out:
        p.out[:] = out[:, :width]


@variant("w4_down", tolerance=2, between=0.003)
def down(p):
    """vLLM's Marlin, which multiplies by the routing weights"""
    out = multiply(p, 1, p.routing_weights, p.out)
    if p.n != p.out.shape[1]:
        p.out[:] = out[:, : p.out.shape[1]]
