// SPDX-License-Identifier: Apache-2.0
// Opens devices: the host itself, and CUDA GPUs where the build and the machine have them.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "harness/kernel/device.h"

namespace moegate {

std::unique_ptr<Device> open_host_device();
/// Defined in device_cuda.cu; in a build without CUDA, no_cuda.cc defines it to throw.
std::unique_ptr<Device> open_cuda_device(int ordinal);
/// Facts of every visible CUDA device; empty without driver, GPU or CUDA build. `why_none` says
/// why.
std::vector<DeviceFacts> cuda_devices(std::string* why_none);

/// The CUDA ordinal a device name means: 0 for "auto" and "cuda", N for "cuda:N", -1 for "host".
/// Throws Error(usage) for another name.
int cuda_ordinal(const std::string& spec);

/// Address on the PCI bus of the first NVIDIA GPU, whether or not a driver serves it; empty
/// for none.
std::string nvidia_gpu(const std::filesystem::path& bus);

/// Whether a device name means the host on this machine: "host", and "auto" where there is no GPU.
/// Throws Error(environment) for "auto" where there is an NVIDIA GPU that cannot be used: a runner
/// that lost its driver must not pass as a host.
bool means_host(const std::string& spec);

/// Opens "host", "cuda", "cuda:N", or "auto" (the first GPU, else the host).
/// Throws Error(usage) for another name, Error(environment) for a GPU that is not there.
std::unique_ptr<Device> open_device(const std::string& spec);

// Devices in somebody else's process: they take what is there and leave it as it was.

/// Pins no thread: these are the caller's.
std::unique_ptr<Device> open_guest_host_device();

/// In the device's primary context, with a stream of the caller's (a cudaStream_t) for its own.
/// Throws Error(environment) for a GPU that is not there.
std::unique_ptr<Device> open_guest_cuda_device(int ordinal, void* stream);

/// Whether what is launched on a stream now is recorded and does not run. Without CUDA: no.
bool is_being_captured(void* stream);

/// Memory of a device that goes with its object.
struct DeviceRelease {
  Device* device;
  void operator()(void* p) const noexcept { device->release(p); }
};
using DeviceMemory = std::unique_ptr<void, DeviceRelease>;

// What a build without CUDA says (no_cuda.cc).

constexpr const char* kNoCuda = "this moegate was built without CUDA";

/// Throws Error(environment): what was asked for, why it is not there, and the remedy.
[[noreturn]] void refuse_cuda(const std::string& what);

}  // namespace moegate
