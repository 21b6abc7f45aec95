// SPDX-License-Identifier: Apache-2.0
// The ledger of blessings; the other half of baseline.h.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <vector>

#include "harness/base/formats.h"
#include "harness/base/hash.h"
#include "harness/base/notes.h"
#include "harness/baseline/baseline.h"
#include "harness/baseline/waivers.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;

constexpr int kLastId = 99999999;  // eight digits
constexpr const char* kLedgerHeader =
    "#id\tdate\tkind\tauthor\tclass\tsuite\trun\tcommit\treason\tprogram\tsha256\tbefore\n";

/// A field must not end its column or its line.
std::string one_field(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\t' || c == '\n' || c == '\r'; }, ' ');
  return text.empty() ? "-" : text;
}

/// The fields between tabs; "-" is empty.
std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream in(line);
  for (std::string field; std::getline(in, field, '\t');) {
    fields.push_back(field == "-" ? "" : field);
  }
  return fields;
}

/// In the order of a line, which ends with the hash of what stands before it.
constexpr std::array kColumns = {&Blessing::id,      &Blessing::date,    &Blessing::kind,
                                 &Blessing::author,  &Blessing::klass,   &Blessing::suite,
                                 &Blessing::run,     &Blessing::git_sha, &Blessing::reason,
                                 &Blessing::program, &Blessing::sha256};
constexpr size_t kBefore = kColumns.size(), kLedgerFields = kBefore + 1, kFewestFields = 9;

Blessing parse_blessing(const TextPlace& place, const std::string& line,
                        const std::vector<std::string>& f) {
  const bool is_id = !f.empty() && f[0].size() >= 2 && f[0].size() <= 9 && f[0][0] == 'B' &&
                     f[0].find_first_not_of("0123456789", 1) == std::string::npos;
  if (!is_id)
    place.fail("'{}' does not start with an id like B0001 and a tab; restore the ledger", line);
  Blessing blessing;
  for (size_t i = 0; i < std::min(f.size(), kBefore); ++i) blessing.*kColumns.at(i) = f[i];
  return blessing;
}

/// A line that says what stands before it.
struct Link {
  TextPlace place;
  std::string before;
};

void check_chain(const std::string& text, const std::vector<size_t>& begins,
                 const std::vector<Link>& links) {
  const std::vector<std::string> hashes = sha256_before(text, begins);
  for (size_t i = 0; i < links.size(); ++i) {
    if (links[i].before == hashes[i]) continue;
    links[i].place.fail(
        "an earlier line of the ledger has changed since this line was written: somebody edited "
        "the ledger, or merged two branches; take the ledger and the baselines of one branch, and "
        "bless the run of the other branch again");
  }
}

std::string text_of(const fs::path& ledger) {
  std::error_code ignored;
  return fs::exists(ledger, ignored) ? read_file(ledger) : "";
}

const Blessing* last_of(const std::vector<Blessing>& blessings, const std::string& klass,
                        const std::string& suite) {
  const auto last = std::find_if(blessings.rbegin(), blessings.rend(), [&](const Blessing& b) {
    return b.klass == klass && b.suite == suite;
  });
  return last == blessings.rend() ? nullptr : &*last;
}

/// What a blessing writes beside a baseline, until the ledger states it.
constexpr const char* kBlessed = ".blessed";

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

/// Puts in place what the ledger states, and removes what it does not.
void finish(const fs::path& ledger) {
  const std::vector<fs::path> left = unfinished(ledger.parent_path());
  if (left.empty()) return;
  // A line that is not whole is of a blessing that was killed while it wrote it.
  const std::string text = text_of(ledger);
  if (!text.empty() && !text.ends_with('\n')) fs::resize_file(ledger, text.rfind('\n') + 1);
  const std::vector<Blessing> blessings = read_ledger(ledger);
  for (const fs::path& file : left) {
    const fs::path baseline = fs::path(file).replace_extension();
    const std::string klass = baseline.parent_path().filename(), suite = baseline.stem();
    const Blessing* last = last_of(blessings, klass, suite);
    if (last != nullptr && last->sha256 == sha256(read_file(file))) {
      fs::rename(file, baseline);
      say("{}: this file of {} was put into its place now, because the process that blessed it was "
          "killed\n",
          baseline.string(), last->id);
    } else {
      fs::remove(file);
    }
  }
}

}  // namespace

std::vector<Blessing> read_ledger(const fs::path& ledger) {
  const std::string text = text_of(ledger);
  std::istringstream in(text);
  std::vector<Blessing> blessings;
  std::vector<size_t> begins;
  std::vector<Link> links;
  TextPlace place{ledger.string()};
  size_t begin = 0, fewest = kFewestFields;
  for (std::string line; std::getline(in, line); begin += line.size() + 1) {
    ++place.line;
    if (in.eof()) {
      place.fail(
          "the last line of the ledger has no line end, so a part may be missing; restore the "
          "ledger");
    }
    if (line.find('\r') != std::string::npos) {
      place.fail("this line has a carriage return; end the lines of the ledger in LF");
    }
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string> fields = fields_of(line);
    // Older lines end before the program, before the file's hash, or before the hash of what stands
    // before them; none is older than the one before it.
    if (fields.size() < fewest || fields.size() > kLedgerFields) {
      place.fail("this line has {} fields, and a line of the ledger has {}; restore the ledger",
                 fields.size(), kLedgerFields);
    }
    fewest = fields.size();
    blessings.push_back(parse_blessing(place, line, fields));
    if (fields.size() < kLedgerFields) continue;
    begins.push_back(begin);
    links.push_back({place, fields[kBefore]});
  }
  check_chain(text, begins, links);
  return blessings;
}

void check_recorded(const fs::path& path, const std::string& klass, const std::string& suite,
                    const fs::path& ledger) {
  const std::vector<Blessing> blessings = read_ledger(ledger);
  const Blessing* last = last_of(blessings, klass, suite);
  const std::string remedy =
      "only `moegate bless` may change a baseline: restore the file, or remove it and bless";
  if (last == nullptr) {
    usage_error("{}: {} has no line for class '{}', suite '{}'; {}", path.string(), ledger.string(),
                klass, suite, remedy);
  }
  const std::string is = sha256(read_file(path));
  if (last->sha256 == is) return;
  usage_error("{}: its SHA-256 is {}, {} blessed {} in {}; {}", path.string(), is, last->id,
              last->sha256.empty() ? "no hash" : last->sha256, ledger.string(), remedy);
}

std::string next_blessing(const fs::path& ledger) {
  int last = 0;
  for (const Blessing& b : read_ledger(ledger)) last = std::max(last, std::stoi(b.id.substr(1)));
  if (last == kLastId)
    usage_error("{}: the ledger is full, B{} is its last id; begin another ledger", ledger.string(),
                last);
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
  if (!changed) return now.rows.size() < before.rows.size() ? "retire" : "ratchet";
  return only_new ? "record" : "ratchet";
}

void append_blessing(const fs::path& ledger, const Blessing& b) {
  std::error_code ignored;  // the write below says what is wrong
  fs::create_directories(ledger.parent_path(), ignored);
  const std::string before = text_of(ledger);
  std::string line = before.empty() ? kLedgerHeader : "";
  const std::string hash = sha256(before + line);
  for (const auto column : kColumns) line += one_field(b.*column) + "\t";
  append_to_file(ledger, line + hash + "\n");
}

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
  blessing.date = fmt::format("{:%F}", today());
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
