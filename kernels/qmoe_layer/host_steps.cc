// SPDX-License-Identifier: Apache-2.0
#include "kernels/qmoe_layer/host_steps.h"

#include <algorithm>

#include "kernels/topk_sort/host_select.h"

namespace moegate::qmoe_layer {
namespace {

constexpr int kSumColumns = 256;  // of one unit of parallel work

/// Columns [first, first + width) of a token, the values read by `widen`, which knows their type.
template <class Widen>
void add_rows(const WeightedSumArgs& args, int token, int first, int width, float* sums,
              const Widen& widen) {
  std::fill_n(sums, width, 0.0f);
  for (int64_t i = int64_t{token} * args.topk; i < int64_t{token + 1} * args.topk; ++i) {
    const uint16_t* y = args.y + int64_t{args.rows[i]} * args.hidden + first;
    for (int c = 0; c < width; ++c) sums[c] += args.weights[i] * widen(y[c]);
  }
}

}  // namespace

void select_experts(const QmoeLayerArgs& args, const Buffers& buffers) {
  const topk_sort::TopkSortArgs logits = routing(args);
  const int k = args.shape.topk();
#pragma omp for schedule(static)
  for (int t = 0; t < args.shape.tokens(); ++t) {
    const topk_sort::Choice choice = topk_sort::select(logits, t);
    std::copy_n(choice.experts.begin(), k, buffers.ids + int64_t{t} * k);
    std::copy_n(choice.weights.begin(), k, buffers.weights + int64_t{t} * k);
  }
}

void sort_rows(const QmoeLayerArgs& args, const Buffers& buffers) {
  const int rows = args.shape.rows(), experts = args.shape.experts(), k = args.shape.topk();
  const Routed& routed = buffers.routed;
  std::fill_n(buffers.next, experts, 0);
  for (int i = 0; i < rows; ++i) ++buffers.next[buffers.ids[i]];
  for (int e = 0, before = 0; e < experts; ++e) {
    before += buffers.next[e];
    buffers.next[e] = before - buffers.next[e];
  }
  for (int i = 0; i < rows; ++i) {
    const int row = buffers.next[buffers.ids[i]]++;
    routed.row_source[row] = i / k;
    routed.row_expert[row] = buffers.ids[i];
    routed.row_own[i] = i;
    // A token's rows ascend as its experts do.
    int rank = 0;
    for (int j = i / k * k; j < i / k * k + k; ++j) rank += buffers.ids[j] < buffers.ids[i];
    routed.token_rows[i / k * k + rank] = row;
    routed.token_weights[i / k * k + rank] = buffers.weights[i];
  }
}

void sum_rows(const WeightedSumArgs& args) {
#pragma omp for schedule(static) collapse(2)
  for (int token = 0; token < args.tokens; ++token) {
    for (int first = 0; first < args.hidden; first += kSumColumns) {
      const int width = std::min(kSumColumns, args.hidden - first);
      float sums[kSumColumns];
      uint16_t* out = args.out + int64_t{token} * args.hidden + first;
      if (args.dtype == DType::f16) {
        add_rows(args, token, first, width, sums, f16_to_float);
        std::transform(sums, sums + width, out, float_to_f16);
      } else {
        add_rows(args, token, first, width, sums, bf16_to_float);
        std::transform(sums, sums + width, out, float_to_bf16);
      }
    }
  }
}

}  // namespace moegate::qmoe_layer
