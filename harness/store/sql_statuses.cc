// SPDX-License-Identifier: Apache-2.0
#include "harness/store/sql_statuses.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "harness/values/result.h"

namespace moegate {
namespace {

/// Which of kWorstFirst were seen; SQLite zeroes it before the first row.
struct SeenStatuses {
  bool seen[kWorstFirst.size()];
};

void statuses_step(sqlite3_context* context, int, sqlite3_value** values) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(values[0]));
  if (!text) return;
  const auto at = std::ranges::find_if(
      kWorstFirst, [&](Status s) { return std::string_view(text) == name_of(s); });
  if (at == kWorstFirst.end()) return sqlite3_result_error(context, "statuses: no status", -1);
  auto* all = static_cast<SeenStatuses*>(sqlite3_aggregate_context(context, sizeof(SeenStatuses)));
  if (!all) return sqlite3_result_error_nomem(context);
  all->seen[at - kWorstFirst.begin()] = true;
}

void statuses_final(sqlite3_context* context) {
  const auto* all = static_cast<const SeenStatuses*>(sqlite3_aggregate_context(context, 0));
  if (!all) return sqlite3_result_null(context);
  std::string names;
  for (size_t i = 0; i < kWorstFirst.size(); ++i) {
    if (!all->seen[i]) continue;
    names += (names.empty() ? "" : ",") + std::string(name_of(kWorstFirst[i]));
  }
  sqlite3_result_text(context, names.c_str(), -1, SQLITE_TRANSIENT);
}

}  // namespace

void add_statuses_function(Database& db) {
  constexpr int kFlags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
  if (sqlite3_create_function_v2(db.handle(), "statuses", 1, kFlags, nullptr, nullptr,
                                 statuses_step, statuses_final, nullptr) != SQLITE_OK) {
    db.fail("cannot add the function statuses()");
  }
}

}  // namespace moegate
