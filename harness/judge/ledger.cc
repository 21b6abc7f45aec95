// SPDX-License-Identifier: Apache-2.0
// The ledger of blessings; the other half of baseline.h.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "harness/base/error.h"
#include "harness/base/files.h"
#include "harness/judge/baseline.h"

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

}  // namespace

std::string next_blessing(const fs::path& ledger) {
  std::error_code ignored;
  std::istringstream in(fs::exists(ledger, ignored) ? read_file(ledger) : "");
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
  append_to_file(ledger, line);
}

}  // namespace moegate
