// SPDX-License-Identifier: Apache-2.0
// The parts of a layer on its own memory: where each keeps what it hands on, and its arguments.
#pragma once

#include <type_traits>

#include "kernels/qmoe_layer/qmoe_layer.h"

namespace moegate::qmoe_layer {

/// The routed rows, sorted by expert and then by token, as the other parts read them.
struct Routed {
  int32_t *row_source, *row_expert;  // [R]: token, expert
  int32_t* row_own;                  // [R]: r, the row of a that row r of fc2 reads
  int32_t* token_rows;               // [T, k]: the rows of a token, ascending
  float* token_weights;              // [T, k]: and what they count
};
static_assert(std::has_unique_object_representations_v<Routed>, "a row's identity");

/// Scratch memory of a chain of all parts, each aligned to 256 bytes.
struct Buffers {
  int32_t* ids;    // [T, k]: experts in descending order of logits
  float* weights;  // [T, k]: and what their rows count
  int32_t* next;   // [E], scratch of the host's sort
  Routed routed;
  uint16_t* a;  // [R, I]
  uint16_t* y;  // [R, H]
  std::byte* end;
};
Buffers buffers_at(const QmoeLayerShape& shape, void* workspace);
size_t buffer_bytes(const QmoeLayerShape& shape);
/// `workspace` of the variants that need these buffers and no more.
size_t workspace(const Case& c, const DeviceFacts& device);

/// The end of a layer: out[t] = sum of weights[t, j] * y[rows[t, j]] over j, in this order.
struct WeightedSumArgs {
  const uint16_t* y;     // [R, H]
  const int32_t* rows;   // [T, k]
  const float* weights;  // [T, k]
  uint16_t* out;         // [T, H]
  int tokens, topk, hidden;
  DType dtype;
};
static_assert(std::has_unique_object_representations_v<WeightedSumArgs>, "a row's identity");

/// Of topk_sort's arguments, those that selecting experts needs.
topk_sort::TopkSortArgs routing(const QmoeLayerArgs& args);
qmoe::QmoeArgs fc1(const QmoeLayerArgs& args, const Buffers& buffers);
qmoe::QmoeArgs fc2(const QmoeLayerArgs& args, const Buffers& buffers);
WeightedSumArgs sum(const QmoeLayerArgs& args, const Buffers& buffers);

}  // namespace moegate::qmoe_layer
