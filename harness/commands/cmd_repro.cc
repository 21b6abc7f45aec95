// SPDX-License-Identifier: Apache-2.0
// moegate repro: the command that repeats one stored row: same case, variant, seed and conditions; or
// records it by one of NVIDIA's profilers.
#include <algorithm>
#include <filesystem>

#include "harness/base/escape.h"
#include "harness/base/notes.h"
#include "harness/base/pattern.h"
#include "harness/campaign/row_command.h"
#include "harness/campaign/runner.h"
#include "harness/campaign/setting.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/flags.h"
#include "harness/commands/run_table.h"
#include "harness/store/rows.h"
#include "harness/values/provenance.h"

namespace moegate {
namespace {

namespace po = boost::program_options;

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
    usage_error("--{}: row {} was measured on the {}; NVIDIA's profilers see GPUs only", tool, id,
                row.backend);
  }
  const std::string report = fmt::format("row-{}", id);
  return compute ? ncu_command(row.options, row.cache, report) : nsys_command(row.options, report);
}

}  // namespace

int cmd_repro(const Args& args) {
  std::optional<int64_t> id;
  std::string db;
  std::vector<std::string> kernels;
  bool runs = false, ncu = false, nsys = false;
  po::options_description flags("Options");
  flags.add_options()("row", into(id)->value_name("ROW"), "number of the row (positional)");
  flags.add(db_flag(
      db, "the store the row is in; --run adds the repeat to it, which is never its latest run"));
  flags.add_options()                                 //
      ("run", po::bool_switch(&runs), "also run it")  //
      ("kernels", kernels_of(kernels),
       "with --run: its kernels from elsewhere, named once more, since a store may be anybody's")  //
      ("ncu", po::bool_switch(&ncu),
       "print the command that has Nsight Compute look at its kernels, into row-ROW.ncu-rep")  //
      ("nsys", po::bool_switch(&nsys),
       "print the command that records it under Nsight Systems, into row-ROW.nsys-rep");
  if (!parse("moegate repro [ROW] [options]", flags, args, {"row"})) return 0;
  if (!id) usage_error("moegate repro: which row? give its number");
  if (runs + ncu + nsys > 1) usage_error("--run, --ncu and --nsys exclude each other; give one");
  Store store = Store::open(db, Store::Mode::read);
  Row row = find_row(store, *id);
  narrow(row, db);
  const std::string command =
      ncu || nsys ? recording_command(row, *id, ncu) : run_command(row.options);
  fmt::print("# protocol {}, commit {}\n{}\n", row.protocol,
             row.git_sha.empty() ? "unknown" : one_line(row.git_sha), one_line(command));
  if (!runs) return 0;
  if (row.protocol != kProtocol) {
    usage_error(
        "row {} was measured by protocol {}, this program measures by {}; check out its commit",
        *id, row.protocol, kProtocol);
  }
  if (row.git_sha != provenance().git_sha) {
    say("note: the row's commit is {}, this program's {}\n", row.git_sha, provenance().git_sha);
  }
  use_named_kernels(row.options, kernels, fmt::format("row {}", *id));
  row.options.command = command;
  row.options.tags[kRepeatTag] = std::to_string(*id);
  const Tally tally = run_suites(row.options, 0, worker_processes());
  print_run(db, tally);
  return static_cast<int>(tally.exit());
}

}  // namespace moegate
