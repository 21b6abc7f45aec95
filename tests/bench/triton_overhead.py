# SPDX-License-Identifier: Apache-2.0
"""The span of a Triton kernel in a bare loop, by torch's profiler (CUPTI): what moegate's span of it has to be.

    python3 tests/bench/triton_overhead.py [TOKENS...]

Cold as in moegate: before each launch a sum over twice the L2 cache, and four sets of inputs in turn. Prints the
trimmed mean (10 % at each end) in microseconds, to be put beside
`moegate run --module examples/triton/rmsnorm_fp8.py --suite examples/triton/rmsnorm_fp8.suite`.
"""

import pathlib
import sys
import types

root = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(root / "python"), str(root / "examples" / "triton")]

import rmsnorm_fp8  # noqa: E402
import torch  # noqa: E402

HIDDEN, SETS, LAUNCHES = 7168, 4, 400


def problem(tokens):
    return types.SimpleNamespace(
        tokens=tokens,
        hidden=HIDDEN,
        eps=1e-6,
        x=(4 * torch.rand(tokens, HIDDEN, device="cuda") - 2).bfloat16(),
        weight=(torch.rand(HIDDEN, device="cuda") + 0.5).bfloat16(),
        q=torch.empty(tokens, HIDDEN, device="cuda", dtype=torch.float8_e4m3fn),
        scale=torch.empty(tokens, HIDDEN // 128, device="cuda"),
    )


def spans(tokens):
    flush = torch.zeros(2 * torch.cuda.get_device_properties(0).L2_cache_size // 4, device="cuda")
    sets = [problem(tokens) for _ in range(SETS)]
    for one in sets:
        rmsnorm_fp8.triton_fused(one)
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        for i in range(LAUNCHES):
            flush.sum()
            rmsnorm_fp8.triton_fused(sets[i % SETS])
        torch.cuda.synchronize()
    return sorted(e.device_time for e in profiler.events() if "normalise_row" in e.name)


for tokens in map(int, sys.argv[1:] or ["8", "512", "4096"]):
    values = spans(tokens)
    cut = len(values) // 10
    kept = values[cut:-cut]
    print(f"{tokens} tokens: {sum(kept) / len(kept):.3f} us, {len(values)} launches")
