// SPDX-License-Identifier: Apache-2.0
#include "harness/plugin/find_python.h"

#include <dlfcn.h>

#include <sstream>

#include "harness/base/environment.h"
#include "harness/base/error.h"
#include "harness/base/subprocess.h"

namespace moegate {
namespace {

/// Prints the interpreter's own path, and that of its library; the second as a name for the loader
/// where no such file is known.
constexpr const char* kWhereIsPython = R"(
import os, sys, sysconfig
get = sysconfig.get_config_var
names = [get('INSTSONAME'), get('LDLIBRARY'), 'libpython%d.%d.so.1.0' % sys.version_info[:2]]
names = [n for n in names if n and '.so' in n]
folders = [get('LIBDIR'), get('LIBPL'), os.path.join(sys.base_prefix, 'lib')]
folders += [os.path.join(f, get('MULTIARCH')) for f in folders if f and get('MULTIARCH')]
files = [os.path.join(f, n) for f in folders if f for n in names]
print(sys.executable)
print(next((f for f in files if os.path.exists(f)), names[-1]))
)";

}  // namespace

PythonPlace find_python() {
  const std::string named = environment("MOEGATE_PYTHON");
  const std::string program = named.empty() ? "python3" : named;
  Finished finished;
  try {
    finished = run_program({program, "-c", kWhereIsPython}, Output::capture);
  } catch (const Error&) {
    finished.exit = 1;
  }
  std::istringstream printed(finished.out);
  PythonPlace place;
  if (finished.exit != 0 || !std::getline(printed, place.program) ||
      !std::getline(printed, place.library)) {
    usage_error(
        "--module: there is no Python to import a .py with: '{}' cannot be run; install "
        "python3 or set MOEGATE_PYTHON",
        program);
  }
  return place;
}

PythonMain open_python(const PythonPlace& place) {
  // Global: modules of Python find its functions there.
  void* library = dlopen(place.library.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!library) {
    usage_error(
        "--module: {} is without its shared library ({}); install it (Debian: libpython3.x; "
        "others: a build with --enable-shared), or set MOEGATE_PYTHON to another Python",
        place.program, dlerror());
  }
  void* main = dlsym(library, "Py_BytesMain");
  if (!main) usage_error("--module: {} is older than Python 3.8", place.library);
  return reinterpret_cast<PythonMain>(main);
}

}  // namespace moegate
