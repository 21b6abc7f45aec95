// SPDX-License-Identifier: Apache-2.0
// Kernels in Python. The interpreter runs in the worker's process, so that its launches share stream,
// graphs and memory with all others; its library is opened at run time. python/moegate is the other
// end. Nothing of Python's C interface is used but its main(): all calls go through ctypes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness/kernel/registry.h"

namespace moegate {

/// Runs the interpreter that MOEGATE_PYTHON names (default: python3) in this process, registers the
/// kernels of these files, calls `then`, and ends the interpreter. Throws what `then` throws, and
/// Error(usage) for a file that cannot be imported, or where there is no such interpreter.
void with_python(const std::vector<std::string>& files, const std::function<void()>& then);

/// The registry, with what Python needs to know of every problem.
Registry attached_to_python(const Registry& registry);

}  // namespace moegate
