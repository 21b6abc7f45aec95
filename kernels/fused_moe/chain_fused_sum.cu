// SPDX-License-Identifier: Apache-2.0
// chip: sm_90 (moe_align by clusters)
// The layer with moe_sum in the down product: every routed row is added to its token's row of the
// output by bf16 atomics (fp8/token_sums.h). Saves writing and reading [R, H], which for many
// tokens is most of what the second half of a layer moves; costs zeroing [T, H], and
// the sum is rounded once per row, in an order that changes from launch to launch. On
// an H200 against chain_tuned: R1 TP8 1.05x at 1024 tokens, nothing at 32, 0.95x at
// one (reports/gallery/nvidia-h200-fp8-moe.md).
#include "kernels/fused_moe/best_parts.h"
#include "kernels/moe_align/launches.h"
#include "kernels/moe_gemm/fp8/token_sums.h"
#include "kernels/moe_gemm/gather/zero_output.h"

namespace moegate::fused_moe {
namespace {

/// The kernel of the down product: prefill where blocks are large enough for it, else the rows
/// stay in shared memory where K is short or wide_tiles does not take so small a block.
struct Down {
  void (*launch)(const moe_gemm::MoeGemmArgs&, const Launch&);
  std::string why;  // it cannot run; empty when it can

  explicit Down(const moe_gemm::MoeGemmShape& shape) {
    namespace fp8 = moe_gemm::fp8;
    if (fp8::prefill_unsupported(shape).empty()) {
      launch = fp8::launch_prefill_token_sums;
    } else if (shape.k_groups() <= 2 || !fp8::wide_tiles_unsupported(shape).empty()) {
      launch = fp8::launch_resident_token_sums;
      why = fp8::resident_rows_unsupported(shape);
    } else {
      launch = fp8::launch_wide_token_sums;
    }
  }
};

void launch(FusedMoe& problem, const Launch& where) {
  const FusedMoeArgs args = problem.args();
  const Buffers buffers = buffers_at(args.shape, problem.input, problem.workspace());
  launch_up_to_activation(problem, buffers, moe_gemm::tiles::tile_of, where);
  moe_gemm::gather::zero_output(args.out, int64_t{args.shape.tokens} * args.shape.hidden,
                                where.stream);
  moe_gemm::MoeGemmArgs down = fused_moe::down(args, buffers);
  down.out = args.out;
  Down(down.shape).launch(down, where);
}

std::string unsupported(const Case& c, const DeviceFacts& device) {
  const FusedMoeShape shape = FusedMoeShape::of(c);
  std::string why = tuned_unsupported(shape.gate_up(), c, device);
  if (why.empty()) why = Down(shape.down()).why;
  return why.empty() ? moe_align::redundant_count_unsupported(shape.rows()) : why;
}

const Kernel<FusedMoe> kernel({
    .name = "chain_fused_sum",
    .backend = Backend::cuda,
    .help = "as chain_tuned, with rows added to their tokens by the down product (bf16 atomics)",
    .launch = launch,
    .workspace = workspace,
    .unsupported = unsupported,
    .path =
        [](const Case& c, const DeviceFacts& device) {
          return moe_gemm::tiles::tile_of(FusedMoeShape::of(c).gate_up(), c, device).path;
        },
    .tolerance = FusedMoe::kOtherSums,
    .between = FusedMoe::kSumsRounded,
});

}  // namespace
}  // namespace moegate::fused_moe
