// SPDX-License-Identifier: Apache-2.0
#include "harness/baseline/blessing.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/notes.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;

/// What a blessing writes beside a baseline, until the ledger states it.
constexpr const char* kBlessed = ".blessed";

/// What blessings that were killed have left.
std::vector<fs::path> unfinished(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code ignored;  // what cannot be looked at is refused when it is read
  for (const auto& klass : fs::directory_iterator(folder, ignored)) {
    if (!klass.is_directory(ignored)) continue;
    for (const auto& file : fs::directory_iterator(klass, ignored)) {
      if (file.path().extension() == kBlessed && is_file(file)) files.push_back(file);
    }
  }
  return files;
}

/// A line that is not whole is of a blessing that was killed while it wrote it.
void cut_half_line(const fs::path& ledger) {
  std::error_code ignored;
  const std::string text = fs::exists(ledger, ignored) ? read_file(ledger) : "";
  if (!text.empty() && !text.ends_with('\n')) fs::resize_file(ledger, text.rfind('\n') + 1);
}

/// Puts in place what the ledger states, and removes what it does not.
void finish(const fs::path& ledger) {
  const std::vector<fs::path> left = unfinished(ledger.parent_path());
  if (left.empty()) return;
  cut_half_line(ledger);
  const std::vector<Blessing> blessings = read_ledger(ledger);
  for (const fs::path& file : left) {
    const fs::path baseline = fs::path(file).replace_extension();
    const std::string klass = baseline.parent_path().filename(), suite = baseline.stem();
    const auto last = std::find_if(blessings.rbegin(), blessings.rend(), [&](const Blessing& b) {
      return b.klass == klass && b.suite == suite;
    });
    if (last != blessings.rend() && last->sha256 == sha256(read_file(file))) {
      fs::rename(file, baseline);
      say("{}: is what {} blessed, whose process was killed before it was in place\n",
          baseline.string(), last->id);
    } else {
      fs::remove(file);
    }
  }
}

}  // namespace

BlessingLock::BlessingLock(const fs::path& ledger) try {
  std::error_code ignored;  // the lock below says what is wrong
  fs::create_directories(ledger.parent_path(), ignored);
  // The folder, since the first blessing has no ledger yet; and the ledger, since some file systems
  // lock no folders.
  folder_.emplace(ledger.parent_path(), FileLock::Wait::yes);
  if (is_file(ledger)) ledger_.emplace(fs::canonical(ledger), FileLock::Wait::yes);
  if (!(ledger_ ? *ledger_ : *folder_).held())
    usage_error("{}: cannot be locked; check that you may write there", ledger.string());
  finish(ledger);
} catch (const fs::filesystem_error& e) {
  usage_error("{}: {}", ledger.string(), e.what());
}

void finish_blessings(const fs::path& ledger) {
  if (!unfinished(ledger.parent_path()).empty()) const BlessingLock lock(ledger);
}

void record_blessing(const fs::path& ledger, const fs::path& file, const std::string& text,
                     Blessing blessing) {
  std::error_code error;  // the writes below say what is wrong
  fs::create_directories(file.parent_path(), error);
  const fs::path beside = file.string() + kBlessed;
  write_file_atomically(beside, text);
  blessing.sha256 = sha256(text);
  try {
    append_blessing(ledger, blessing);
  } catch (const Error&) {
    fs::remove(beside, error);
    throw;
  }
  fs::rename(beside, file, error);
  if (error) usage_error("{}: cannot be written: {}", file.string(), error.message());
}

}  // namespace moegate
