// SPDX-License-Identifier: Apache-2.0
// Ceilings of a GPU, measured: memory bandwidth, and dense matrix products by cuBLASLt when it is
// there. The fastest of several runs counts: a ceiling that a kernel can beat would be useless.
#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <functional>

#include "harness/cuda_check.h"
#include "harness/dynlib.h"
#include "harness/probe.h"
#include "harness/read_kernel.cuh"
#include "harness/rng.h"

namespace moegate {
namespace {

constexpr size_t kSweepBytes = size_t{2} << 30;  // long enough that launch and tail vanish
constexpr int kEdge = 8192;                      // of the matrix product: fills every SM for 1 ms
constexpr size_t kWorkspaceBytes = size_t{64} << 20;
constexpr int kWarmUps = 5, kRuns = 10;

class Memory {
 public:
  Memory(Device& device, size_t bytes) : device_(device), data_(device.allocate(bytes)) {}
  ~Memory() { device_.release(data_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  Device& device_;
  void* data_;
};

/// Shortest of kRuns, in seconds. Long runs: the 0.5 us of an event does not matter.
double fastest(cudaStream_t stream, const std::function<void()>& work) {
  cudaEvent_t start = nullptr, end = nullptr;
  MOEGATE_CUDA_CHECK(cudaEventCreate(&start));
  MOEGATE_CUDA_CHECK(cudaEventCreate(&end));
  for (int i = 0; i < kWarmUps; ++i) work();
  float least = 0;
  for (int i = 0; i < kRuns; ++i) {
    cudaEventRecord(start, stream);
    work();
    cudaEventRecord(end, stream);
    MOEGATE_CUDA_CHECK(cudaEventSynchronize(end));
    float ms = 0;
    MOEGATE_CUDA_CHECK(cudaEventElapsedTime(&ms, start, end));
    least = i == 0 ? ms : std::min(least, ms);
  }
  cudaEventDestroy(start);
  cudaEventDestroy(end);
  return 1e-3 * static_cast<double>(least);
}

// Random, not zeros: an 8192^3 product is 13 % faster on zeros than on data.
template <class T>
__global__ void random_kernel(T* data, size_t count, uint64_t stream) {
  const size_t stride = size_t{gridDim.x} * blockDim.x;
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    const auto u = static_cast<float>(random_uniform(1, stream, i));
    data[i] = T(2 * u - 1);
  }
}

void measure_bandwidth(Device& device, std::map<std::string, double>& ceilings) {
  const auto stream = static_cast<cudaStream_t>(device.stream());
  const Memory memory(device, kSweepBytes);
  device.fill(memory.as<void>(), 0x5a, kSweepBytes);
  const auto* vectors = memory.as<uint4>();
  const double read = fastest(stream, [&] {
    read_kernel<<<device.facts().processors * 8, 256, 0, stream>>>(
        vectors, kSweepBytes / sizeof(uint4), memory.as<unsigned>());
    MOEGATE_CUDA_CHECK(cudaGetLastError());
  });
  ceilings["read_bytes_per_s"] = static_cast<double>(kSweepBytes) / read;
  constexpr size_t kHalf = kSweepBytes / 2;
  const double copy = fastest(stream, [&] {
    MOEGATE_CUDA_CHECK(cudaMemcpyAsync(memory.as<char>(), memory.as<char>() + kHalf, kHalf,
                                       cudaMemcpyDeviceToDevice, stream));
  });
  ceilings["copy_bytes_per_s"] = 2.0 * static_cast<double>(kHalf) / copy;
}

#define MOEGATE_CUBLASLT_FUNCTIONS(X)                                                          \
  X(cublasLtCreate)                                                                            \
  X(cublasLtDestroy)                                                                           \
  X(cublasLtMatmul)                                                                            \
  X(cublasLtMatmulDescCreate)                                                                  \
  X(cublasLtMatmulDescDestroy) X(cublasLtMatmulDescSetAttribute) X(cublasLtMatrixLayoutCreate) \
      X(cublasLtMatrixLayoutDestroy) X(cublasLtMatmulPreferenceCreate)                         \
          X(cublasLtMatmulPreferenceDestroy) X(cublasLtMatmulPreferenceSetAttribute)           \
              X(cublasLtMatmulAlgoGetHeuristic)

struct CublasLt {
  Dynlib lib{{"libcublasLt.so.13", "libcublasLt.so"}};
#define X(name) decltype(&::name) name = nullptr;
  MOEGATE_CUBLASLT_FUNCTIONS(X)
#undef X
  bool usable = false;

  CublasLt() {
    usable = static_cast<bool>(lib);
#define X(name) usable = usable && lib.bind(name, #name);
    MOEGATE_CUBLASLT_FUNCTIONS(X)
#undef X
  }
};

/// One kEdge^3 product D = A^T B, the layout that fp8 needs; owns cuBLASLt's descriptors.
class Product {
 public:
  Product(const CublasLt& lt, cudaDataType_t type) : lt_(lt) {
    ok_ = good(lt_.cublasLtCreate(&handle_)) &&
          good(lt_.cublasLtMatmulDescCreate(&desc_, CUBLAS_COMPUTE_32F, CUDA_R_32F)) &&
          good(lt_.cublasLtMatrixLayoutCreate(&in_, type, kEdge, kEdge, kEdge)) &&
          good(lt_.cublasLtMatrixLayoutCreate(&out_, CUDA_R_16BF, kEdge, kEdge, kEdge)) &&
          good(lt_.cublasLtMatmulPreferenceCreate(&preference_)) && describe(type) && choose();
  }
  ~Product() {
    if (preference_) lt_.cublasLtMatmulPreferenceDestroy(preference_);
    if (out_) lt_.cublasLtMatrixLayoutDestroy(out_);
    if (in_) lt_.cublasLtMatrixLayoutDestroy(in_);
    if (desc_) lt_.cublasLtMatmulDescDestroy(desc_);
    if (handle_) lt_.cublasLtDestroy(handle_);
  }
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  bool ok() const { return ok_; }
  void run(const void* a, const void* b, void* d, void* workspace, cudaStream_t stream) {
    const float one = 1, zero = 0;
    ok_ = ok_ && good(lt_.cublasLtMatmul(handle_, desc_, &one, a, in_, b, in_, &zero, d, out_, d,
                                         out_, &chosen_.algo, workspace, kWorkspaceBytes, stream));
  }

 private:
  static bool good(cublasStatus_t status) { return status == CUBLAS_STATUS_SUCCESS; }
  bool describe(cudaDataType_t type) {
    const cublasOperation_t transpose = CUBLAS_OP_T;
    const int8_t fast = type == CUDA_R_8F_E4M3;  // partial sums in the tensor core: fp8's top rate
    return good(lt_.cublasLtMatmulDescSetAttribute(desc_, CUBLASLT_MATMUL_DESC_TRANSA, &transpose,
                                                   sizeof transpose)) &&
           good(lt_.cublasLtMatmulDescSetAttribute(desc_, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast,
                                                   sizeof fast)) &&
           good(lt_.cublasLtMatmulPreferenceSetAttribute(preference_,
                                                         CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                         &kWorkspaceBytes, sizeof kWorkspaceBytes));
  }
  bool choose() {
    int found = 0;
    return good(lt_.cublasLtMatmulAlgoGetHeuristic(handle_, desc_, in_, in_, out_, out_,
                                                   preference_, 1, &chosen_, &found)) &&
           found == 1;
  }

  const CublasLt& lt_;
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t desc_ = nullptr;
  cublasLtMatrixLayout_t in_ = nullptr, out_ = nullptr;
  cublasLtMatmulPreference_t preference_ = nullptr;
  cublasLtMatmulHeuristicResult_t chosen_{};
  bool ok_ = false;
};

template <class T>
void measure_product(Device& device, const CublasLt& lt, cudaDataType_t type, double* flops) {
  constexpr size_t kCount = size_t{kEdge} * kEdge;
  const auto stream = static_cast<cudaStream_t>(device.stream());
  Product product(lt, type);
  if (!product.ok()) return;
  const Memory a(device, kCount * sizeof(T)), b(device, kCount * sizeof(T));
  const Memory d(device, kCount * sizeof(__nv_bfloat16)), workspace(device, kWorkspaceBytes);
  random_kernel<<<1024, 256, 0, stream>>>(a.as<T>(), kCount, 1);
  random_kernel<<<1024, 256, 0, stream>>>(b.as<T>(), kCount, 2);
  MOEGATE_CUDA_CHECK(cudaGetLastError());
  const double seconds = fastest(stream, [&] {
    product.run(a.as<void>(), b.as<void>(), d.as<void>(), workspace.as<void>(), stream);
  });
  if (product.ok()) *flops = 2.0 * kEdge * static_cast<double>(kCount) / seconds;
}

}  // namespace

std::map<std::string, double> measure_cuda_ceilings(Device& device) {
  std::map<std::string, double> ceilings;
  try {
    measure_bandwidth(device, ceilings);
    const CublasLt lt;
    if (!lt.usable) return ceilings;
    double bf16 = 0, fp8 = 0;
    measure_product<__nv_bfloat16>(device, lt, CUDA_R_16BF, &bf16);
    if (bf16 > 0) ceilings["bf16_flops"] = bf16;
    measure_product<__nv_fp8_e4m3>(device, lt, CUDA_R_8F_E4M3, &fp8);
    if (fp8 > 0) ceilings["fp8_flops"] = fp8;
  } catch (const Error&) {
    // A device too small or too busy for the probe: what is in the map was measured.
  }
  return ceilings;
}

}  // namespace moegate
