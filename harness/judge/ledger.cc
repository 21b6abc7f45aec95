// SPDX-License-Identifier: Apache-2.0
// The ledger of blessings; the other half of baseline.h.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "harness/base/error.h"
#include "harness/base/files.h"
#include "harness/base/sha256.h"
#include "harness/judge/baseline.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;

constexpr int kLastId = 99999999;  // eight digits
constexpr const char* kLedgerHeader =
    "#id\tdate\tkind\tauthor\tclass\tsuite\trun\tcommit\treason\tprogram\tsha256\n";

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

Blessing parse_blessing(const std::string& line, const std::string& place) {
  std::vector<std::string> f = fields_of(line);
  const bool is_id = !f.empty() && f[0].size() >= 2 && f[0].size() <= 9 && f[0][0] == 'B' &&
                     f[0].find_first_not_of("0123456789", 1) == std::string::npos;
  if (!is_id || f.size() < 2) {
    usage_error("{}: '{}' does not start with an id like B0001 and a tab", place, line);
  }
  constexpr size_t kFields = 11;
  if (f.size() > kFields) usage_error("{}: has {} fields, not {}", place, f.size(), kFields);
  f.resize(kFields);  // older lines end before the program, or before the hash
  return {.id = f[0],
          .date = f[1],
          .kind = f[2],
          .author = f[3],
          .klass = f[4],
          .suite = f[5],
          .run = f[6],
          .git_sha = f[7],
          .reason = f[8],
          .program = f[9],
          .sha256 = f[10]};
}

}  // namespace

std::vector<Blessing> read_ledger(const fs::path& ledger) {
  std::error_code ignored;
  std::istringstream in(fs::exists(ledger, ignored) ? read_file(ledger) : "");
  std::vector<Blessing> blessings;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const std::string place = fmt::format("{}:{}", ledger.string(), number);
    if (line.find('\r') != std::string::npos) {
      usage_error("{}: has a carriage return; a ledger's lines end in LF", place);
    }
    if (line.empty() || line[0] == '#') continue;
    blessings.push_back(parse_blessing(line, place));
  }
  return blessings;
}

void check_recorded(const fs::path& path, const std::string& klass, const std::string& suite,
                    const fs::path& ledger) {
  const Blessing* last = nullptr;
  bool hashes = false, expects = false;  // an earlier line has a hash
  const std::vector<Blessing> blessings = read_ledger(ledger);
  for (const Blessing& b : blessings) {
    if (b.klass == klass && b.suite == suite) {
      last = &b;
      expects = hashes;
    }
    hashes = hashes || !b.sha256.empty();
  }
  const std::string remedy =
      "a baseline moves only by `moegate bless`: restore it, or remove it and bless";
  if (last == nullptr) {
    usage_error("{}: {} has no line for class '{}', suite '{}'; {}", path.string(), ledger.string(),
                klass, suite, remedy);
  }
  if (last->sha256.empty() && !expects) return;  // of a program that stated no hash
  const std::string is = sha256(read_file(path));
  if (last->sha256 == is) return;
  usage_error("{}: its SHA-256 is {}, {} blessed {} in {}; {}", path.string(), is, last->id,
              last->sha256.empty() ? "no hash" : last->sha256, ledger.string(), remedy);
}

std::string next_blessing(const fs::path& ledger) {
  int last = 0;
  for (const Blessing& b : read_ledger(ledger)) last = std::max(last, std::stoi(b.id.substr(1)));
  if (last == kLastId) usage_error("{}: B{} is the last id there can be", ledger.string(), last);
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
  const std::array<std::string, 11> fields = {b.id,     b.date,    b.kind,  b.author,
                                              b.klass,  b.suite,   b.run,   b.git_sha,
                                              b.reason, b.program, b.sha256};
  for (size_t i = 0; i < fields.size(); ++i) {
    line += one_field(fields[i]) + (i + 1 < fields.size() ? "\t" : "\n");
  }
  append_to_file(ledger, line);
}

}  // namespace moegate
