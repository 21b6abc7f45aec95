// SPDX-License-Identifier: Apache-2.0
// Ceilings of a GPU, measured: memory bandwidth, and dense matrix products by cuBLASLt when it is
// there. The fastest of several runs counts: a ceiling that a kernel can beat would be useless.
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <functional>

#include "harness/base/rng.h"
#include "harness/device/open.h"
#include "harness/kernel/cublaslt.h"
#include "harness/kernel/cuda_check.h"
#include "harness/timing/cuda/cuda_event.h"
#include "harness/timing/cuda/read_kernel.cuh"
#include "harness/timing/probe.h"

namespace moegate {
namespace {

constexpr size_t kSweepBytes = size_t{2} << 30;  // long enough that launch and tail vanish
constexpr int kEdge = 8192;                      // of the matrix product: fills every SM for 1 ms
constexpr size_t kWorkspaceBytes = size_t{64} << 20;
constexpr int kWarmUps = 5, kRuns = 10;

DeviceMemory memory_of(Device& device, size_t bytes) {
  return {device.allocate(bytes), {&device}};
}

/// Shortest of kRuns, in seconds. Long runs: the 0.5 us of an event does not matter.
double fastest(cudaStream_t stream, const std::function<void()>& work) {
  CudaEvent start, end;
  for (int i = 0; i < kWarmUps; ++i) work();
  double least_ms = 0;
  for (int i = 0; i < kRuns; ++i) {
    start.record(stream);
    work();
    end.record(stream);
    end.wait();
    const double ms = end.ms_since(start);
    least_ms = i == 0 ? ms : std::min(least_ms, ms);
  }
  return 1e-3 * least_ms;
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
  const DeviceMemory memory = memory_of(device, kSweepBytes);
  device.fill(memory.get(), 0x5a, kSweepBytes);
  auto* vectors = static_cast<uint4*>(memory.get());
  const double read = fastest(stream, [&] {
    read_kernel<<<device.facts().processors * 8, 256, 0, stream>>>(
        vectors, kSweepBytes / sizeof(uint4), &vectors->x);
    MOEGATE_CUDA_CHECK(cudaGetLastError());
  });
  ceilings["read_bytes_per_s"] = static_cast<double>(kSweepBytes) / read;
  constexpr size_t kHalf = kSweepBytes / 2;
  const double copy = fastest(stream, [&] {
    MOEGATE_CUDA_CHECK(cudaMemcpyAsync(vectors, vectors + kHalf / sizeof(uint4), kHalf,
                                       cudaMemcpyDeviceToDevice, stream));
  });
  ceilings["copy_bytes_per_s"] = 2.0 * static_cast<double>(kHalf) / copy;
}

/// A kEdge^3 product; leaves `flops` where cuBLASLt has none.
template <class T>
void measure_product(Device& device, cudaDataType_t type, double* flops) {
  constexpr size_t kCount = size_t{kEdge} * kEdge;
  const auto stream = static_cast<cudaStream_t>(device.stream());
  const CublasltProduct product(
      {.type = type, .m = kEdge, .n = kEdge, .k = kEdge, .workspace_bytes = kWorkspaceBytes});
  if (!product.ok()) return;
  const DeviceMemory a = memory_of(device, kCount * sizeof(T));
  const DeviceMemory b = memory_of(device, kCount * sizeof(T));
  const DeviceMemory d = memory_of(device, kCount * sizeof(__nv_bfloat16));
  const DeviceMemory workspace = memory_of(device, kWorkspaceBytes);
  random_kernel<<<1024, 256, 0, stream>>>(static_cast<T*>(a.get()), kCount, 1);
  random_kernel<<<1024, 256, 0, stream>>>(static_cast<T*>(b.get()), kCount, 2);
  MOEGATE_CUDA_CHECK(cudaGetLastError());
  bool ok = true;
  const double seconds = fastest(stream, [&] {
    ok = ok && product.run({a.get(), b.get(), d.get(), workspace.get()}, stream);
  });
  if (ok) *flops = 2.0 * kEdge * static_cast<double>(kCount) / seconds;
}

}  // namespace

std::map<std::string, double> measure_cuda_ceilings(Device& device) {
  std::map<std::string, double> ceilings;
  try {
    measure_bandwidth(device, ceilings);
    double bf16 = 0, fp8 = 0;
    measure_product<__nv_bfloat16>(device, CUDA_R_16BF, &bf16);
    if (bf16 > 0) ceilings["bf16_flops"] = bf16;
    measure_product<__nv_fp8_e4m3>(device, CUDA_R_8F_E4M3, &fp8);
    if (fp8 > 0) ceilings["fp8_flops"] = fp8;
  } catch (const Error&) {
    // A device too small or too busy for the probe: what is in the map was measured.
  }
  return ceilings;
}

}  // namespace moegate
