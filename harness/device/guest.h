// SPDX-License-Identifier: Apache-2.0
// Devices in somebody else's process: they take what is there and leave it as it was.
#pragma once

#include <memory>

#include "harness/kernel/device.h"

namespace moegate {

/// Pins no thread: these are the caller's.
std::unique_ptr<Device> open_guest_host_device();

/// In the device's primary context, with a stream of the caller's (a cudaStream_t) for its own.
/// Throws Error(environment) for a GPU that is not there.
std::unique_ptr<Device> open_guest_cuda_device(int ordinal, void* stream);

/// Whether what is launched on a stream now is recorded and does not run. Without CUDA: no.
bool is_being_captured(void* stream);

}  // namespace moegate
