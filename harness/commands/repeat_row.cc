// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/repeat_row.h"

#include <algorithm>
#include <filesystem>

#include "harness/base/escape.h"
#include "harness/base/notes.h"
#include "harness/base/text.h"
#include "harness/campaign/run_options.h"
#include "harness/campaign/runner.h"
#include "harness/commands/publish.h"
#include "harness/store/rows.h"
#include "harness/values/provenance.h"

namespace moegate {
namespace {

struct Row {
  std::string suite, key, variant, backend, device;
  Cache cache;
  int protocol;
  std::string git_sha;
  RunOptions options;
};

Row find_row(Store& store, int64_t id) {
  Statement query(
      store.database(),
      "SELECT run_case.suite, key, variant, run.protocol, git_sha, options, device.backend, "
      "params ->> 'cache' = 'warm' AS warm, "
      "ifnull(':' || CAST(metric.value AS INTEGER), '') AS which_gpu "
      "FROM result JOIN process USING (process_id) JOIN run USING (run_id) "
      "JOIN bench_case USING (case_id) JOIN run_case USING (run_id, case_id) "
      "JOIN device USING (device_id) LEFT JOIN metric ON metric.result_id = result.result_id AND "
      "ordinal = -1 AND metric.name = ?2 WHERE result.result_id = ?1");
  query.bind(id, kGpuMetric);
  if (!query.step()) {
    usage_error("row {} is not in {}; the latency report shows row numbers", id,
                store.database().path());
  }
  const Columns columns(query);
  Row row{.suite = columns.text("suite"),
          .key = columns.text("key"),
          .variant = columns.text("variant"),
          .backend = columns.text("backend"),
          .device = columns.text("backend") + columns.text("which_gpu"),
          .cache = columns.integer("warm") != 0 ? Cache::warm : Cache::cold,
          .protocol = static_cast<int>(columns.integer("protocol")),
          .git_sha = columns.text("git_sha"),
          .options = {}};
  row.options.from_json(columns.text("options"));
  return row;
}

/// Narrows the run's options to one row: everything that shapes the measurement stays as it was.
void narrow(Row& row, const std::string& db) {
  // A suite given by path is stored by name; the run's own list knows which it was.
  const auto& suites = row.options.suites;
  const auto from = std::find_if(suites.begin(), suites.end(), [&](const std::string& s) {
    return s == row.suite || std::filesystem::path(s).filename() == row.suite + ".suite";
  });
  row.options.suites = {from == suites.end() ? row.suite : *from};
  row.options.filter = exactly(row.key);
  row.options.kernel = exactly(row.variant);
  row.options.shard = 0;
  row.options.shards = 1;
  row.options.worker.device = row.device;
  row.options.db = db;
}

/// The command that has one of NVIDIA's profilers record the row.
std::string recording_command(const Row& row, int64_t id, bool compute) {
  const char* tool = compute ? "ncu" : "nsys";
  if (row.backend != name_of(Backend::cuda)) {
    usage_error("--under {}: row {} was measured on the {}; NVIDIA's profilers see GPUs only", tool,
                id, row.backend);
  }
  const std::string report = fmt::format("row-{}", id);
  return compute ? ncu_command(row.options, row.cache, report) : nsys_command(row.options, report);
}

}  // namespace

int repeat_row(const RepeatRow& repeat) {
  Store store = Store::open(repeat.db, Store::Mode::read);
  Row row = find_row(store, repeat.row);
  narrow(row, repeat.db);
  const bool recorded = !repeat.under.empty();
  const std::string command = recorded ? recording_command(row, repeat.row, repeat.under == "ncu")
                                       : run_command(row.options);
  fmt::print("# protocol {}, commit {}\n{}\n", row.protocol,
             row.git_sha.empty() ? "unknown" : one_line(row.git_sha), one_line(command));
  if (!repeat.runs || recorded) return 0;
  if (row.protocol != kProtocol) {
    usage_error(
        "row {} was measured by protocol {}, this program measures by {}; check out its commit",
        repeat.row, row.protocol, kProtocol);
  }
  if (row.git_sha != provenance().git_sha) {
    say("note: the row's commit is {}, this program's {}\n", row.git_sha, provenance().git_sha);
  }
  use_named_kernels(row.options, repeat.modules, fmt::format("row {}", repeat.row));
  row.options.command = command;
  row.options.tags[kRepeatTag] = std::to_string(repeat.row);
  const Tally tally = run_suites(row.options, 0, worker_processes());
  print_run(repeat.db, tally);
  return static_cast<int>(tally.exit());
}

}  // namespace moegate
