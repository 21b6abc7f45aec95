# SPDX-License-Identifier: Apache-2.0
"""An operator that moegate does not have, wholly in Python: RMS norm, quantised to fp8.

    moegate run --module examples/triton/rmsnorm_fp8.py --suite examples/triton/rmsnorm_fp8.suite

    y[t, i] = x[t, i] / sqrt(mean of x[t, :]^2 + eps) * weight[i]
    scale[t, g] = max(largest |y| of the 128 columns of group g, 1e-10) / 448
    q[t, i] = e4m3 of y[t, i] / scale[t, i / 128], rounded to nearest even

y is not rounded in between. The variants for a GPU are there if torch is, and Triton; the one for the host
(--device host) needs numpy alone.
"""

import moegate
import numpy as np

try:
    import torch
except ImportError:
    torch = None
try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

GROUP = 128  # columns that share a scale factor
LARGEST = 448.0  # of e4m3
LEAST = 1e-10  # what a group's largest value counts as at least


class RmsNormFp8(moegate.Operator):
    name = "rmsnorm_fp8"
    help = "RMS norm of every row, quantised to fp8 with a scale factor per 128"
    parameters = (
        moegate.Param("tokens"),
        moegate.Param("hidden", help="a multiple of 128"),
        moegate.Param("eps", "1e-6", "added to the mean of the squares"),
    )
    yardstick = "numpy"
    before = {"cuda": ["torch_eager"]}

    # The truth of q is not rounded, so the rounding to e4m3 has to pass: half of 2^-3, or 2^-10 where codes
    # are subnormal. Measured: 2.7e-2 over 7168 columns, 3.2e-2 over 128; a factor of 1 +- 2e-3 and 1.2e-2.
    q_tolerance = moegate.Tolerance(rtol=0.07, atol=2e-3, rel_l2=0.04, row=0.05, scale=2e-2)
    scale_tolerance = moegate.Tolerance(rtol=1e-5, atol=0, rel_l2=1e-5, row=1e-5, scale=1e-5)

    def validate(self, case):
        if not isinstance(case.tokens, int) or case.tokens < 1:
            raise ValueError(f"tokens = {case.tokens} is not 1 or more")
        if not isinstance(case.hidden, int) or case.hidden < 1 or case.hidden % GROUP != 0:
            raise ValueError(f"hidden = {case.hidden} is not a multiple of {GROUP}")
        if isinstance(case.eps, str) or case.eps < 0:
            raise ValueError(f"eps = {case.eps} is not 0 or more")

    def tensors(self, case):
        shape = (case.tokens, case.hidden)
        groups = (case.tokens, case.hidden // GROUP)
        return [
            moegate.Input("x", "bf16", shape, moegate.uniform(-2, 2)),
            moegate.Input("weight", "bf16", (case.hidden,), moegate.uniform(0.5, 1.5), role="weight"),
            moegate.Output("q", "fp8", shape, self.q_tolerance),
            moegate.Output("scale", "fp32", groups, self.scale_tolerance),
        ]

    def truth(self, inputs, case):
        x, weight = (inputs[name].astype(np.float64) for name in ("x", "weight"))
        length = np.sqrt((x**2).mean(axis=1, keepdims=True) + case.eps)
        groups = (x / length * weight).reshape(case.tokens, case.hidden // 128, 128)
        scale = np.maximum(abs(groups).max(axis=2), 1e-10) / 448
        return {"q": (groups / scale[:, :, np.newaxis]).reshape(x.shape), "scale": scale}

    def cost(self, case):
        elements = case.tokens * case.hidden
        return moegate.Cost(
            flops=7 * elements,  # a square and its sum, two products, a comparison, a quotient, the code
            read_bytes=2 * elements + 2 * case.hidden,
            write_bytes=elements + 4 * elements / GROUP,
        )

    def corruptions(self):
        def swap_rows(outputs):
            q = outputs["q"]
            q[[0, -1]] = q[[-1, 0]]

        def drop_row(outputs):
            outputs["q"][0] = 0

        def transpose(outputs):
            scale = outputs["scale"]
            scale[:] = scale.T.copy().reshape(scale.shape)

        return {"experts_swapped": swap_rows, "token_dropped": drop_row, "scales_transposed": transpose}


@moegate.variant("rmsnorm_fp8", "numpy", backend="host")
def numpy_rows(p):
    """numpy, 32 rows at a time, so that what lies between the steps stays in the cache"""
    rows_at_once = 32
    weight = moegate.decode(p.weight, "bf16")
    for first in range(0, p.tokens, rows_at_once):
        rows = slice(first, first + rows_at_once)
        x = moegate.decode(p.x[rows], "bf16")
        y = x / np.sqrt((x * x).mean(axis=1, keepdims=True) + p.eps) * weight
        groups = y.reshape(len(y), -1, GROUP)
        scale = np.maximum(np.abs(groups).max(axis=2), LEAST) / LARGEST
        p.q[rows] = moegate.encode(groups / scale[:, :, np.newaxis], "fp8").reshape(y.shape)
        p.scale[rows] = scale


if torch is not None:

    @moegate.variant("rmsnorm_fp8", "torch_eager")
    def torch_eager(p):
        """torch: some 15 operations, one after the other"""
        x = p.x.float()
        y = x * torch.rsqrt(x.square().mean(dim=1, keepdim=True) + p.eps) * p.weight.float()
        groups = y.view(p.tokens, -1, GROUP)
        scale = groups.abs().amax(dim=2).clamp(min=LEAST) / LARGEST
        # Beyond 448 torch's conversion does not saturate.
        codes = (groups / scale.unsqueeze(2)).clamp(-LARGEST, LARGEST)
        p.q.copy_(codes.view(p.q.shape))
        p.scale.copy_(scale)


if torch is not None and triton is not None:
    MOST_GROUPS = 128  # of a row; its values stay in registers, 32 a thread

    @triton.jit
    def normalise_row(x, weight, q, scale, hidden, eps, GROUPS: tl.constexpr):
        row = tl.program_id(0).to(tl.int64)
        group = tl.arange(0, GROUPS)
        column = group[:, None] * 128 + tl.arange(0, 128)[None, :]
        inside = column < hidden
        value = tl.load(x + row * hidden + column, mask=inside, other=0.0).to(tl.float32)
        squares = tl.sum(tl.sum(value * value, axis=1), axis=0)
        factor = tl.load(weight + column, mask=inside, other=0.0).to(tl.float32)
        y = value * tl.rsqrt(squares / hidden + eps) * factor
        group_scale = tl.maximum(tl.max(tl.abs(y), axis=1), 1e-10) / 448.0
        code = tl.clamp(y / group_scale[:, None], -448.0, 448.0)
        tl.store(q + row * hidden + column, code.to(tl.float8e4nv), mask=inside)
        groups = hidden // 128
        tl.store(scale + row * groups + group, group_scale, mask=group < groups)

    def too_wide(case, device):
        if case.hidden > MOST_GROUPS * GROUP:
            return f"hidden = {case.hidden}: a row does not fit in the registers of a program"
        return None

    @moegate.variant("rmsnorm_fp8", "triton_fused", unsupported=too_wide)
    def triton_fused(p):
        """Triton: a program per row, which is read once"""
        groups = triton.next_power_of_2(p.hidden // GROUP)
        warps = max(4, groups // 8)
        normalise_row[(p.tokens,)](
            p.x, p.weight, p.q, p.scale, p.hidden, float(p.eps), GROUPS=groups, num_warps=warps
        )
