// SPDX-License-Identifier: Apache-2.0
#include "kernels/moe_gemm/fp8/weights_map.h"

#include <cuda_runtime.h>

#include "kernels/cuda/cuda_check.cuh"

namespace moegate::moe_gemm::fp8 {
namespace {

using namespace cuda;

/// cuTensorMapEncodeTiled, asked of the driver at run time: the program also starts without one.
auto encode_function() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  check_cuda(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                              cudaEnableDefault, &found),
             "cuTensorMapEncodeTiled");
  if (found != cudaDriverEntryPointSuccess) {
    throw Error(Exit::environment, "the NVIDIA driver has no cuTensorMapEncodeTiled; update it");
  }
  return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
}

}  // namespace

CUtensorMap matrix_map(const void* data, int64_t rows, int columns, int tile_rows) {
  static const auto encode = encode_function();
  const cuuint64_t size[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t stride[] = {static_cast<cuuint64_t>(columns)};
  const cuuint32_t box[] = {kMoeGroup, static_cast<cuuint32_t>(tile_rows)}, step[] = {1, 1};
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

CUtensorMap weights_map(const MoeGemmArgs& args, int rows) {
  const MoeGemmShape& s = args.shape;
  return matrix_map(args.weights, int64_t{s.experts} * s.n, s.k, rows);
}

CUtensorMap sorted_rows_map(const MoeGemmArgs& args) {
  return matrix_map(args.x, args.shape.capacity(), args.shape.k, args.shape.block);
}

}  // namespace moegate::moe_gemm::fp8
