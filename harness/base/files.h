// SPDX-License-Identifier: Apache-2.0
// This file reads whole files with a limit, writes them so that a reader, a crash or a full disk
// never leaves half of one, and names and locks them.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace moegate {

/// Whether a regular file, or a link to one, is there; what cannot be looked at is not.
bool is_file(const std::filesystem::path& path);

/// The content of a regular file. Throws Error(usage) naming the path for what is missing, cannot
/// be read, is a folder, device or pipe, or is longer than `most` bytes.
std::string read_file(const std::filesystem::path& path, size_t most = size_t{64} << 20);

/// Throws Error(usage) for an output that could not be written now: its folder is missing, or
/// one may not write there, or it is a folder itself. To be asked before what is to be written
/// is computed.
void check_output(const std::string& path);

/// Makes `text` the content of `path`. A regular file, or the one that a link leads to, is replaced
/// by a rename after the text is on the disk: a reader sees the old content or the new. What
/// writers that were killed left beside it an hour ago or more is removed. Anything else (a device,
/// a pipe) stays what it is and is written to. Throws Error(usage) naming the path for what cannot
/// be written, and for a link that another user laid in a folder that many write in.
void write_file_atomically(const std::filesystem::path& path, const std::string& text);

/// The same for a path that a user typed for an output: "-" is standard output.
void write_output(const std::string& path, const std::string& text);

/// Appends to a file in one write, which two writers do not mix; makes it where it is missing.
/// Throws Error(usage).
void append_to_file(const std::filesystem::path& path, const std::string& text);

/// Writes all bytes, however often it is interrupted. False, with errno, where it cannot.
bool write_all(int fd, const void* data, size_t bytes) noexcept;

/// Whether a text may name a file in a folder, and nothing elsewhere: no '/', no control
/// characters, and it does not begin with '.' or '-'. What a store or a baseline says becomes a
/// part of a path, or of a command, only so.
bool is_file_name(std::string_view text);

/// 16 hex digits for what is made beside a file: another user cannot lay a link there beforehand.
std::string random_name();

/// A folder of its own, which goes with all that is in it at the end of its scope.
class ScratchFolder {
 public:
  /// `what`: a part of its name. Throws Error(environment) where it cannot be made.
  explicit ScratchFolder(const std::string& what);
  /// In a folder other than that for temporary files, which has to be there.
  ScratchFolder(const std::string& what, const std::filesystem::path& in);
  ~ScratchFolder();
  ScratchFolder(ScratchFolder&&) = delete;
  /// Makes a file in it. Returns its path. Throws Error(usage) where that cannot be written.
  std::string add(const std::string& name, std::string_view content) const;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Locks a file, which is made when missing and stays, or a folder; tries once, or waits until it
/// is free. Of the kind that flock(1) takes in scripts; free as soon as every process that
/// inherited it has ended.
class FileLock {
 public:
  enum class Wait { no, yes };
  explicit FileLock(const std::filesystem::path& path, Wait wait = Wait::no);
  ~FileLock();
  FileLock(FileLock&&) = delete;

  /// False while another process holds it, and where the file cannot be made or is a link.
  bool held() const { return fd_ >= 0; }

 private:
  int fd_;
};

}  // namespace moegate
