// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/first_launches.h"

#include "harness/base/text.h"
#include "harness/store/query_report.h"

namespace moegate {
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

}  // namespace moegate
