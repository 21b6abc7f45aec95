// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/first_launches.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/text.h"
#include "harness/store/query_report.h"

namespace moegate {
namespace {

// Caches of compilers and other processes change seconds, modules they do not.
constexpr double kTimesAsLong = 2;
constexpr double kSecondsMore = 5;

bool has_python(Store& store, int64_t run) {
  const EnvironmentItems items = store.environment(run);
  return std::ranges::find(items, "python", &EnvironmentItem::kind) != items.end();
}

/// "modules 6 -> 9, 12.1 -> 30.2 s"; empty where nothing differs.
std::string difference(const FirstLaunches& base, const FirstLaunches& head) {
  if (base.cases != head.cases) return "";
  const bool counted = base.modules && head.modules && *base.modules != *head.modules;
  const bool longer =
      head.seconds > kTimesAsLong * base.seconds && head.seconds - base.seconds > kSecondsMore;
  if (!counted && !longer) return "";
  const std::string modules =
      counted ? fmt::format("modules {} -> {}, ", *base.modules, *head.modules) : "";
  return fmt::format("{}{:.1f} -> {:.1f} s", modules, base.seconds, head.seconds);
}

}  // namespace

std::vector<FirstLaunches> first_launches(Store& store, int64_t run) {
  const Table table = run_report(store, find_report("compile"), {.run = run});
  std::vector<FirstLaunches> all;
  for (const std::vector<Table::Cell>& cells : table.rows) {
    const auto cell = [&](const char* name) { return cells.at(*find_column(table, name)).text; };
    all.push_back({cell("suite"), cell("variant"), parse_number<int>(cell("cases")).value_or(0),
                   parse_number<int>(cell("Modules")),
                   parse_number<double>(cell("first_calls_s")).value_or(0)});
  }
  return all;
}

void note_first_launches(Store& store, int64_t base, int64_t head, GateResult& result) {
  if (!has_python(store, base) || !has_python(store, head)) return;
  const std::vector<FirstLaunches> before = first_launches(store, base);
  for (const FirstLaunches& now : first_launches(store, head)) {
    const auto old = std::ranges::find_if(before, [&](const FirstLaunches& other) {
      return other.suite == now.suite && other.variant == now.variant;
    });
    const std::string what = old == before.end() ? "" : difference(*old, now);
    if (what.empty()) continue;
    result.notes.push_back(
        fmt::format("First launches of {} in {}: {}.", now.variant, now.suite, what));
  }
}

}  // namespace moegate
