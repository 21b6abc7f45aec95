// SPDX-License-Identifier: Apache-2.0
// silu_mul_quant on the CPU as the two kernels of vLLM and SGLang: activations of all rows first,
// rounded to bf16, then their quantisation. The product is rounded once; vLLM's own rounds
// silu(gate), too. The operator's yardstick.
//
// Accuracy: codes have a relative L2 error of 1.2e-2, worst row 3.3e-2 at I = 256, for a step up or
// down where rounding the activation or the group's largest one moved a quotient over a tie.
#include <algorithm>
#include <cmath>

#include "kernels/silu_mul_quant/host_silu.h"

namespace moegate::silu_mul_quant {
namespace {

void activate_row(const uint16_t* h, int inter, uint16_t* act) {
  for (int i = 0; i < inter; ++i) {
    const float gate = bf16_to_float(h[i]);
    act[i] = float_to_bf16(gate / (1 + std::exp(-gate)) * bf16_to_float(h[inter + i]));
  }
}

void quantise_group(const uint16_t* act, uint8_t* q, float* scale) {
  float amax = kLeastAmax;
  for (int i = 0; i < kQuantGroup; ++i) amax = std::max(amax, std::abs(bf16_to_float(act[i])));
  *scale = amax * (1 / kLargestCode);
  for (int i = 0; i < kQuantGroup; ++i) q[i] = float_to_e4m3(bf16_to_float(act[i]) / *scale);
}

}  // namespace

void run_two_passes(const SiluMulQuantArgs& args, uint16_t* act) {
  const int64_t width = args.shape.inter;
#pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < args.shape.rows; ++r) {
    activate_row(args.h + r * 2 * width, args.shape.inter, act + r * width);
  }
  run_group_quant(args, act);
}

void run_group_quant(const SiluMulQuantArgs& args, const uint16_t* act) {
#pragma omp parallel for schedule(static)
  for (int64_t g = 0; g < int64_t{args.shape.rows} * args.shape.groups(); ++g) {
    quantise_group(act + g * kQuantGroup, args.q + g * kQuantGroup, args.scales + g);
  }
}

namespace {

size_t workspace(const Case& c, const DeviceFacts&) {
  const auto shape = SiluMulQuantShape::of(c);
  return sizeof(uint16_t) * static_cast<size_t>(shape.rows) * static_cast<size_t>(shape.inter);
}

const Kernel<SiluMulQuant> kernel({
    .name = "two_passes",
    .backend = Backend::host,
    .help = "silu and product to bf16, then their quantisation (two kernels in vLLM and SGLang)",
    .launch = [](SiluMulQuant& problem,
                 const Launch&) { run_two_passes(problem.args(), problem.workspace<uint16_t>()); },
    .workspace = workspace,
    .tolerance = SiluMulQuant::kRoundedToBf16,
    .between = SiluMulQuant::kTwiceRounded,
});

}  // namespace
}  // namespace moegate::silu_mul_quant
