// SPDX-License-Identifier: Apache-2.0
// moegate run: verify, measure, store; or repeat a stored row.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "harness/base/environment.h"
#include "harness/base/escape.h"
#include "harness/base/files.h"
#include "harness/base/notes.h"
#include "harness/base/text.h"
#include "harness/campaign/program.h"
#include "harness/campaign/run_options.h"
#include "harness/campaign/runner.h"
#include "harness/campaign/suite.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/doctor_probes.h"
#include "harness/commands/flags.h"
#include "harness/commands/planning.h"
#include "harness/commands/publish.h"
#include "harness/store/gbench.h"
#include "harness/store/query_report.h"
#include "harness/store/rows.h"
#include "harness/values/provenance.h"

namespace moegate {
namespace {

struct RunCommand {
  RunOptions run;
  std::optional<std::string> resumed;  // as typed
  int64_t resume = 0;                  // the run to finish; 0: a new one
  bool dry_run = false, profile = false, keep_artifact = false;
  std::optional<std::string> benchmark_out;
  std::optional<int64_t> like;                 // the row to repeat
  std::string under;                           // ncu, nsys: print how it is recorded by that
  std::vector<std::filesystem::path> reports;  // that end the run, as its suite says
};

// One stored row once more: same case, variant, seed and conditions; or how one of NVIDIA's
// profilers records it. Kernels from elsewhere are named again: a store may be anybody's.

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
      "json_extract(params, '$.cache') = 'warm' AS warm, "
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
  row.options.variant = exactly(row.variant);
  row.options.shard = 0;
  row.options.shards = 1;
  row.options.worker.device = row.device;
  row.options.db = db;
}

std::string recording_command(const Row& row, int64_t id, bool compute) {
  const char* tool = compute ? "ncu" : "nsys";
  if (row.backend != name_of(Backend::cuda)) {
    usage_error("--under {}: row {} was measured on the {}; NVIDIA's profilers see GPUs only", tool,
                id, row.backend);
  }
  const std::string report = fmt::format("row-{}", id);
  return compute ? ncu_command(row.options, row.cache, report) : nsys_command(row.options, report);
}

/// Prints the command and runs it, which adds a run that is never the store's latest. Throws
/// Error(usage) for a row that the store does not have or this program cannot repeat.
int repeat_row(const RunCommand& asked) {
  const int64_t id = *asked.like;
  const std::string& db = asked.run.db;
  Store store = Store::open(db, Store::Mode::read);
  Row row = find_row(store, id);
  narrow(row, db);
  const bool recorded = !asked.under.empty();
  const std::string command =
      recorded ? recording_command(row, id, asked.under == "ncu") : run_command(row.options);
  fmt::print("# protocol {}, commit {}\n{}\n", row.protocol,
             row.git_sha.empty() ? "unknown" : one_line(row.git_sha), one_line(command));
  if (asked.dry_run || recorded) return 0;
  if (row.protocol != kProtocol) {
    usage_error(
        "row {} was measured by protocol {}, this program measures by {}; check out its commit", id,
        row.protocol, kProtocol);
  }
  if (row.git_sha != provenance().git_sha) {
    say("note: the row's commit is {}, this program's {}\n", row.git_sha, provenance().git_sha);
  }
  use_named_kernels(row.options, asked.run.worker.modules, fmt::format("row {}", id));
  row.options.command = command;
  row.options.tags[kRepeatTag] = std::to_string(id);
  const Tally tally = run_suites(row.options, 0, worker_processes());
  print_run(db, tally);
  return static_cast<int>(tally.exit());
}

// The command.

Flags recording_flags(RunCommand& command) {
  RunOptions& run = command.run;
  const auto tags = [&](const std::vector<std::string>& given) {
    for (const std::string& tag : given) {
      const auto added = run.tags.insert(split_assignment("--tag", plain_name("--tag", tag)));
      if (!added.second) usage_error("--tag {} is given twice; keep one", added.first->first);
    }
  };
  Flags flags("What to keep");
  flags.add(flag("rounds", run.rounds));
  flags.add(new_db_flag(run.db)).add(label_flag(run.label));
  flags.add(flag("campaign",
                 [&](const std::string& id) { run.campaign = parse_campaign(id, environment); }));
  flags.add(flag("tag", po::value<std::vector<std::string>>()->notifier(tags)));
  flags.add(flag("resume", command.resumed));
  flags.add(flag("out", output(command.benchmark_out), nullptr,
                 "also write Google Benchmark JSON, which its compare.py reads"));
  flags.add(flag("keep-artifact", command.keep_artifact));
  flags.add(flag("dry-run", command.dry_run));
  flags.add(flag("profile", command.profile));
  Flags repeating("Or one stored row again");
  repeating.add(flag("like", command.like)).add(choice_flag("under", command.under));
  return flags.add(repeating);
}

bool parse_run(const Args& args, RunCommand& command, std::set<std::string>& given) {
  Flags flags = selection_flags(command.run);
  flags.add(measuring_flags(command.run)).add(recording_flags(command));
  return parse("run", flags, args, {}, &given);
}

/// What the run's suite, where it is one, says of it.
Recipe recipe_of_run(const RunOptions& run) {
  return run.suites.size() == 1 ? recipe_of(run.suites[0]) : Recipe{};
}

void end_with(const Recipe& recipe, RunCommand& command) {
  for (const std::string& name : recipe.reports) command.reports.push_back(find_report(name));
}

void follow_suite(const Args& args, const std::set<std::string>& given, RunCommand& command) {
  const Recipe recipe = recipe_of_run(command.run);
  Args all = args;
  for (const auto& [flag, value] : recipe.flags) {
    if (!given.contains(flag)) all.push_back(fmt::format("--{}={}", flag, value));
  }
  if (all.size() > args.size()) {
    if (!given.contains("db")) all.push_back("--db=" + command.run.db);  // which was announced
    command = RunCommand{};
    std::set<std::string> seen;
    parse_run(all, command, seen);
  }
  end_with(recipe, command);
}

std::optional<RunCommand> read_run(const Args& args) {
  RunCommand command;
  std::set<std::string> given;
  if (!parse_run(args, command, given)) return std::nullopt;
  RunOptions& run = command.run;
  if (command.like) {
    refuse_other_flags(
        given, {"like", "db", "module", "dry-run", "under"},
        "is given beside --like, but a row is repeated as it was measured; leave it out");
    if (!given.contains("db")) run.db = announced(nearest_store());  // it is there already
    return command;
  }
  if (!command.under.empty()) usage_error("--under {} needs --like ROW", command.under);
  if (command.resumed) {
    refuse_beside_resume(given, {"db", "out", "keep-artifact", "module"});
    Store store = Store::open(run.db, Store::Mode::read);
    command.resume = store.find_resumable(*command.resumed);
    RunOptions stored;
    stored.from_json(store.run_info(command.resume).options);
    use_named_kernels(stored, run.worker.modules, fmt::format("run {}", command.resume));
    stored.db = run.db;
    run = stored;
    end_with(recipe_of_run(run), command);
    return command;
  }
  require_suite(run);
  follow_suite(args, given, command);
  check_measuring(run);
  within("--rounds", run.rounds, 1, kMostRounds);
  run.command = command_line("run", args);
  return command;
}

void print_plan(const RunOptions& options) {
  const Plan plan = plan_by(planner_of(options), options);
  const std::vector<RowName> rows = plan.rows();
  for (const auto& [key, variant] : rows) fmt::print("{} {}\n", one_line(key), one_line(variant));
  say("{} cases on the {} device\n", plan.cases.size(), name_of(plan.hello.device.backend));
  say("{}\n", time_text({.rows = rows.size(),
                         .rounds = options.rounds,
                         .results = rows.size() * static_cast<size_t>(options.rounds),
                         .seconds_each = 0,
                         .budget_s = options.worker.sampling.budget_s,
                         .case_timeout_s = options.case_timeout_s}));
}

void print_reports(const std::string& db, const std::vector<std::filesystem::path>& reports,
                   int64_t run) {
  Store store = Store::open(db, Store::Mode::read);
  for (const auto& sql : reports) {
    fmt::print("{}\n\n{}\n", title_of_report(sql),
               render(run_report(store, sql, {run}), Format::text));
  }
}

/// Whether `run` was asked for a function that belongs to no operator: FILE.py:FUNCTION.
bool names_function(const Args& args) {
  return !args.empty() && args.front().find(".py:") != std::string::npos && args.front()[0] != '-';
}

/// Becomes the interpreter that measures it (python/moegate/_functions.py).
[[noreturn]] void run_functions(const Args& args) {
  const std::filesystem::path program = place_of(own_program()), folder = program.parent_path();
  for (const std::filesystem::path& place :
       {folder / "libmoegate.so", folder / "../lib/libmoegate.so"}) {
    if (std::filesystem::exists(place)) setenv("MOEGATE_LIBRARY", place.c_str(), 0);
  }
  setenv("MOEGATE_PROGRAM", program.c_str(), 1);
  const std::string others = environment("PYTHONPATH");
  const std::string package = home() / "python";
  setenv("PYTHONPATH", (others.empty() ? package : package + ":" + others).c_str(), 1);
  std::string python = environment("MOEGATE_PYTHON");
  if (python.empty()) python = "python3";
  std::vector<std::string> command = {python, "-m", "moegate._functions"};
  command.insert(command.end(), args.begin(), args.end());
  std::vector<char*> words;
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  execvp(words[0], words.data());
  usage_error("the Python '{}' cannot be run ({}); install python3, or set MOEGATE_PYTHON", python,
              std::generic_category().message(errno));
}

}  // namespace

int cmd_run(const Args& args) {
  if (names_function(args)) run_functions(args);
  const auto command = read_run(args);
  if (!command) return 0;
  const RunOptions& run = command->run;
  if (command->like) return repeat_row(*command);
  if (command->dry_run) {
    print_plan(run);
    return 0;
  }
  if (command->profile) {
    RunOptions profiled = run;
    profiled.worker.task = Task::profile;
    const Tally tally = check_suites(profiled, worker_processes());
    fmt::print("{}\n", summary(tally, "launched for the profiler"));
    return static_cast<int>(tally.exit());
  }
  // Reports compare with the ceilings of the device, which a store holds once.
  if (!command->reports.empty() && !is_file(run.db)) {
    if (const Finished doctor = run_doctor(run.worker.device, run.db); doctor.exit != 0)
      return doctor.exit;
  }
  const Tally tally = run_suites(run, command->resume, worker_processes());
  if (command->keep_artifact) {
    const auto folder = std::filesystem::path(run.db).parent_path() / "artifacts";
    const std::string kept = keep_program(folder.string(), tally.kernels);
    const std::string lost = try_kept(kept, run.worker, worker_processes());
    if (!lost.empty()) say("note: {}\n", lost);
  }
  if (command->benchmark_out) write_benchmark_json(run.db, tally.run, *command->benchmark_out);
  print_reports(run.db, command->reports, tally.run);
  if (command->reports.empty() || tally.exit() != Exit::ok) {
    print_run(run.db, tally);
  } else {
    fmt::print("{}\n", summary(tally, fmt::format("run {} in {}", tally.run, run.db)));
  }
  return static_cast<int>(tally.exit());
}

}  // namespace moegate
