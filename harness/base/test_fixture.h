// SPDX-License-Identifier: Apache-2.0
// For tests: a folder of their own, a variable that they set, a disk that is full, and a call that
// is refused.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "harness/base/error.h"

namespace moegate::test {

/// A new, empty folder that goes with its content when the object does. No two objects ever share
/// one, so test processes that run at the same time do not disturb each other.
class ScratchFolder {
 public:
  /// Throws std::system_error where testing::TempDir() cannot be written.
  ScratchFolder() {
    std::string path = (std::filesystem::path(testing::TempDir()) / "moegate-XXXXXX").string();
    if (!::mkdtemp(path.data())) {
      throw std::system_error(errno, std::generic_category(), "cannot make a folder " + path);
    }
    path_ = path;
  }
  /// Leaves what cannot be removed: a test does not fail for it.
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::filesystem::path& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

// An environment variable that a test sets.

/// Sets a variable of this process; when the object goes, it is what it was, or unset as it was.
class ScopedVariable {
 public:
  ScopedVariable(std::string name, const std::string& value) : name_(std::move(name)) {
    if (const char* before = ::getenv(name_.c_str())) before_ = before;
    ::setenv(name_.c_str(), value.c_str(), 1);
  }
  ~ScopedVariable() {
    before_ ? ::setenv(name_.c_str(), before_->c_str(), 1) : ::unsetenv(name_.c_str());
  }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  std::string name_;
  std::optional<std::string> before_;
};

/// While it lives, this folder is the current one.
class ScopedCurrentFolder {
 public:
  explicit ScopedCurrentFolder(const std::filesystem::path& folder) {
    std::filesystem::current_path(folder);
  }
  ~ScopedCurrentFolder() {
    std::error_code ignored;
    std::filesystem::current_path(before_, ignored);
  }
  ScopedCurrentFolder(const ScopedCurrentFolder&) = delete;
  ScopedCurrentFolder& operator=(const ScopedCurrentFolder&) = delete;

 private:
  const std::filesystem::path before_ = std::filesystem::current_path();
};

// For tests: a disk that is full.

/// While it lives, no file of this process grows beyond so many bytes: a write ends early, as on a
/// disk that is full.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &now);
  }
  ~FileLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
};

// What tests expect of an error.

/// The message of the Error that `call` throws, which has to have this code; "accepted" where it
/// throws none.
template <class Call>
std::string refusal_of(const Call& call, Exit code = Exit::usage) {
  try {
    call();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    return e.what();
  }
  return "accepted";
}

}  // namespace moegate::test
