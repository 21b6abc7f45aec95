// SPDX-License-Identifier: Apache-2.0
// How the tensor copy engine (TMA) is told of a matrix. Host code, in a header: an operator's
// objects hold all that its launches do.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include "harness/kernel/driver_entry.h"
#include "harness/kernel/kernel.h"
#include "kernels/cuda/cuda_check.cuh"

namespace moegate::cuda {

/// cuTensorMapEncodeTiled. Throws Error(environment) where the driver has none.
inline auto encode_tensor_map() {
  auto* function = of_driver<decltype(cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled", 12000);
  if (function) return function;
  throw Error(Exit::environment, "the NVIDIA driver has no cuTensorMapEncodeTiled; update it");
}

/// A [rows, columns] matrix of bytes, copied in tiles of `tile_rows` x 128 into rows of 128 bytes
/// with the 128-byte swizzle; beyond its edges are zeros. Throws Error(environment) where the
/// driver cannot make one.
inline CUtensorMap matrix_map(const void* data, int64_t rows, int columns, int tile_rows) {
  constexpr cuuint32_t kTileBytes = 128;
  static const auto encode = encode_tensor_map();
  const cuuint64_t size[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t stride[] = {static_cast<cuuint64_t>(columns)};
  const cuuint32_t box[] = {kTileBytes, static_cast<cuuint32_t>(tile_rows)}, step[] = {1, 1};
  CUtensorMap map;
  const CUresult status =
      encode(&map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, const_cast<void*>(data), size, stride, box,
             step, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS) {
    throw Error(Exit::internal, fmt::format("tensor map of [{}, {}] bytes: CUDA error {}", rows,
                                            columns, static_cast<int>(status)));
  }
  return map;
}

}  // namespace moegate::cuda
