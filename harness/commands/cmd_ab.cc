// SPDX-License-Identifier: Apache-2.0
// moegate ab: two programs, or two variants of this one, against each other.
#include <cstdlib>

#include "harness/campaign/ab.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/gate_flags.h"
#include "harness/commands/run_flags.h"
#include "harness/report/ab_report.h"

namespace moegate {
namespace {

namespace po = boost::program_options;

po::options_description ab_flags() {
  const ReplayPlan plan;
  po::options_description flags("What to compare");
  flags.add_options()  //
      ("base-program", po::value<std::string>()->value_name("PATH"),
       "the moegate before (default: this one); `ci/ab` builds them from commits")  //
      ("head-program", po::value<std::string>()->value_name("PATH"),
       "the moegate after (default: this one)")  //
      ("variant", po::value<std::vector<std::string>>()->value_name("V"),
       "given twice: the first variant is the base, the second the head, of one program")   //
      ("base-label", po::value<std::string>()->default_value("base")->value_name("L"), "")  //
      ("head-label", po::value<std::string>()->default_value("head")->value_name("L"), "")  //
      ("screen-rounds", po::value<int>()->default_value(plan.screen_rounds)->value_name("N"),
       "process pairs that measure everything; what they show equal is done")  //
      ("rounds", po::value<int>()->default_value(plan.rounds)->value_name("N"),
       "new process pairs that decide the rest")  //
      ("extra-rounds", po::value<int>()->default_value(plan.extra_rounds)->value_name("N"),
       "the one planned extension for what is then undecided")  //
      ("measure-identical", po::bool_switch(),
       "also measure what launches the same machine code on both sides")  //
      ("db", po::value<std::string>()->default_value("results.sqlite")->value_name("PATH"),
       "the store; made when missing");
  return flags;
}

AbOptions read_ab(const po::variables_map& values) {
  AbOptions ab;
  const auto text = [&](const char* name) {
    return values.count(name) != 0 ? values[name].as<std::string>() : std::string();
  };
  ab.base.program = text("base-program");
  ab.head.program = text("head-program");
  ab.base.label = text("base-label");
  ab.head.label = text("head-label");
  if (values.count("variant") != 0) {
    const auto variants = values["variant"].as<std::vector<std::string>>();
    if (variants.size() != 2) {
      usage_error("--variant is given {} times; give two, the base and the head", variants.size());
    }
    ab.base.variant = variants[0];
    ab.head.variant = variants[1];
  } else if (ab.base.program.empty() && ab.head.program.empty()) {
    usage_error(
        "ab: nothing to compare; give --base-program or --variant A --variant B (or use "
        "`ci/ab BASE [HEAD]`, and `moegate selftest` for this program against itself)");
  }
  ab.plan.screen_rounds = values["screen-rounds"].as<int>();
  ab.plan.rounds = values["rounds"].as<int>();
  ab.plan.extra_rounds = values["extra-rounds"].as<int>();
  at_least("--screen-rounds", ab.plan.screen_rounds, 2);
  at_least("--rounds", ab.plan.rounds, 2);
  at_least("--extra-rounds", ab.plan.extra_rounds, 0);
  // Variants of one folder share their host code's hash, and a pair is asked about for its numbers.
  ab.trust_code = ab.base.variant.empty() && !values["measure-identical"].as<bool>();
  return ab;
}

}  // namespace

int cmd_ab(const std::vector<std::string>& args) {
  po::options_description flags = ab_flags();
  flags.add(selection_flags()).add(measuring_flags()).add(judging_flags());
  const auto values = parse(
      "moegate ab --base-program P --suite S [options]\n"
      "       moegate ab --variant A --variant B --suite S [options]",
      flags, args);
  if (!values) return 0;
  const FailOn fail_on = parse_fail_on((*values)["fail-on"].as<std::string>());
  parse_format((*values)["format"].as<std::string>());
  AbOptions ab = read_ab(*values);
  ab.run = read_selection(*values);
  read_measuring(*values, ab.run);
  ab.run.db = (*values)["db"].as<std::string>();
  // Set by ci/ab, whose commits are what a reader can repeat.
  const char* command = std::getenv("MOEGATE_COMMAND");
  ab.run.command = command ? command : command_line("ab", args);
  PreparedAb prepared = prepare_ab(ab, worker_processes());  // first: a bad suite leaves no store
  const auto limits = [&](Backend backend) { return read_limits(*values, backend); };
  Store store = Store::open(ab.run.db, Store::Mode::write);
  const Comparison result = run_ab(store, std::move(prepared), limits);
  GateReport report = report_of(store, ab.run.db, result, limits);
  report.exit = result.interrupted ? Exit::interrupted : decide_exit(report.result, fail_on, false);
  publish(store, report, *values);
  return static_cast<int>(report.exit);
}

}  // namespace moegate
