// SPDX-License-Identifier: Apache-2.0
// The parts of a layer on its own memory: where each keeps what it hands on, and its arguments.
#pragma once

#include "kernels/fused_moe/fused_moe.h"
#include "kernels/moe_sum/moe_sum.h"
#include "kernels/silu_mul_quant/silu_mul_quant.h"

namespace moegate::fused_moe {

/// Scratch memory of a chain of all parts, each aligned to 256 bytes.
struct Buffers {
  int32_t *sorted_token_ids, *expert_ids, *padded_rows;  // of moe_align
  int32_t* next;                                         // [E], scratch of moe_align
  uint16_t* h;                                           // [R, 2I]
  uint16_t* act;                                         // [R, I], scratch of silu_mul_quant
  uint8_t* q;                                            // [R, I]
  float* scales;                                         // [R, I/128]
  int32_t* places;                                       // [R]: of each row among the sorted ones
  uint16_t* y;                                           // [R, H]
  uint8_t* x;                                            // [T, H], where x is given in bf16
  float* x_scales;                                       // [T, H/128], as x
  std::byte* end;
};
using moe_gemm::RowOrder;
/// Where the middle of a chain is in sorted order (moe_gemm.h), q, scales and y have a row per
/// place; h, act and next are not there.
Buffers buffers_at(const FusedMoeShape& shape, DType input, void* workspace,
                   RowOrder order = RowOrder::tokens);
size_t buffer_bytes(const FusedMoeShape& shape, DType input, RowOrder order = RowOrder::tokens);

/// The layer's operands with x in e4m3. Where it is given in bf16, a chain's first step writes its
/// codes and scale factors to `buffers`: quantise(arguments, x, where...), of silu_mul_quant.
template <class Quantise, class... Where>
FusedMoeArgs quantise_input(FusedMoe& problem, const Buffers& buffers, Quantise quantise,
                            const Where&... where) {
  FusedMoeArgs args = problem.args();
  if (problem.input != DType::bf16) return args;
  args.x = buffers.x;
  args.x_scales = buffers.x_scales;
  quantise({nullptr, buffers.x, buffers.x_scales, {args.shape.tokens, args.shape.hidden}},
           problem.x_bf16(), where...);
  return args;
}

moe_align::MoeAlignArgs align(const FusedMoeArgs& args, const Buffers& buffers);
moe_gemm::MoeGemmArgs gate_up(const FusedMoeArgs& args, const Buffers& buffers);
silu_mul_quant::SiluMulQuantArgs quantise(const FusedMoeArgs& args, const Buffers& buffers);
moe_gemm::MoeGemmArgs down(const FusedMoeArgs& args, const Buffers& buffers);
moe_sum::MoeSumArgs sum(const FusedMoeArgs& args, const Buffers& buffers);

/// Why a chain cannot launch a product as it is tuned (tile_of()): a chain has no scratch memory
/// for it. Empty when it can.
std::string tuned_unsupported(const moe_gemm::MoeGemmShape& product, const Case& c,
                              const DeviceFacts& device);
/// How many elements of y a chain fills with zeros before its sum reads all R rows: of a rank all
/// of them, since no product writes the rows of others; else none. vLLM clears its buffer, too.
int64_t elements_to_clear(const FusedMoe& problem);

/// `workspace` of the variants that need these buffers and no more.
size_t workspace(const Case& c, const DeviceFacts& device);

}  // namespace moegate::fused_moe
