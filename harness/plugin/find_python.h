// SPDX-License-Identifier: Apache-2.0
// The Python that imports a file of kernels: MOEGATE_PYTHON, else python3. Its library is opened at
// run time.
#pragma once

#include <string>

namespace moegate {

struct PythonPlace {
  std::string program, library;  // paths
};

/// Throws Error(usage) where it cannot be run.
PythonPlace find_python();

using PythonMain = int (*)(int argc, char** argv);

/// Throws Error(usage) for one without a shared library, and for one older than Python 3.8.
PythonMain open_python(const PythonPlace& place);

}  // namespace moegate
