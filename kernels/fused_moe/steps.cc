// SPDX-License-Identifier: Apache-2.0
#include "kernels/fused_moe/steps.h"

#include "kernels/moe_gemm/tiles/tile.h"

namespace moegate::fused_moe {
namespace {

/// Hands out memory piece by piece; from null, it only counts.
class Cut {
 public:
  explicit Cut(void* from) : from_(static_cast<std::byte*>(from)) {}

  template <class T>
  T* take(int64_t elements) {
    constexpr size_t kAlignment = 256;
    const size_t at = used_;
    used_ += (static_cast<size_t>(elements) * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
    return from_ ? reinterpret_cast<T*>(from_ + at) : nullptr;
  }
  size_t used() const { return used_; }

 private:
  std::byte* from_;
  size_t used_ = 0;
};

Buffers cut(const FusedMoeShape& shape, DType input, RowOrder order, Cut& memory) {
  const moe_align::MoeAlignShape aligned = shape.align();
  int64_t rows = shape.rows();
  Buffers b{};
  b.sorted_token_ids = memory.take<int32_t>(aligned.capacity());
  b.expert_ids = memory.take<int32_t>(aligned.blocks());
  b.padded_rows = memory.take<int32_t>(1);
  if (order == RowOrder::sorted) {
    b.places = memory.take<int32_t>(rows);
    rows = aligned.capacity();
  } else {
    b.next = memory.take<int32_t>(shape.experts);
    b.h = memory.take<uint16_t>(rows * 2 * shape.inter);
    b.act = memory.take<uint16_t>(rows * shape.inter);
  }
  b.q = memory.take<uint8_t>(rows * shape.inter);
  b.scales = memory.take<float>(rows * (shape.inter / kMoeGroup));
  b.y = memory.take<uint16_t>(rows * shape.hidden);
  if (input == DType::bf16) {
    b.x = memory.take<uint8_t>(int64_t{shape.tokens} * shape.hidden);
    b.x_scales = memory.take<float>(int64_t{shape.tokens} * (shape.hidden / kMoeGroup));
  }
  b.end = memory.take<std::byte>(0);
  return b;
}

}  // namespace

Buffers buffers_at(const FusedMoeShape& shape, DType input, void* workspace, RowOrder order) {
  Cut memory(workspace);
  return cut(shape, input, order, memory);
}

size_t buffer_bytes(const FusedMoeShape& shape, DType input, RowOrder order) {
  Cut memory(nullptr);
  cut(shape, input, order, memory);
  return memory.used();
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
