// SPDX-License-Identifier: Apache-2.0
#include "kernels/qmoe/eligibility.h"

#include <fmt/format.h>

namespace moegate::qmoe {
namespace {

// Upstream hands more rows to its grouped GEMM: beyond 8 in the PR (SM 9.0), beyond 64 in a later
// change for SM 12.0. Measured here up to 64, to see where one row at a time stops paying.
constexpr int kMaxRows = 64;
constexpr int kFewRows = 4;  // more than these only with matrices of at least
constexpr int kLeastSize = 512;

}  // namespace

int k_iterations(const QmoeShape& shape) {
  return (shape.k + kIterationK - 1) / kIterationK;
}

std::string gemv_unsupported(const QmoeShape& shape, Accumulator accumulator) {
  if (shape.dtype == DType::bf16 && accumulator == Accumulator::fp16) {
    return "dtype = bf16: fp16 accumulators need fp16 activations";
  }
  if (shape.k % kTileK != 0) {
    return fmt::format("K = {} is not a multiple of {}, the tile of the packed weights", shape.k,
                       kTileK);
  }
  if (shape.n % kTileColumns != 0) {
    return fmt::format("N = {} is not a multiple of {}, the columns of a block", shape.n,
                       kTileColumns);
  }
  if (shape.rows() > kMaxRows) {
    return fmt::format("tokens * topk = {} rows exceed {}: left to a grouped GEMM", shape.rows(),
                       kMaxRows);
  }
  if (shape.rows() > kFewRows && (shape.n < kLeastSize || shape.k < kLeastSize)) {
    return fmt::format("tokens * topk = {} rows exceed {} where N = {} or K = {} is below {}",
                       shape.rows(), kFewRows, shape.n, shape.k, kLeastSize);
  }
  return "";
}

std::string split_unsupported(const QmoeShape& shape, Accumulator accumulator) {
  if (shape.dtype != DType::f16) return "dtype = bf16: K is split for fp16 activations only";
  return gemv_unsupported(shape, accumulator);
}

}  // namespace moegate::qmoe
