// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/run_flags.h"

#include <cstdio>

#include "harness/commands/cli.h"

namespace moegate {

namespace po = boost::program_options;

void at_least(const char* flag, double value, double least) {
  if (!(value >= least)) usage_error("{} {}; use at least {}", flag, value, least);
}

po::options_description selection_flags() {
  po::options_description flags("Which cases, where");
  flags.add_options()  //
      ("suite", po::value<std::vector<std::string>>()->value_name("S"),
       "suite by name, or a path; may be repeated")  //
      ("filter", po::value<std::string>()->default_value("")->value_name("RE"),
       "only cases whose key matches")  //
      ("kernel", po::value<std::string>()->default_value("")->value_name("RE"),
       "only variants whose name matches")  //
      ("axis", po::value<std::vector<std::string>>()->value_name("P=V,V"),
       "replace a parameter's values: tokens=1,8; may be repeated")               //
      ("seed", po::value<std::string>()->value_name("N"), "seed of every input")  //
      ("device", po::value<std::string>()->default_value("auto")->value_name("D"),
       "auto, host, cuda or cuda:N")  //
      ("tiles", po::value<std::string>()->default_value("")->value_name("DIR"),
       "folder of tile configurations (default: MOEGATE_TILES, else suites/tiles)")  //
      ("case-timeout", po::value<std::string>()->default_value("120s")->value_name("T"),
       "a variant that takes longer on a case is recorded as a timeout")  //
      ("shard", po::value<std::string>()->value_name("I/N"),
       "every N-th case, starting with the I-th (I from 1)");
  return flags;
}

RunOptions read_selection(const po::variables_map& values) {
  RunOptions options;
  if (values.count("suite") == 0) {
    usage_error("no suite; name one with --suite ('moegate list suites' shows them)");
  }
  options.suites = values["suite"].as<std::vector<std::string>>();
  options.filter = values["filter"].as<std::string>();
  options.kernel = values["kernel"].as<std::string>();
  options.worker.device = values["device"].as<std::string>();
  options.worker.tiles = values["tiles"].as<std::string>();
  options.case_timeout_s =
      parse_seconds("--case-timeout", values["case-timeout"].as<std::string>());
  if (values.count("axis") != 0) {
    for (const std::string& axis : values["axis"].as<std::vector<std::string>>()) {
      const auto [name, list] = split_assignment("--axis", axis);
      if (!options.axes.emplace(name, split_list("--axis", list)).second) {
        usage_error("--axis {} is given twice; write its values in one list", name);
      }
    }
  }
  if (values.count("seed") != 0) options.axes["seed"] = {values["seed"].as<std::string>()};
  if (values.count("shard") != 0) {
    const auto text = values["shard"].as<std::string>();
    char rest = 0;
    const int read = std::sscanf(text.c_str(), "%d/%d%c", &options.shard, &options.shards, &rest);
    if (read != 2 || options.shard < 1 || options.shards < options.shard) {
      usage_error("--shard '{}' is not I/N with 1 <= I <= N", text);
    }
    --options.shard;
  }
  return options;
}

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
  Sampling& sampling = worker.sampling;
  sampling.min_samples = values["min-samples"].as<int>();
  sampling.max_samples = values["max-samples"].as<int>();
  sampling.precision = values["precision"].as<double>() / 100;
  sampling.budget_s = parse_seconds("--budget", values["budget"].as<std::string>());
  at_least("--flush-factor", worker.flush_factor, 1);
  at_least("--min-samples", sampling.min_samples, 10);
  at_least("--max-samples", sampling.max_samples, sampling.min_samples);
  at_least("--precision", sampling.precision, 0);
}

std::string command_line(const std::string& command_name, const std::vector<std::string>& args) {
  std::string command = "moegate " + command_name;
  for (const std::string& arg : args) {
    const bool plain = arg.find_first_not_of(
                           "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                           "0123456789-_./=,:@%+") == std::string::npos;
    command += plain ? " " + arg : " '" + arg + "'";
  }
  return command;
}

}  // namespace moegate
