// SPDX-License-Identifier: Apache-2.0
// The child's side of worker.h.
#pragma once

namespace moegate {

/// Opens the device that the runner asks for, then serves its requests until the pipe closes. Never
/// returns: the process ends here, with whatever threads and contexts a variant left behind.
[[noreturn]] void serve_runner();

}  // namespace moegate
