// SPDX-License-Identifier: Apache-2.0
#include "harness/base/home.h"

#include <system_error>

#include "harness/base/environment.h"
#include "harness/base/error.h"

namespace moegate {
namespace fs = std::filesystem;
namespace {

bool holds_data(const fs::path& folder) {
  std::error_code ignored;  // an unreadable folder is not ours
  return fs::is_directory(folder / "suites", ignored) &&
         fs::is_directory(folder / "reports", ignored);
}

}  // namespace

fs::path home_of(const fs::path& program) {
  std::error_code error;
  const fs::path whole = fs::weakly_canonical(program, error);
  for (fs::path folder = whole.parent_path(); !folder.empty(); folder = folder.parent_path()) {
    if (holds_data(folder)) return folder;
    if (folder == folder.root_path()) break;
  }
  return {};
}

fs::path home() {
  if (const std::string set = environment("MOEGATE_HOME"); !set.empty()) {
    if (holds_data(set)) return fs::path(set);
    throw Error(Exit::environment,
                fmt::format("MOEGATE_HOME = '{}' does not hold suites/ and reports/; set it to the "
                            "source tree or the installation prefix, or unset it",
                            set));
  }
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path found = home_of(program);
  if (!found.empty()) return found;
  throw Error(
      Exit::environment,
      fmt::format("no folder above '{}' holds suites/ and reports/; set MOEGATE_HOME to the "
                  "source tree or the installation prefix",
                  program.string()));
}

}  // namespace moegate
