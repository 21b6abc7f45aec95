// SPDX-License-Identifier: Apache-2.0
// The grouped GEMMs on the CPU in the structure of aphrodite-engine PR 1603: K is cut into two
// chunks, every other group of 128 each; the output is zeroed first, and each chunk's product is
// rounded to bf16 and added into it there. Where K is one group, the second chunk is empty. What
// the GPU does by atomics in any order happens here in order, one chunk after the other.
//
// Accuracy: relative L2 error 2.4e-3, worst row 2.8e-3, where `gather` has 1.7e-3 and 1.9e-3.
// Loses to `gather` (same runs as stated there): 1.57 and 2.1 x its time in gate_up, T = 1 and
// 16, 1.64 and 1.84 x in down. A CPU has no idle threads that a second chunk would occupy; what is
// left are weights read in pieces of 128 bytes, in two sweeps, and an output written three times.
#include "kernels/moe_gemm/host/product.h"

namespace moegate::moe_gemm::host {
namespace {

constexpr int kSplits = 2;

template <class P>
size_t workspace(const Case& c, const DeviceFacts&) {
  return widened_bytes(P::shape_of(c));
}

void zero_output(const MoeGemmArgs& args) {
#pragma omp for schedule(static)
  for (int r = 0; r < args.shape.rows(); ++r) {
    std::fill_n(args.out + int64_t{r} * args.shape.n, args.shape.n, uint16_t{0});
  }
}

void add_rounded(const MoeGemmArgs& args, const Panel& panel, const float* sums) {
  for (int i = 0; i < panel.rows; ++i) {
    const float weight = routing_weight(args, panel.ids[i]);
    uint16_t* out = args.out + int64_t{panel.ids[i]} * args.shape.n + panel.first_column;
    for (int c = 0; c < panel.columns; ++c) {
      const uint16_t partial = float_to_bf16(weight * sums[i * panel.columns + c]);
      out[c] = float_to_bf16(bf16_to_float(out[c]) + bf16_to_float(partial));
    }
  }
}

template <class P>
void launch(P& problem, const Launch&) {
  const Operands operands = {problem.args(), best_isa(), problem.template workspace<float>()};
#pragma omp parallel
  {
    zero_output(operands.args);
    widen_source_rows(operands);
    for (int split = 0; split < std::min(kSplits, operands.args.shape.k_groups()); ++split) {
      for_panels(operands, [&](Panel panel) {
        panel.groups = {split, kSplits};
        float sums[kPanelRows * kPanelColumns];
        multiply(operands, panel, Scaling::per_column, sums);
        add_rounded(operands.args, panel, sums);
      });
    }
  }
}

/// The root of 3, for three roundings to bf16 in place of one, times 2.56, the most that factors of
/// a row and a column are together: two large parts of a small sum are rounded by as much.
constexpr double kTolerance = 4.5;

template <class P>
KernelSpec<P> spec() {
  return {.name = "split_k2",
          .backend = Backend::host,
          .help = "two interleaved chunks of K, added in bf16 (aphrodite-engine PR 1603)",
          .launch = launch<P>,
          .workspace = workspace<P>,
          .path = isa_path,
          .tolerance = kTolerance,
          .between = rounded_between(2)};
}

const Kernel<MoeGateUp> gate_up(spec<MoeGateUp>());
const Kernel<MoeDown> down(spec<MoeDown>());

}  // namespace
}  // namespace moegate::moe_gemm::host
