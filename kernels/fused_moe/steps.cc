// SPDX-License-Identifier: Apache-2.0
#include "kernels/fused_moe/steps.h"

#include "harness/kernel/workspace.h"
#include "kernels/moe_gemm/tiles/tile.h"

namespace moegate::fused_moe {

Buffers buffers_at(const FusedMoeShape& shape, DType input, void* workspace, RowOrder order) {
  WorkspaceCut take(workspace);
  const moe_align::MoeAlignShape aligned = shape.align();
  int64_t rows = shape.rows();
  Buffers b{};
  take(b.sorted_token_ids, aligned.capacity());
  take(b.expert_ids, aligned.blocks());
  take(b.padded_rows, 1);
  if (order == RowOrder::sorted) {
    take(b.places, rows);
    rows = aligned.capacity();
  } else {
    take(b.next, shape.experts);
    take(b.h, rows * 2 * shape.inter);
    take(b.act, rows * shape.inter);
  }
  take(b.q, rows * shape.inter);
  take(b.scales, rows * (shape.inter / kMoeGroup));
  take(b.y, rows * shape.hidden);
  if (input == DType::bf16) {
    take(b.x, int64_t{shape.tokens} * shape.hidden);
    take(b.x_scales, int64_t{shape.tokens} * (shape.hidden / kMoeGroup));
  }
  take(b.end, 0);
  return b;
}

size_t buffer_bytes(const FusedMoeShape& shape, DType input, RowOrder order) {
  return reinterpret_cast<uintptr_t>(buffers_at(shape, input, nullptr, order).end);
}

size_t workspace(const Case& c, const DeviceFacts&) {
  return buffer_bytes(FusedMoeShape::of(c), FusedMoe::input_of(c));
}

std::string tuned_unsupported(const moe_gemm::MoeGemmShape& product, const Case& c,
                              const DeviceFacts& device) {
  const moe_gemm::tiles::TileChoice choice = moe_gemm::tiles::tile_of(product, c, device);
  if (!choice.why.empty()) return choice.why;
  return choice.kernel->workspace ? choice.config.kernel + " needs memory of its own" : "";
}

int64_t elements_to_clear(const FusedMoe& problem) {
  const FusedMoeShape& shape = problem.shape;
  return problem.rank().is_whole() ? 0 : int64_t{shape.rows()} * shape.hidden;
}

moe_align::MoeAlignArgs align(const FusedMoeArgs& args, const Buffers& b) {
  return {args.topk_ids, b.sorted_token_ids, b.expert_ids, b.padded_rows, args.shape.align()};
}

moe_gemm::MoeGemmArgs gate_up(const FusedMoeArgs& args, const Buffers& b) {
  return {.x = args.x,
          .x_scales = args.x_scales,
          .weights = args.w1,
          .weight_scales = args.w1_scales,
          .routing_weights = nullptr,
          .sorted_token_ids = b.sorted_token_ids,
          .expert_ids = b.expert_ids,
          .padded_rows = b.padded_rows,
          .out = b.h,
          .shape = args.shape.gate_up()};
}

silu_mul_quant::SiluMulQuantArgs quantise(const FusedMoeArgs& args, const Buffers& b) {
  return {b.h, b.q, b.scales, {args.shape.rows(), args.shape.inter}};
}

moe_gemm::MoeGemmArgs down(const FusedMoeArgs& args, const Buffers& b) {
  return {.x = b.q,
          .x_scales = b.scales,
          .weights = args.w2,
          .weight_scales = args.w2_scales,
          .routing_weights = args.topk_weights,
          .sorted_token_ids = b.sorted_token_ids,
          .expert_ids = b.expert_ids,
          .padded_rows = b.padded_rows,
          .out = b.y,
          .shape = args.shape.down()};
}

moe_sum::MoeSumArgs sum(const FusedMoeArgs& args, const Buffers& b) {
  return {b.y, args.out, {args.shape.tokens, args.shape.topk, args.shape.hidden, 1}};
}

}  // namespace moegate::fused_moe
