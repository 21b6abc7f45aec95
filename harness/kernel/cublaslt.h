// SPDX-License-Identifier: Apache-2.0
// Dense matrix products by cuBLASLt, which is opened at run time. `doctor` measures ceilings with
// them, and operators compare their kernels with them. Knows no operator.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <string>

namespace moegate {

/// Why there is no cuBLASLt here, and how to get it; empty when there is. The first call opens it.
std::string no_cublaslt();

/// A product in cuBLASLt's terms, where all matrices are column-major: D [m, n] = A^T B + bias [m],
/// with A [k, m] and B [k, n] both of `type`. For fp8 it has no other order. Read row-major:
/// D [n, m] = B [n, k] times A [m, k] transposed.
struct CublasltShape {
  cudaDataType_t type;
  int m, n, k;
  size_t workspace_bytes;
  const float* a_scale = nullptr;  // on the device, fp8 only; null: 1
  const float* b_scale = nullptr;
  cudaDataType_t out = CUDA_R_16BF;  // of D and bias
  const void* bias = nullptr;        // on the device; null: none
};

/// Device pointers, 256-byte aligned.
struct CublasltOperands {
  const void *a, *b;
  void *d, *workspace;
};

/// One product with the algorithm that cuBLASLt thinks best. fp8 products are added up in the
/// tensor cores' own accumulators, as inference engines do. The top rate needs that.
class CublasltProduct {
 public:
  explicit CublasltProduct(const CublasltShape& shape);
  ~CublasltProduct();
  CublasltProduct(const CublasltProduct&) = delete;
  CublasltProduct& operator=(const CublasltProduct&) = delete;

  /// False where cuBLASLt is missing or has no algorithm for the shape.
  bool ok() const { return ok_; }
  /// Launches the product without allocating or waiting; false when cuBLASLt refused. Needs ok().
  [[nodiscard]] bool run(const CublasltOperands& operands, cudaStream_t stream) const;

 private:
  bool create();
  bool describe();
  bool choose();

  const CublasltShape shape_;
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t desc_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, d_ = nullptr;
  cublasLtMatmulPreference_t preference_ = nullptr;
  cublasLtMatmulHeuristicResult_t chosen_{};
  bool ok_ = false;
};

}  // namespace moegate
