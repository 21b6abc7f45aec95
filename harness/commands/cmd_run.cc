// SPDX-License-Identifier: Apache-2.0
// moegate run: verify, measure, store.
#include <filesystem>

#include "harness/campaign/program.h"
#include "harness/campaign/runner.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/run_flags.h"
#include "harness/store/gbench.h"

namespace moegate {
namespace {

namespace po = boost::program_options;

po::options_description recording_flags() {
  po::options_description flags("What to keep");
  flags.add_options()  //
      ("rounds", po::value<int>()->default_value(3)->value_name("N"),
       "worker processes, each measuring every case: the unit of evidence")  //
      ("db", po::value<std::string>()->default_value("results.sqlite")->value_name("PATH"),
       "the store; made when missing")                                                            //
      ("label", po::value<std::string>()->default_value("")->value_name("L"), "name of the run")  //
      ("tag", po::value<std::vector<std::string>>()->value_name("K=V"), "may be repeated")        //
      ("resume", po::value<std::string>()->value_name("RUN"),
       "finish an interrupted run: only what has no row yet; options come from the run")  //
      ("benchmark-out", po::value<std::string>()->value_name("FILE"),
       "also write Google Benchmark JSON, which its compare.py reads")  //
      ("keep-artifact", po::bool_switch(),
       "keep this program in artifacts/ beside the store, so that a later gate can replay it")  //
      ("dry-run", po::bool_switch(), "list what would run, and stop")                           //
      ("profile", po::bool_switch(),
       "launch every variant a few times inside NVTX ranges, without CUPTI; store nothing");
  return flags;
}

void print_plan(const RunOptions& options) {
  RunOptions untimed = options;
  untimed.worker.task = Task::verify;  // a plan needs no timer
  const Plan plan = prepare(untimed, worker_processes()).plan;
  const std::vector<RowName> rows = plan.rows();
  for (const auto& [key, variant] : rows) fmt::print("{} {}\n", key, variant);
  fmt::print(stderr, "{} cases, {} with their variants, {} rounds on the {} device\n",
             plan.cases.size(), rows.size(), options.rounds, name_of(plan.hello.device.backend));
}

}  // namespace

int cmd_run(const std::vector<std::string>& args) {
  po::options_description flags = selection_flags();
  flags.add(measuring_flags()).add(recording_flags());
  const auto values = parse("moegate run --suite S [options]", flags, args);
  if (!values) return 0;

  RunOptions options;
  int64_t resume = 0;
  if (values->count("resume") != 0) {
    const auto db = (*values)["db"].as<std::string>();
    Store store = Store::open(db, Store::Mode::read);
    resume = store.find_run((*values)["resume"].as<std::string>());
    options.from_json(store.run_info(resume).options);
    options.db = db;
  } else {
    options = read_selection(*values);
    read_measuring(*values, options);
    options.rounds = (*values)["rounds"].as<int>();
    at_least("--rounds", options.rounds, 1);
    options.db = (*values)["db"].as<std::string>();
    options.label = (*values)["label"].as<std::string>();
    options.command = command_line("run", args);
    if (values->count("tag") != 0) {
      for (const std::string& tag : (*values)["tag"].as<std::vector<std::string>>()) {
        options.tags.insert(split_assignment("--tag", tag));
      }
    }
  }
  if ((*values)["dry-run"].as<bool>()) {
    print_plan(options);
    return 0;
  }
  if ((*values)["profile"].as<bool>()) {
    options.worker.task = Task::profile;
    const Tally tally = check_suites(options, worker_processes());
    fmt::print("{}\n", summary(tally, "launched for the profiler"));
    return static_cast<int>(tally.exit());
  }
  const Tally tally = run_suites(options, resume, worker_processes());
  if ((*values)["keep-artifact"].as<bool>()) {
    keep_program((std::filesystem::path(options.db).parent_path() / "artifacts").string());
  }
  if (values->count("benchmark-out") != 0) {
    write_benchmark_json(options.db, tally.run, (*values)["benchmark-out"].as<std::string>());
  }
  fmt::print("{}\n", summary(tally, fmt::format("run {} in {}", tally.run, options.db)));
  return static_cast<int>(tally.exit());
}

}  // namespace moegate
