// SPDX-License-Identifier: Apache-2.0
// The worker's side of the protocol.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness/kernel/registry.h"

namespace moegate {

/// Calls `then` with what a worker has, the kernels of these files (WorkerOptions::kernels)
/// included; with_kernels() of plugin/plugin.h.
using OpenKernels = std::function<void(const std::vector<std::string>& files,
                                       const std::function<void(const Registry&)>& then)>;

/// Opens the kernels and the device that the runner asks for, then serves its requests until
/// `in_fd` closes. Throws nothing: what goes wrong is the last message.
/// Returns whether nothing did.
bool serve(int in_fd, int out_fd, const OpenKernels& open);

/// `moegate worker`: serves the runner that started this process. Never returns: the process ends
/// here, with whatever threads and contexts a variant left behind. Throws Error(usage) where there
/// is no runner: the pipes to it are not open.
[[noreturn]] void serve_runner();

}  // namespace moegate
