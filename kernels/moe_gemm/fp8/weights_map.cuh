// SPDX-License-Identifier: Apache-2.0
// The operands of a grouped GEMM as the tensor copy engine sees them.
#pragma once

#include "kernels/cuda/tensor_map.cuh"
#include "kernels/moe_gemm/moe_gemm.h"

namespace moegate::moe_gemm::fp8 {

/// All experts' weights as one [E*N, K] matrix, in tiles of `rows` x kSliceBytes.
inline CUtensorMap weights_map(const MoeGemmArgs& args, int rows) {
  const MoeGemmShape& s = args.shape;
  return cuda::matrix_map(args.weights, int64_t{s.experts} * s.n, s.row_bytes(), rows);
}

/// Activations in sorted order, a [capacity, K] matrix, likewise in tiles of BM x kSliceBytes.
inline CUtensorMap sorted_rows_map(const MoeGemmArgs& args) {
  return cuda::matrix_map(args.x, args.shape.capacity(), args.shape.row_bytes(), args.shape.block);
}

}  // namespace moegate::moe_gemm::fp8
