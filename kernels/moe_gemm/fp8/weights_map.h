// SPDX-License-Identifier: Apache-2.0
// The operands of a grouped GEMM as the tensor copy engine sees them.
#pragma once

#include <cuda.h>

#include "kernels/moe_gemm/moe_gemm.h"

namespace moegate::moe_gemm::fp8 {

/// A [rows, columns] matrix of bytes, copied in tiles of `tile_rows` x 128 into rows of 128 bytes
/// with the 128-byte swizzle; beyond its edges are zeros. Throws Error(environment) where the
/// driver cannot make one.
CUtensorMap matrix_map(const void* data, int64_t rows, int columns, int tile_rows);

/// All experts' weights as one [E*N, K] matrix of e4m3, in tiles of `rows` x 128.
CUtensorMap weights_map(const MoeGemmArgs& args, int rows);

/// Activations in sorted order, a [capacity, K] matrix of e4m3, likewise in tiles of BM x 128.
CUtensorMap sorted_rows_map(const MoeGemmArgs& args);

}  // namespace moegate::moe_gemm::fp8
