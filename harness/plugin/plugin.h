// SPDX-License-Identifier: Apache-2.0
// Kernels that are not of this program: modules (.so) built with the SDK, and files of Python.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/kernel/registry.h"

namespace moegate {

/// What is wrong with a module's stamp (kernel/sdk.h), as seen by this program: which fact differs,
/// and what to build again with what. Empty when they agree. Pure; exposed for tests.
std::string stamp_fault(const std::string& theirs, const std::string& ours);

/// Opens files of kernels in this process, for good, and calls `then` with what the program has
/// now: its own operators and variants, and theirs. None: its own. Throws what `then` throws, and
/// Error(usage) naming the file that is no module of kernels, that was built for another program,
/// that cannot be imported, or whose kernels do not fit with the others. A module that dies while
/// it is loaded is such a file, too: a child tries it first. A Python file that ends its process
/// takes the worker along (Error(environment)); a crash in a launch is its row's (13).
void with_kernels(const std::vector<std::string>& files,
                  const std::function<void(const Registry&)>& then);

/// Runs the interpreter that MOEGATE_PYTHON names (default: python3) in this process, registers the
/// kernels of these files, calls `then`, and ends the interpreter. Throws what `then` throws, and
/// Error(usage) for a file that cannot be imported, or where there is no such interpreter. The
/// other end is python/moegate.
void with_python(const std::vector<std::string>& files, const std::function<void()>& then);

/// The registry, with what Python needs to know of every problem.
Registry attached_to_python(const Registry& registry);

/// The Python that loads files of kernels.
struct PythonPlace {
  std::string program, library;  // paths
  std::string version;           // "3.11.2"
};
/// Throws Error(usage) where it cannot be run.
PythonPlace find_python();
/// Of the interpreter that these words start; nothing where it cannot be run.
std::optional<PythonPlace> place_of_python(std::vector<std::string> command);

}  // namespace moegate
