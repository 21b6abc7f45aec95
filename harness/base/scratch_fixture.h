// SPDX-License-Identifier: Apache-2.0
// A folder for what a test writes.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

namespace moegate {

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

}  // namespace moegate
