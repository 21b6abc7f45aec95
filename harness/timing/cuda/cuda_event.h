// SPDX-License-Identifier: Apache-2.0
// A CUDA event that goes with its object.
#pragma once

#include <cuda_runtime_api.h>

#include <utility>

#include "harness/kernel/cuda_check.h"

namespace moegate {

class CudaEvent {
 public:
  CudaEvent() { MOEGATE_CUDA_CHECK(cudaEventCreate(&event_)); }
  ~CudaEvent() {
    if (event_) cudaEventDestroy(event_);
  }
  CudaEvent(CudaEvent&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  CudaEvent& operator=(CudaEvent&&) = delete;

  void record(cudaStream_t stream) { MOEGATE_CUDA_CHECK(cudaEventRecord(event_, stream)); }
  /// Whether the device has done what was enqueued before it.
  bool reached() const {
    const cudaError_t status = cudaEventQuery(event_);
    if (status == cudaErrorNotReady) {
      cudaGetLastError();  // else the next launch would be told of it
      return false;
    }
    MOEGATE_CUDA_CHECK(status);
    return true;
  }
  void wait() const { MOEGATE_CUDA_CHECK(cudaEventSynchronize(event_)); }
  double ms_since(const CudaEvent& start) const {
    float ms = 0;
    MOEGATE_CUDA_CHECK(cudaEventElapsedTime(&ms, start.event_, event_));
    return static_cast<double>(ms);
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace moegate
