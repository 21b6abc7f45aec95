// SPDX-License-Identifier: Apache-2.0
#include "harness/base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <re2/re2.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

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
  File(File&&) = delete;

  bool write(std::string_view text) const {
    return fd_ >= 0 && write_all(fd_, text.data(), text.size());
  }
  /// The whole text, and on the disk.
  bool store(const std::string& text) const { return write(text) && ::fsync(fd_) == 0; }

  /// The same behind what is there, or nothing of it: half a line is worse than none.
  bool append(const std::string& text) const {
    struct stat before {};
    if (fd_ < 0 || ::fstat(fd_, &before) != 0) return false;
    if (store(text)) return true;
    const int why = errno;
    take_back(before, text.size());
    errno = why;
    return false;
  }

 private:
  /// What cannot be taken back stays; so does what another has written behind it.
  void take_back(const struct stat& before, size_t most) const {
    struct stat now {};
    if (!S_ISREG(before.st_mode) || ::fstat(fd_, &now) != 0) return;
    if (now.st_size > before.st_size + static_cast<off_t>(most)) return;
    [[maybe_unused]] const int ignored = ::ftruncate(fd_, before.st_size);
  }

  int fd_;
};

/// Whoever may write in a folder may lay a link there that leads to any file of ours. So a link
/// counts that is our own, or of whom the folder belongs to; in a folder that only one writes
/// in, any.
void refuse_link_of_others(const fs::path& link) {
  const fs::path folder = link.has_parent_path() ? link.parent_path() : ".";
  struct stat laid {
  }, in{};
  if (::lstat(link.c_str(), &laid) != 0 || ::stat(folder.c_str(), &in) != 0) return;
  const bool shared = (in.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  if (!shared || laid.st_uid == ::geteuid() || laid.st_uid == in.st_uid) return;
  usage_error("{}: user {} put this link into a folder that others can write to; name another file",
              link.string(), laid.st_uid);
}

/// The file that a chain of links ends at, which need not exist yet.
fs::path behind_links(const fs::path& path) {
  constexpr int kMaxLinks = 40;  // as Linux follows
  std::error_code ignored;
  fs::path target = path;
  for (int i = 0; i < kMaxLinks; ++i) {
    if (!fs::is_symlink(target, ignored)) return target;
    refuse_link_of_others(target);
    target = target.parent_path() / fs::read_symlink(target, ignored);
  }
  errno = ELOOP;
  fail(path);
}

/// Removes what writers of `target` that were killed have left: TARGET.DIGITS.tmp, an hour old. Of
/// earlier versions the digits are a process's number.
void remove_leftovers(const fs::path& target) {
  constexpr auto kOld = std::chrono::hours(1);  // none writes for so long
  const RE2 leftover(RE2::QuoteMeta(target.filename().string()) + "\\.([0-9]+|[0-9a-f]{16})\\.tmp",
                     RE2::Latin1);
  const fs::path folder = target.has_parent_path() ? target.parent_path() : ".";
  std::error_code ignored;  // what cannot be removed does no harm
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string other = entry.path().filename().string();
    if (!RE2::FullMatch(other, leftover)) continue;
    const auto age = fs::file_time_type::clock::now() - fs::last_write_time(entry.path(), ignored);
    if (age > kOld && fs::is_regular_file(entry.symlink_status(ignored)))
      fs::remove(entry.path(), ignored);
  }
}

/// Makes a rename in it last. A file system that cannot do that is as good as it is.
void sync_folder(const fs::path& target) {
  const fs::path folder = target.has_parent_path() ? target.parent_path() : ".";
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

}  // namespace

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

std::string read_file(const fs::path& path, size_t most) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (!fs::exists(status)) usage_error("{}: no such file", path.string());
  if (!fs::is_regular_file(status))
    usage_error("{}: this is not a regular file; name a regular file", path.string());
  std::ifstream in(path, std::ios::binary);
  std::string text;
  std::array<char, 65536> block;
  while (in && text.size() <= most) {
    in.read(block.data(), block.size());
    text.append(block.data(), static_cast<size_t>(in.gcount()));
  }
  if (text.size() > most) {
    usage_error("{}: is longer than {} bytes; name the right file", path.string(), most);
  }
  if (!in.eof()) usage_error("{}: cannot be read: {}", path.string(), std::strerror(errno));
  return text;
}

void check_output(const std::string& path) {
  if (path == "-") return;
  if (path.empty())
    usage_error("an output has an empty path; name a file, or - for standard output");
  std::error_code ignored;
  const fs::path target = behind_links(path);
  const fs::file_status status = fs::status(target, ignored);
  if (fs::is_directory(status)) usage_error("{}: is a folder; name a file in it", path);
  // A regular file is replaced, which is a matter of its folder.
  const bool replaced = !fs::exists(status) || fs::is_regular_file(status);
  const fs::path folder = target.has_parent_path() ? target.parent_path() : ".";
  if (::access(replaced ? folder.c_str() : target.c_str(), W_OK) == 0) return;
  const bool no_folder = errno == ENOENT;
  usage_error("{}: cannot be written: {}: {}{}", path, replaced ? folder.string() : path,
              std::strerror(errno), no_folder ? "; make the folder first" : "");
}

void write_file_atomically(const fs::path& path, const std::string& text) {
  std::error_code ignored;  // what cannot be looked at cannot be written either
  const fs::path target = behind_links(path);
  const fs::file_status status = fs::status(path, ignored);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    // A rename would put a file in the place of a device or a pipe.
    if (!File(path, O_WRONLY).write(text)) fail(path);
    return;
  }
  remove_leftovers(target);
  const fs::path temporary = target.string() + "." + random_name() + ".tmp";
  const bool stored = File(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW).store(text);
  if (!stored || ::rename(temporary.c_str(), target.c_str()) != 0) {
    const int why = errno;
    ::unlink(temporary.c_str());
    errno = why;
    fail(path);
  }
  sync_folder(target);
}

void write_output(const std::string& path, const std::string& text) {
  if (path != "-") return write_file_atomically(path, text);
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) fail("standard output");
}

void append_to_file(const fs::path& path, const std::string& text) {
  behind_links(path);  // refuses those of other users
  if (!File(path, O_WRONLY | O_CREAT | O_APPEND).append(text)) fail(path);
}

bool write_all(int fd, const void* data, size_t bytes) noexcept {
  const char* p = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::write(fd, p, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    p += n;
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

bool is_file_name(std::string_view text) {
  if (text.empty() || text[0] == '.' || text[0] == '-') return false;
  return std::ranges::none_of(text, [](uint8_t c) { return c == '/' || c < ' ' || c == 0x7f; });
}

std::string random_name() {
  uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number) {
    throw Error(Exit::environment, "the system gives no random numbers");
  }
  return fmt::format("{:016x}", number);
}

ScratchFolder::ScratchFolder(const std::string& what)
    : ScratchFolder(what, fs::temp_directory_path()) {}

ScratchFolder::ScratchFolder(const std::string& what, const fs::path& in) {
  std::string name = (in / ("moegate-" + what + "-XXXXXX")).string();
  if (::mkdtemp(name.data()) == nullptr)
    give_up(Exit::environment, "{}: cannot be made; make its folder writable, or set TMPDIR", name);
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string ScratchFolder::add(const std::string& name, std::string_view content) const {
  const fs::path path = path_ / name;
  if (!File(path, O_WRONLY | O_CREAT | O_EXCL).write(content)) fail(path);
  return path.string();
}

FileLock::FileLock(const std::filesystem::path& path, Wait wait)
    : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644)) {
  if (fd_ < 0 && errno == EISDIR) fd_ = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd_ < 0 || ::flock(fd_, wait == Wait::yes ? LOCK_EX : LOCK_EX | LOCK_NB) == 0) return;
  ::close(fd_);
  fd_ = -1;
}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace moegate
