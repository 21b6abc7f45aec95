# SPDX-License-Identifier: Apache-2.0
"""topk_sort as a chain of torch operations: eagerly, and compiled by torch.compile.

    moegate run --module examples/triton/topk_torch.py --suite deepseek-r1 --device cuda --filter ^topk_sort/

Takes every case of the operator: softmax, topk_softmax and noaux_tc, renorm, scale, all dtypes, ties and NaN.
No step waits for the GPU and no shape depends on data, so both variants can also be captured into a graph;
what torch allocates on the way comes from its cache, which the launch before has filled.

Needs torch in the Python that moegate uses (MOEGATE_PYTHON), and Triton for `torch_compile`.
"""

import moegate
import torch
import torch._inductor.config

# torch.compile would start processes that compile, with threads here that stay: a variant must leave none.
torch._inductor.config.compile_threads = 1

INFINITY = float("inf")


def descending(scores):
    """Sorted rows, and where their elements were: equal ones by ascending index, unlike torch.topk."""
    return torch.sort(scores, dim=1, descending=True, stable=True)


def softmax_experts(scores, how):
    """Experts [tokens, topk] and their weights: exponentials as shares of the chosen ones' sum, or of all."""
    ordered = descending(scores)
    # Finite also where every logit is -infinity, so that no difference is NaN.
    top = ordered.values[:, :1].clamp(min=-1e38)
    share = torch.exp(ordered.values - top)
    chosen = share[:, : how["topk"]]
    of_all = how["scoring"] == "softmax" and not how["renorm"]
    total = (share if of_all else chosen).sum(dim=1, keepdim=True)
    weights = torch.where(total > 0, chosen / total * how["scale"], 0.0)
    return ordered.indices[:, : how["topk"]], weights


def noaux_tc_experts(scores, bias, how):
    """The same from sigmoids; the bias decides who is chosen, in the best groups, but has no weight."""
    sigmoids = torch.sigmoid(scores)
    groups = (sigmoids + bias).view(scores.shape[0], how["groups"], -1)
    of_groups = groups.topk(2, dim=2).values.sum(dim=2)
    best = descending(of_groups).indices[:, : how["topk_groups"]]
    left_out = torch.ones_like(of_groups, dtype=torch.bool).scatter(1, best, False)
    biased = groups.masked_fill(left_out.unsqueeze(2), -INFINITY).view(scores.shape)
    experts = descending(biased).indices[:, : how["topk"]]
    weights = sigmoids.gather(1, experts)
    if how["renorm"]:
        weights = weights / weights.sum(dim=1, keepdim=True)
    return experts, weights * how["scale"]


def route(logits, bias, sorted_ids, sorted_weights, sorted_expert_ids, num_valid, moe_buf, how):
    """The operator; `how`: its parameters."""
    tokens, topk, unit = how["tokens"], how["topk"], how["unit"]
    scores = logits.float()
    scores = scores.masked_fill(torch.isnan(scores), -INFINITY)
    if how["scoring"] == "noaux_tc":
        experts, weights = noaux_tc_experts(scores, bias, how)
    else:
        experts, weights = softmax_experts(scores, how)

    # Row t * topk + j is slot j of token t. 16 bits: the fewer, the fewer passes a radix sort takes.
    rows = experts.flatten()
    by_expert = torch.sort(rows.to(torch.int16), stable=True)
    expert, row = by_expert.values.long(), by_expert.indices
    # No torch.bincount, which waits for the largest value.
    counts = torch.zeros(how["experts"], dtype=torch.int64, device=rows.device)
    counts = counts.scatter_add(0, rows, torch.ones_like(rows))
    padded = (counts + (unit - 1)) // unit * unit
    ends = padded.cumsum(0)
    # An expert's rows move from where they are without padding to where they are with it.
    moves = (ends - padded) - (counts.cumsum(0) - counts)
    place = torch.arange(tokens * topk, device=rows.device) + moves[expert]

    sorted_ids.fill_(topk << 24 | tokens)
    sorted_ids.scatter_(0, place, ((row % topk) * (1 << 24) + row // topk).to(torch.int32))
    sorted_weights.zero_()
    sorted_weights.scatter_(0, place, weights.flatten()[row])
    # A block's expert is the first whose rows end behind the block's start.
    starts = torch.arange(sorted_expert_ids.shape[0], device=rows.device) * unit
    sorted_expert_ids.copy_(torch.searchsorted(ends, starts, right=True))
    num_valid[:1].copy_(ends[-1:])
    num_valid[1:].fill_(tokens)
    moe_buf.zero_()


HOW = ("tokens", "experts", "topk", "unit", "scoring", "renorm", "groups", "topk_groups", "scale")


def arguments(p):
    # p.logits is the tensor; the parameter of that name, what the logits look like, is p.params["logits"].
    how = {name: getattr(p, name) for name in HOW}
    bias = p.bias if p.scoring == "noaux_tc" else None
    outputs = (p.sorted_ids, p.sorted_weights, p.sorted_expert_ids, p.num_valid, p.moe_buf)
    return (p.logits, bias, *outputs, how)


@moegate.variant("topk_sort", "torch_eager")
def torch_eager(p):
    """torch: some 40 operations, one after the other"""
    route(*arguments(p))


compiled = {}  # the function of the case at hand, by its parameters


def compile_for(p):
    """Compiles, and runs once, so that what is measured neither compiles nor tunes."""
    case = tuple(value for name, value in sorted(p.params.items()) if name != "seed")
    if case not in compiled:
        # All cases share one piece of Python, of which torch keeps a few versions and then compiles no more.
        torch.compiler.reset()
        compiled.clear()
        compiled[case] = torch.compile(route, fullgraph=True, dynamic=False)
    p.route = compiled[case]
    p.route(*arguments(p))


@moegate.variant("topk_sort", "torch_compile", prepare=compile_for)
def torch_compile(p):
    """torch.compile of the same, for the shapes of the case"""
    p.route(*arguments(p))
