// SPDX-License-Identifier: Apache-2.0
#include "harness/run_flags.h"

#include <cstdio>

#include "harness/cli.h"

namespace moegate {

namespace po = boost::program_options;

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

}  // namespace moegate
