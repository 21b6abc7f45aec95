// SPDX-License-Identifier: Apache-2.0
#include "harness/base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "harness/base/error.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path) {
  usage_error("{}: cannot be written: {}", path.string(), std::strerror(errno));
}

class File {
 public:
  File(const fs::path& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool write(const std::string& text) const {
    size_t done = 0;
    while (fd_ >= 0 && done < text.size()) {
      const ssize_t n = ::write(fd_, text.data() + done, text.size() - done);
      if (n < 0 && errno != EINTR) return false;
      done += n > 0 ? static_cast<size_t>(n) : 0;
    }
    return fd_ >= 0;
  }
  /// The whole text, and on the disk.
  bool store(const std::string& text) const { return write(text) && ::fsync(fd_) == 0; }

 private:
  int fd_;
};

/// The file that a chain of links ends at, which need not exist yet.
fs::path behind_links(const fs::path& path) {
  constexpr int kMaxLinks = 40;  // as Linux follows
  std::error_code ignored;
  fs::path target = path;
  for (int i = 0; i < kMaxLinks; ++i) {
    if (!fs::is_symlink(target, ignored)) return target;
    target = target.parent_path() / fs::read_symlink(target, ignored);
  }
  errno = ELOOP;
  fail(path);
}

}  // namespace

void write_file_atomically(const fs::path& path, const std::string& text) {
  std::error_code ignored;  // what cannot be looked at cannot be written either
  const fs::file_status status = fs::status(path, ignored);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    // A rename would put a file in the place of a device or a pipe.
    if (!File(path, O_WRONLY).write(text)) fail(path);
    return;
  }
  const fs::path target = behind_links(path);
  const fs::path temporary = target.string() + fmt::format(".{}.tmp", ::getpid());
  const bool stored = File(temporary, O_WRONLY | O_CREAT | O_TRUNC).store(text);
  if (!stored || ::rename(temporary.c_str(), target.c_str()) != 0) {
    const int why = errno;
    ::unlink(temporary.c_str());
    errno = why;
    fail(path);
  }
}

void write_output(const std::string& path, const std::string& text) {
  if (path != "-") return write_file_atomically(path, text);
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) fail("standard output");
}

void append_to_file(const fs::path& path, const std::string& text) {
  if (!File(path, O_WRONLY | O_CREAT | O_APPEND).store(text)) fail(path);
}

}  // namespace moegate
