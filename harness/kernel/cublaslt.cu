// SPDX-License-Identifier: Apache-2.0
#include "harness/kernel/cublaslt.h"

#include <fmt/format.h>

#include "harness/base/dynlib.h"

namespace moegate {
namespace {

#define MOEGATE_CUBLASLT_FUNCTIONS(X)     \
  X(cublasLtCreate)                       \
  X(cublasLtDestroy)                      \
  X(cublasLtMatmul)                       \
  X(cublasLtMatmulDescCreate)             \
  X(cublasLtMatmulDescDestroy)            \
  X(cublasLtMatmulDescSetAttribute)       \
  X(cublasLtMatrixLayoutCreate)           \
  X(cublasLtMatrixLayoutDestroy)          \
  X(cublasLtMatmulPreferenceCreate)       \
  X(cublasLtMatmulPreferenceDestroy)      \
  X(cublasLtMatmulPreferenceSetAttribute) \
  X(cublasLtMatmulAlgoGetHeuristic)

struct CublasLt {
  Dynlib lib{{fmt::format("libcublasLt.so.{}", CUDART_VERSION / 1000)}};
#define X(name) decltype(&::name) name = nullptr;
  MOEGATE_CUBLASLT_FUNCTIONS(X)
#undef X
  bool usable = false;

  CublasLt() {
    usable = static_cast<bool>(lib);
#define X(name) usable = usable && (name = lib.find(#name)) != nullptr;
    MOEGATE_CUBLASLT_FUNCTIONS(X)
#undef X
  }
};

/// Never closed: its kernels belong to a context that lives until the process ends.
const CublasLt& library() {
  static const CublasLt* instance = new CublasLt;
  return *instance;
}

bool good(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS;
}

template <class T>
bool set(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  return good(library().cublasLtMatmulDescSetAttribute(desc, attribute, &value, sizeof value));
}

}  // namespace

std::string no_cublaslt() {
  if (library().usable) return {};
  return fmt::format(
      "no cuBLASLt: {}; install the CUDA toolkit's libcublas, or set CUDA_HOME to a toolkit",
      library().lib.why());
}

CublasltProduct::CublasltProduct(const CublasltShape& shape) : shape_(shape) {
  ok_ = library().usable && create() && describe() && choose();
}

CublasltProduct::~CublasltProduct() {
  const CublasLt& lt = library();
  if (preference_) lt.cublasLtMatmulPreferenceDestroy(preference_);
  for (const cublasLtMatrixLayout_t layout : {a_, b_, d_}) {
    if (layout) lt.cublasLtMatrixLayoutDestroy(layout);
  }
  if (desc_) lt.cublasLtMatmulDescDestroy(desc_);
  if (handle_) lt.cublasLtDestroy(handle_);
}

bool CublasltProduct::create() {
  const CublasLt& lt = library();
  const auto m = static_cast<uint64_t>(shape_.m), n = static_cast<uint64_t>(shape_.n);
  const auto k = static_cast<uint64_t>(shape_.k);
  return good(lt.cublasLtCreate(&handle_)) &&
         good(lt.cublasLtMatmulDescCreate(&desc_, CUBLAS_COMPUTE_32F, CUDA_R_32F)) &&
         good(lt.cublasLtMatrixLayoutCreate(&a_, shape_.type, k, m, shape_.k)) &&
         good(lt.cublasLtMatrixLayoutCreate(&b_, shape_.type, k, n, shape_.k)) &&
         good(lt.cublasLtMatrixLayoutCreate(&d_, shape_.out, m, n, shape_.m)) &&
         good(lt.cublasLtMatmulPreferenceCreate(&preference_));
}

bool CublasltProduct::describe() {
  const int8_t fast = shape_.type == CUDA_R_8F_E4M3;
  return set(desc_, CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T) &&
         set(desc_, CUBLASLT_MATMUL_DESC_FAST_ACCUM, fast) &&
         (!shape_.a_scale || set(desc_, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, shape_.a_scale)) &&
         (!shape_.b_scale || set(desc_, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, shape_.b_scale)) &&
         (!shape_.bias || (set(desc_, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS) &&
                           set(desc_, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, shape_.out) &&
                           set(desc_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, shape_.bias))) &&
         good(library().cublasLtMatmulPreferenceSetAttribute(
             preference_, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &shape_.workspace_bytes,
             sizeof shape_.workspace_bytes));
}

bool CublasltProduct::choose() {
  int found = 0;
  return good(library().cublasLtMatmulAlgoGetHeuristic(handle_, desc_, a_, b_, d_, d_, preference_,
                                                       1, &chosen_, &found)) &&
         found == 1;
}

bool CublasltProduct::run(const CublasltOperands& operands, cudaStream_t stream) const {
  const float one = 1, zero = 0;
  return good(library().cublasLtMatmul(handle_, desc_, &one, operands.a, a_, operands.b, b_, &zero,
                                       operands.d, d_, operands.d, d_, &chosen_.algo,
                                       operands.workspace, shape_.workspace_bytes, stream));
}

}  // namespace moegate
