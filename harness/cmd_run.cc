// SPDX-License-Identifier: Apache-2.0
// moegate run: verify, measure, store.
#include "harness/cli.h"
#include "harness/commands.h"
#include "harness/gbench.h"
#include "harness/run_flags.h"
#include "harness/runner.h"

namespace moegate {
namespace {

namespace po = boost::program_options;

po::options_description measuring_flags() {
  const Sampling defaults;
  po::options_description flags("How to measure");
  flags.add_options()  //
      ("cache", po::value<std::string>()->value_name("C"),
       "cold, warm, both or cold-weights (default: as the suite says, else cold)")  //
      ("launch", po::value<std::string>()->value_name("L"),
       "stream or graph (default: as the suite says, else stream)")  //
      ("flush", po::value<std::string>()->default_value("read")->value_name("F"),
       "how L2 is made cold: read (clean lines), write (dirty lines, as other tools do) or none")  //
      ("flush-factor", po::value<double>()->default_value(2)->value_name("X"),
       "bytes flushed over L2 size")  //
      ("timer", po::value<std::string>()->default_value("auto")->value_name("T"),
       "cupti, event or auto (CUPTI, else events, and every row says which)")  //
      ("rounds", po::value<int>()->default_value(3)->value_name("N"),
       "worker processes, each measuring every case: the unit of evidence")  //
      ("min-samples", po::value<int>()->default_value(defaults.min_samples)->value_name("N"),
       "")  //
      ("max-samples", po::value<int>()->default_value(defaults.max_samples)->value_name("N"),
       "")  //
      ("precision", po::value<double>()->default_value(0)->value_name("P"),
       "stop at a 95 % interval of ± P percent (0: 0.5 on a GPU, 2 on the host)")  //
      ("budget", po::value<std::string>()->default_value("500ms")->value_name("T"),
       "wall clock per case, variant and round");
  return flags;
}

po::options_description recording_flags() {
  po::options_description flags("What to keep");
  flags.add_options()  //
      ("db", po::value<std::string>()->default_value("results.sqlite")->value_name("PATH"),
       "the store; made when missing")                                                            //
      ("label", po::value<std::string>()->default_value("")->value_name("L"), "name of the run")  //
      ("tag", po::value<std::vector<std::string>>()->value_name("K=V"), "may be repeated")        //
      ("resume", po::value<std::string>()->value_name("RUN"),
       "finish an interrupted run: only what has no row yet; options come from the run")  //
      ("benchmark-out", po::value<std::string>()->value_name("FILE"),
       "also write Google Benchmark JSON, which its compare.py reads")  //
      ("dry-run", po::bool_switch(), "list what would run, and stop")   //
      ("profile", po::bool_switch(),
       "launch every variant a few times inside NVTX ranges, without CUPTI; store nothing");
  return flags;
}

Flush parse_flush(const std::string& name) {
  for (const Flush f : {Flush::read, Flush::write, Flush::none}) {
    if (name == name_of(f)) return f;
  }
  usage_error("--flush '{}'; use read, write or none", name);
}

void read_measuring(const po::variables_map& values, RunOptions& options) {
  const auto replace_axis = [&](const char* name, std::vector<std::string> list) {
    if (!options.axes.emplace(name, std::move(list)).second) {
      usage_error("--{} and --axis {} are both given; keep one", name, name);
    }
  };
  if (values.count("cache") != 0) {
    const auto cache = values["cache"].as<std::string>();
    replace_axis("cache", cache == "both" ? std::vector<std::string>{"cold", "warm"}
                                          : std::vector<std::string>{cache});
  }
  if (values.count("launch") != 0) replace_axis("launch", {values["launch"].as<std::string>()});

  WorkerOptions& worker = options.worker;
  worker.flush = parse_flush(values["flush"].as<std::string>());
  worker.flush_factor = values["flush-factor"].as<double>();
  worker.timer = values["timer"].as<std::string>();
  if (worker.timer != "auto" && worker.timer != "cupti" && worker.timer != "event") {
    usage_error("--timer '{}'; use auto, cupti or event", worker.timer);
  }
  options.rounds = values["rounds"].as<int>();
  Sampling& sampling = worker.sampling;
  sampling.min_samples = values["min-samples"].as<int>();
  sampling.max_samples = values["max-samples"].as<int>();
  sampling.precision = values["precision"].as<double>() / 100;
  sampling.budget_s = parse_seconds("--budget", values["budget"].as<std::string>());
  const auto at_least = [](const char* flag, double value, double least) {
    if (!(value >= least)) usage_error("{} {}; use at least {}", flag, value, least);
  };
  at_least("--flush-factor", worker.flush_factor, 1);
  at_least("--rounds", options.rounds, 1);
  at_least("--min-samples", sampling.min_samples, 10);
  at_least("--max-samples", sampling.max_samples, sampling.min_samples);
  at_least("--precision", sampling.precision, 0);
}

void print_plan(const RunOptions& options) {
  const Backend backend = open_device(options.worker.device)->facts().backend;
  const auto cases = adapt(load_cases(options), backend);
  const auto planned = plan(options, cases, backend, own_variants(backend));
  size_t variants = 0;
  for (const Planned& p : planned) {
    for (const std::string& v : p.variants) fmt::print("{} {}\n", cases[p.index].key(), v);
    variants += p.variants.size();
  }
  fmt::print(stderr, "{} cases, {} with their variants, {} rounds on the {} device\n",
             planned.size(), variants, options.rounds, name_of(backend));
}

std::string command_line(const std::vector<std::string>& args) {
  std::string command = "moegate run";
  for (const std::string& arg : args) {
    const bool plain = arg.find_first_not_of(
                           "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                           "0123456789-_./=,:@%+") == std::string::npos;
    command += plain ? " " + arg : " '" + arg + "'";
  }
  return command;
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
    options.db = (*values)["db"].as<std::string>();
    options.label = (*values)["label"].as<std::string>();
    options.command = command_line(args);
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
    const Tally tally = check_suites(options);
    fmt::print("{}\n", summary(tally, "launched for the profiler"));
    return static_cast<int>(tally.exit());
  }
  const Tally tally = run_suites(options, resume);
  if (values->count("benchmark-out") != 0) {
    write_benchmark_json(options.db, tally.run, (*values)["benchmark-out"].as<std::string>());
  }
  fmt::print("{}\n", summary(tally, fmt::format("run {} in {}", tally.run, options.db)));
  return static_cast<int>(tally.exit());
}

}  // namespace moegate
