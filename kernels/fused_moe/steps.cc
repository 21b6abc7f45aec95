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

Buffers cut_aligned(const FusedMoeShape& shape, Cut& memory) {
  const moe_align::MoeAlignShape aligned = shape.align();
  Buffers b{};
  b.sorted_token_ids = memory.take<int32_t>(aligned.capacity());
  b.expert_ids = memory.take<int32_t>(aligned.blocks());
  b.padded_rows = memory.take<int32_t>(1);
  return b;
}

void cut_quantised(const FusedMoeShape& shape, int64_t rows, Cut& memory, Buffers& b) {
  b.q = memory.take<uint8_t>(rows * shape.inter);
  b.scales = memory.take<float>(rows * (shape.inter / kMoeGroup));
}

void cut_rows(const FusedMoeShape& shape, int64_t rows, Cut& memory, Buffers& b) {
  b.y = memory.take<uint16_t>(rows * shape.hidden);
  b.end = memory.take<std::byte>(0);
}

Buffers cut(const FusedMoeShape& shape, Cut& memory) {
  const int64_t rows = shape.rows();
  Buffers b = cut_aligned(shape, memory);
  b.next = memory.take<int32_t>(shape.experts);
  b.h = memory.take<uint16_t>(rows * 2 * shape.inter);
  b.act = memory.take<uint16_t>(rows * shape.inter);
  cut_quantised(shape, rows, memory, b);
  cut_rows(shape, rows, memory, b);
  return b;
}

Buffers cut_sorted(const FusedMoeShape& shape, Cut& memory) {
  Buffers b = cut_aligned(shape, memory);
  const int64_t places = shape.align().capacity();
  b.places = memory.take<int32_t>(shape.rows());
  cut_quantised(shape, places, memory, b);
  cut_rows(shape, places, memory, b);
  return b;
}

}  // namespace

Buffers buffers_at(const FusedMoeShape& shape, void* workspace) {
  Cut memory(workspace);
  return cut(shape, memory);
}

size_t buffer_bytes(const FusedMoeShape& shape) {
  Cut memory(nullptr);
  cut(shape, memory);
  return memory.used();
}

Buffers sorted_buffers_at(const FusedMoeShape& shape, void* workspace) {
  Cut memory(workspace);
  return cut_sorted(shape, memory);
}

size_t sorted_buffer_bytes(const FusedMoeShape& shape) {
  Cut memory(nullptr);
  cut_sorted(shape, memory);
  return memory.used();
}

size_t workspace(const Case& c, const DeviceFacts&) {
  return buffer_bytes(FusedMoeShape::of(c));
}

std::string tuned_unsupported(const moe_gemm::MoeGemmShape& product, const DeviceFacts& device) {
  const moe_gemm::tiles::TileChoice choice = moe_gemm::tiles::tile_of(product, device);
  if (!choice.why.empty()) return choice.why;
  return choice.kernel->workspace ? choice.config.kernel + " needs memory of its own" : "";
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
