// SPDX-License-Identifier: Apache-2.0
// A lock that lasts as long as the process that holds it.
#pragma once

#include <filesystem>

namespace moegate {

/// Tries once to lock a file, which is made when missing and stays. Of the kind that flock(1) takes in scripts; free as
/// soon as every process that inherited it has ended.
class FileLock {
 public:
  explicit FileLock(const std::filesystem::path& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  /// False while another process holds it, and where the file cannot be made.
  bool held() const { return fd_ >= 0; }

 private:
  int fd_;
};

}  // namespace moegate
