// SPDX-License-Identifier: Apache-2.0
#include "harness/report/ab_report.h"

#include <algorithm>
#include <iterator>

#include "harness/judge/comparison.h"
#include "harness/report/pr_table.h"

namespace moegate {

GateReport report_of(Store& store, const std::string& db, const Comparison& comparison,
                     const std::function<Limits(Backend)>& limits) {
  GateReport report;
  const RunInfo base = store.run_info(comparison.base_run);
  report.run = store.run_info(comparison.head_run);
  report.db = db;
  const Backend backend = report.run.device.backend;
  report.limits = limits(backend);
  std::map<std::string, Expectation> expected;
  for (const Sides* sides : {&comparison.base, &comparison.head}) {
    for (const auto& [id, side] : *sides) {
      expected[id.suite] = {against_commit(base), "", false, {}};
    }
  }
  for (const auto& [id, side] : comparison.base) expected[id.suite].sides[id] = side;
  Setting setting{report.limits, backend == Backend::host, comparison.interrupted};
  setting.trust_code = comparison.trust_code;
  setting.paired = true;
  report.result = judge(comparison.head, expected, setting, comparison.decided);
  std::ranges::copy(comparison.changed, std::back_inserter(report.result.changed));
  add_lacking(report.result, comparison.lacking);
  PrTables tables =
      read_pr_tables(store, comparison.base_run, comparison.head_run, comparison.pair);
  tables.result = report.result;
  tables.limits = report.limits;
  report.ab = pr_sections(tables);
  report.throttle = throttle_summary(store, comparison.head_run);
  return report;
}

}  // namespace moegate
