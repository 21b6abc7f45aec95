// SPDX-License-Identifier: Apache-2.0
// The worker's side of the protocol.
#pragma once

#include "harness/kernel/registry.h"

namespace moegate {

/// Opens the kernels and the device that the runner asks for, then serves its requests until
/// `in_fd` closes. Throws nothing: what goes wrong is the last message.
/// Returns whether nothing did. A test may give the kernels.
bool serve(int in_fd, int out_fd, const Registry* given = nullptr);

/// `moegate worker`: serves the runner that started this process. Never returns: the process ends
/// here, with whatever threads and contexts a variant left behind. Throws Error(usage) where there
/// is no runner: the pipes to it are not open.
[[noreturn]] void serve_runner();

}  // namespace moegate
