// SPDX-License-Identifier: Apache-2.0
#include "harness/plugin/plugin.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <sstream>

#include "harness/base/environment.h"
#include "harness/base/error.h"
#include "harness/base/files.h"
#include "harness/kernel/object_code.h"
#include "harness/kernel/sdk.h"
#include "harness/plugin/loaded_files.h"
#include "harness/plugin/process_environment.h"

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

[[noreturn]] void tell_and_end(const char* why) {
  const ssize_t ignored = write(STDOUT_FILENO, why, std::strlen(why));
  _exit(ignored < 0 ? 2 : 1);
}

/// Loads the module in a child process, because nothing can be caught that is thrown while the
/// loader runs. Why it cannot be loaded; empty when it can.
std::string trial(const std::string& file) {
  int ends[2];
  if (pipe(ends) != 0) return "";
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    std::set_terminate([] {
      try {
        std::rethrow_exception(std::current_exception());
      } catch (const std::exception& e) {
        tell_and_end(e.what());
      } catch (...) {
        tell_and_end("it throws an object that is not a std::exception");
      }
    });
    dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);  // what it says of a failure is heard outside
    _exit(0);
  }
  close(ends[1]);
  std::string told;
  char block[512];
  for (ssize_t n; (n = read(ends[0], block, sizeof block)) > 0;)
    told.append(block, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) {
    return fmt::format("dies of signal {} ({}) while it is loaded", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
  }
  return told.empty() ? "" : "fails while it is loaded: " + told;
}

void open_module(const std::string& file) {
  const std::string stamp = stamp_in(file);
  if (stamp.empty()) {
    usage_error(
        "--module {}: this is not a module of kernels; build a module with moegate_add_kernels() "
        "(examples/cpp/README.md), or name a Python file (.py)",
        file);
  }
  const std::string fault = stamp_fault(stamp, MOEGATE_STAMP);
  if (!fault.empty()) usage_error("--module {}: {}", file, fault);
  const std::string why = trial(file);
  if (!why.empty()) usage_error("--module {}: {}", file, why);
  watch_opens(true);
  // Never closed: what it registered is code of it.
  if (dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr) return;
  usage_error("--module {}: cannot be loaded: {}", file, dlerror());
}

const Registry& checked_registry(const std::vector<std::string>& files) {
  try {
    return own_registry();
  } catch (const Error& e) {
    if (files.empty()) throw;
    usage_error("--module {}: {}", fmt::join(files, ", "), e.what());
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
  if (!files.empty()) {
    others_follow([] {
      const std::string files = hash_of(loaded_files());
      const std::string around = hash_of(process_environment());
      return around.empty() ? files : joined_code(files, around);
    });
    for (const std::string& file : files) name_files_below(root_of(file));
    // Both sides of an A/B of commits have a home of their own, with the same names in it.
    if (const std::string home = environment("HOME"); !home.empty()) name_files_below(home);
  }
  for (const std::string& file : files) {
    if (access(file.c_str(), R_OK) != 0)
      usage_error("--module {}: {}; build it, or correct the path", file, std::strerror(errno));
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
