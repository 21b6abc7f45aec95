// SPDX-License-Identifier: Apache-2.0
#include "harness/ab_report.h"

#include "harness/pr_table.h"

namespace moegate {

GateReport report_of(Store& store, const AbOptions& options, const AbResult& result,
                     const std::function<Limits(Backend)>& limits) {
  GateReport report;
  const RunInfo base = store.run_info(result.base_run);
  report.run = store.run_info(result.head_run);
  report.db = options.run.db;
  const Backend backend = report.run.device.backend;
  report.limits = limits(backend);
  std::map<std::string, Expectation> expected;
  for (const Sides* sides : {&result.base, &result.head}) {
    for (const auto& [id, side] : *sides) {
      expected[id.suite] = {
          describe(base) + (base.git_sha.empty() ? "" : " at " + base.git_sha), "", false, {}};
    }
  }
  for (const auto& [id, side] : result.base) expected[id.suite].sides[id] = side;
  Setting setting{report.limits, backend == Backend::host, result.interrupted};
  setting.trust_code = options.trust_code;
  setting.pair = !options.base.variant.empty();
  report.result = judge(result.head, expected, setting, result.decided);
  PrTables tables = read_pr_tables(
      store, result.base_run, result.head_run,
      setting.pair ? std::optional(VariantPair{options.base.variant, options.head.variant})
                   : std::nullopt);
  tables.result = report.result;
  tables.limits = report.limits;
  report.tables = markdown(tables);
  report.throttle = throttle_summary(store, result.head_run);
  return report;
}

}  // namespace moegate
