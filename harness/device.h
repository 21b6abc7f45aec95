// SPDX-License-Identifier: Apache-2.0
// A device: memory, copies, and what it is. Two exist: the host itself, and one CUDA GPU. How a
// launch is timed on it is timer.h's concern.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "harness/random_fill.h"

namespace moegate {

enum class Backend { host, cuda };
const char* name_of(Backend b);

/// "NVIDIA H200" -> "nvidia-h200": a device class that can be a folder.
std::string class_name(const std::string& text);

/// What a device is: facts read once, stored with every run.
struct DeviceFacts {
  Backend backend = Backend::host;
  std::string name;         // "NVIDIA H200", "AMD EPYC ..."
  std::string klass;        // baseline class: "nvidia-h200", "host-amd-epyc-…-avx512-2t"
  std::string uuid;         // "GPU-…"; the host name for the host
  int processors = 0;       // SMs; hardware threads
  int64_t cache_bytes = 0;  // L2; last-level cache
  int64_t memory_bytes = 0;
  int64_t shared_per_block = 0;  // opt-in shared memory per block; 0 on the host
  std::string driver;            // driver and runtime versions; kernel release
};

class Device {
 public:
  virtual ~Device() = default;
  const DeviceFacts& facts() const { return facts_; }

  /// Memory of at least `bytes`, aligned to 256. Throws Error(environment) when there is none.
  virtual void* allocate(size_t bytes) = 0;
  virtual void release(void* p) noexcept = 0;
  virtual void upload(void* to, const void* from, size_t bytes) = 0;    // host to device
  virtual void download(void* to, const void* from, size_t bytes) = 0;  // device to host, waits
  virtual void fill(void* to, uint8_t byte, size_t bytes) = 0;
  /// Writes units [0, units) of a random tensor, where it is.
  virtual void fill_random(void* to, size_t units, const RandomFill& what) = 0;
  /// Waits for all work; throws Error(environment) naming the fault when a kernel failed.
  virtual void synchronize() = 0;
  /// The stream variants launch on (a cudaStream_t); null on the host.
  virtual void* stream() const { return nullptr; }

 protected:
  DeviceFacts facts_;
};

std::unique_ptr<Device> open_host_device();
/// Defined in device_cuda.cu; in a build without CUDA, no_cuda.cc defines it to throw.
std::unique_ptr<Device> open_cuda_device(int ordinal);
/// Facts of every visible CUDA device; empty without driver, GPU or CUDA build. `why_none` says
/// why.
std::vector<DeviceFacts> cuda_devices(std::string* why_none);

/// The CUDA ordinal a device name means: 0 for "auto" and "cuda", N for "cuda:N", -1 for "host".
/// Throws Error(usage) for another name.
int cuda_ordinal(const std::string& spec);

/// Opens "host", "cuda", "cuda:N", or "auto" (the first GPU, else the host).
/// Throws Error(usage) for another name, Error(environment) for a GPU that is not there.
std::unique_ptr<Device> open_device(const std::string& spec);

}  // namespace moegate
