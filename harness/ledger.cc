// SPDX-License-Identifier: Apache-2.0
// The ledger of blessings and the atomic replacement of files; the other half of baseline.h.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "harness/baseline.h"
#include "harness/error.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLedgerHeader =
    "#id\tdate\tkind\tauthor\tclass\tsuite\trun\tcommit\treason\tprogram\n";

/// A field must not end its column or its line.
std::string one_field(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\t' || c == '\n' || c == '\r'; }, ' ');
  return text.empty() ? "-" : text;
}

[[noreturn]] void fail(const fs::path& path) {
  usage_error("{}: cannot be written: {}", path.string(), std::strerror(errno));
}

class File {
 public:
  File(const fs::path& path, int flags) : fd_(::open(path.c_str(), flags, 0644)) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  /// The whole text, and on the disk.
  bool write(const std::string& text) const {
    size_t done = 0;
    while (fd_ >= 0 && done < text.size()) {
      const ssize_t n = ::write(fd_, text.data() + done, text.size() - done);
      if (n < 0 && errno != EINTR) return false;
      done += n > 0 ? static_cast<size_t>(n) : 0;
    }
    return fd_ >= 0 && ::fsync(fd_) == 0;
  }

 private:
  int fd_;
};

}  // namespace

void write_file_atomically(const fs::path& path, const std::string& text) {
  const fs::path temporary = path.string() + fmt::format(".{}.tmp", ::getpid());
  const bool written = File(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC).write(text);
  if (!written || ::rename(temporary.c_str(), path.c_str()) != 0) {
    const int why = errno;
    ::unlink(temporary.c_str());
    errno = why;
    fail(path);
  }
}

std::string next_blessing(const fs::path& ledger) {
  std::ifstream in(ledger);
  int last = 0, number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.empty() || line[0] == '#') continue;
    int id = 0;
    char tab = 0;
    if (std::sscanf(line.c_str(), "B%d%c", &id, &tab) != 2 || tab != '\t') {
      usage_error("{}:{}: '{}' does not start with an id like B0001 and a tab", ledger.string(),
                  number, line);
    }
    last = std::max(last, id);
  }
  return fmt::format("B{:04}", last + 1);
}

std::string blessing_kind(const Baseline& before, const Baseline& now, const std::string& id,
                          double fail_at) {
  if (before.rows.empty()) return "record";
  if (!other_conditions(before.header, now.header).empty()) return "epoch";
  bool only_new = true, changed = false;
  for (const auto& [key, row] : now.rows) {
    const auto old = before.rows.find(key);
    const bool known = old != before.rows.end();
    if (known && row.level / old->second.level - 1 >= fail_at) return "accept_regression";
    changed = changed || row.by == id;
    only_new = only_new && (!known || row.by != id);
  }
  if (!changed) return "retire";
  return only_new ? "record" : "ratchet";
}

void append_blessing(const fs::path& ledger, const Blessing& b) {
  std::error_code ignored;  // the write below says what is wrong
  fs::create_directories(ledger.parent_path(), ignored);
  std::string line = fs::exists(ledger, ignored) ? "" : kLedgerHeader;
  const std::array<std::string, 10> fields = {b.id,    b.date, b.kind,    b.author, b.klass,
                                              b.suite, b.run,  b.git_sha, b.reason, b.program};
  for (size_t i = 0; i < fields.size(); ++i) {
    line += one_field(fields[i]) + (i + 1 < fields.size() ? "\t" : "\n");
  }
  // One append of one line: two that bless at the same time do not mix.
  if (!File(ledger, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC).write(line)) fail(ledger);
}

}  // namespace moegate
