// SPDX-License-Identifier: Apache-2.0
// A lock that lasts as long as the process that holds it.
#pragma once

#include <filesystem>

namespace moegate {

/// Locks a file, which is made when missing and stays, or a folder; tries once, or waits until it is free. Of the kind that flock(1) takes in scripts; free as
/// soon as every process that inherited it has ended.
class FileLock {
 public:
  enum class Wait { no, yes };
  explicit FileLock(const std::filesystem::path& path, Wait wait = Wait::no);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  /// False while another process holds it, and where the file cannot be made or is a link.
  bool held() const { return fd_ >= 0; }

 private:
  int fd_;
};

}  // namespace moegate
