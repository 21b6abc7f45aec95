// SPDX-License-Identifier: Apache-2.0
// Dense matrix products by cuBLASLt, which is opened at run time: what ceilings are measured with,
// and a library to stand beside kernels of our own. Knows no operator.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <string>

namespace moegate {

/// Why there is no cuBLASLt here, and how to get it; empty when there is. The first call opens it.
std::string no_cublaslt();

/// A product as cuBLASLt counts, all matrices in columns: D [m, n] = A^T B in bf16, A [k, m] and
/// B [k, n] both of `type`, the only order that it has for fp8. In rows: D [n, m] = B [n, k] times
/// A [m, k] transposed.
struct CublasltShape {
  cudaDataType_t type;
  int m, n, k;
  size_t workspace_bytes;
  const float* a_scale = nullptr;  // on the device, fp8 only; null: 1
  const float* b_scale = nullptr;
};

/// Device pointers, 256-byte aligned.
struct CublasltOperands {
  const void *a, *b;
  void *d, *workspace;
};

/// One product with the algorithm that cuBLASLt thinks best. fp8 is added up in the tensor cores'
/// own accumulators, as engines have it and as its top rate needs.
class CublasltProduct {
 public:
  explicit CublasltProduct(const CublasltShape& shape);
  ~CublasltProduct();
  CublasltProduct(const CublasltProduct&) = delete;
  CublasltProduct& operator=(const CublasltProduct&) = delete;

  /// False where cuBLASLt is missing or has no algorithm for the shape.
  bool ok() const { return ok_; }
  /// Launches it, without allocating or waiting; false when cuBLASLt refused. Needs ok().
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
