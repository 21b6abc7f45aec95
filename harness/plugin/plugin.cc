// SPDX-License-Identifier: Apache-2.0
#include "harness/plugin/plugin.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <sstream>

#include "harness/base/error.h"
#include "harness/base/files.h"
#include "harness/kernel/sdk.h"
#include "harness/plugin/python.h"

namespace moegate {
namespace {

constexpr size_t kMostBytes = size_t{4} << 30;

/// The stamp that a file holds; empty: none.
std::string stamp_in(const std::string& file) {
  const std::string bytes = read_file(file, kMostBytes);
  const size_t at = bytes.find(MOEGATE_STAMP_MARK);
  if (at == std::string::npos) return "";
  return bytes.substr(at, bytes.find('\0', at) - at);
}

void open_module(const std::string& file) {
  const std::string stamp = stamp_in(file);
  if (stamp.empty()) {
    usage_error(
        "--kernels {}: is no module of kernels; build one with moegate_add_kernels() "
        "(examples/cpp/README.md), or name a file of Python (.py)",
        file);
  }
  const std::string fault = stamp_fault(stamp, MOEGATE_STAMP);
  if (!fault.empty()) usage_error("--kernels {}: {}", file, fault);
  // Never closed: what it registered is code of it.
  try {
    if (dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr) return;
  } catch (const std::exception& e) {
    usage_error("--kernels {}: fails while it is loaded: {}", file, e.what());
  }
  usage_error("--kernels {}: cannot be loaded: {}", file, dlerror());
}

const Registry& checked_registry(const std::vector<std::string>& files) {
  try {
    return own_registry();
  } catch (const Error& e) {
    if (files.empty()) throw;
    usage_error("--kernels {}: {}", fmt::join(files, ", "), e.what());
  }
}

}  // namespace

std::string stamp_fault(const std::string& theirs, const std::string& ours) {
  std::istringstream their_lines(theirs), our_lines(ours);
  std::string their_fact, our_fact;
  while (std::getline(our_lines, our_fact)) {
    if (!std::getline(their_lines, their_fact)) their_fact = "nothing";
    if (their_fact == our_fact) continue;
    return fmt::format(
        "was built with '{}', this program with '{}'; build the module again with this program's "
        "SDK (CMAKE_PREFIX_PATH) and a compiler of the same kind",
        their_fact, our_fact);
  }
  return "";
}

void with_kernels(const std::vector<std::string>& files,
                  const std::function<void(const Registry&)>& then) {
  std::vector<std::string> python;
  for (const std::string& file : files) {
    if (access(file.c_str(), R_OK) != 0) usage_error("--kernels {}: {}", file, std::strerror(errno));
    if (file.ends_with(".py")) {
      python.push_back(file);
    } else {
      open_module(file);
    }
  }
  if (python.empty()) return then(checked_registry(files));
  with_python(python, [&] { then(attached_to_python(checked_registry(files))); });
}

}  // namespace moegate
