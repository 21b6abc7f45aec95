// SPDX-License-Identifier: Apache-2.0
// moegate gate: judge a run against the blessed baseline.
#include <filesystem>

#include "harness/base/home.h"
#include "harness/campaign/ab.h"
#include "harness/campaign/program.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/gate_flags.h"
#include "harness/judge/creep.h"
#include "harness/judge/gate_candidate.h"
#include "harness/judge/waivers.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;

po::options_description gate_flags() {
  po::options_description flags("What to judge");
  flags.add_options()  //
      ("db", po::value<std::string>()->default_value("results.sqlite")->value_name("PATH"),
       "the store")  //
      ("run", po::value<std::string>()->default_value("latest")->value_name("R"),
       "latest, a number or a label")  //
      ("baseline", po::value<std::string>()->value_name("PATH"),
       "a baseline file, or a folder of them (default: baselines/<class> of the tool's home)")  //
      ("candidate", po::value<std::string>()->value_name("DIR"),
       "where a suite has no baseline: judge against the rows recorded here, and record those of "
       "this "
       "run that are not there yet")  //
      ("replay-program", po::value<std::string>()->value_name("PATH"),
       "the baseline's program: what the stored numbers leave open is measured again, side by side "
       "with it, and only that decides")  //
      ("waivers", po::value<std::string>()->value_name("FILE"),
       "failures that may pass for a while (default: ci/waivers.ini of the tool's home)")  //
      ("require-baseline", po::bool_switch(), "a suite without a blessed baseline fails (exit 22)");
  return flags;
}

bool is_file(const fs::path& path) {
  std::error_code ignored;  // what cannot be looked at is not there
  return fs::is_regular_file(path, ignored);
}

/// The blessed file of a suite; empty when there is none.
fs::path find_baseline(const po::variables_map& values, const RunInfo& run,
                       const std::string& suite) {
  const std::string name = suite + ".tsv";
  if (values.count("baseline") == 0) {
    const fs::path path = home() / "baselines" / run.device.klass / name;
    return is_file(path) ? path : fs::path();
  }
  const fs::path given = values["baseline"].as<std::string>();
  std::error_code ignored;
  if (!fs::exists(given, ignored))
    usage_error("--baseline {}: no such file or folder", given.string());
  if (!fs::is_directory(given, ignored)) return given;
  for (const fs::path& path : {given / name, given / run.device.klass / name}) {
    if (is_file(path)) return path;
  }
  return {};
}

/// A candidate judges too, but nobody blessed it.
struct Found {
  Expectation expectation;
  bool blessed = false;
};

Found expectation_of(const po::variables_map& values, const RunInfo& run, const std::string& suite,
                     const Sides& sides) {
  const fs::path blessed = find_baseline(values, run, suite);
  if (!blessed.empty()) return {expect_baseline(blessed, run, suite), true};
  if (values.count("candidate") == 0) return {};
  const fs::path path =
      fs::path(values["candidate"].as<std::string>()) / run.device.klass / (suite + ".tsv");
  return {expect_candidate(path, run, suite, sides), false};
}

/// Measures the suspects of a first look side by side with the baseline's program.
Replayed replay(Store& store, const GateReport& first, const std::string& program,
                const po::variables_map& values) {
  const auto ids = suspects(first.result);
  if (ids.empty()) return {};
  if (program_hash("/proc/self/exe") != first.run.program) {
    usage_error(
        "--replay-program: {} was measured by another program than this one; let that one judge it",
        describe(first.run));
  }
  AbOptions ab;
  ab.run.from_json(first.run.options);
  ab.run.db = first.db;
  ab.run.command = first.run.command;
  ab.run.tags["replay"] = std::to_string(first.run.id);
  ab.base.program = program;
  ab.base.label = "baseline's program";
  ab.head.label = fmt::format("replay of {}", describe(first.run));
  ab.rows.emplace();
  for (const CaseId& id : ids) ab.rows->insert({id.key, id.variant});
  fmt::print(stderr, "replaying {} of {} cases against {}\n", ids.size(), first.result.judged,
             program);
  const Comparison result =
      run_ab(store, prepare_ab(ab, worker_processes()),
             [&](Backend backend) { return read_limits(values, backend); });
  if (result.interrupted) throw Error(Exit::interrupted, "interrupted during the replay");
  return result.decided;
}

}  // namespace

int cmd_gate(const std::vector<std::string>& args) {
  po::options_description flags = gate_flags();
  flags.add(judging_flags());
  const auto values = parse("moegate gate [options]", flags, args);
  if (!values) return 0;
  const auto db = (*values)["db"].as<std::string>();
  const FailOn fail_on = parse_fail_on((*values)["fail-on"].as<std::string>());
  parse_format((*values)["format"].as<std::string>());
  const bool own_waivers = values->count("waivers") != 0;
  const auto waivers =
      own_waivers ? read_waivers((*values)["waivers"].as<std::string>()) : waivers_of_home();
  Store store = open_for_verdict(db);
  const RunInfo run = store.run_info(store.find_run((*values)["run"].as<std::string>()));
  const Sides sides = collect(store.levels(run.id), run.device.backend);

  GateReport report;
  report.limits = read_limits(*values, run.device.backend);
  std::map<std::string, Expectation> expected;
  bool all_blessed = true;
  for (const auto& [id, side] : sides) {
    if (expected.count(id.suite) > 0) continue;
    Found found = expectation_of(*values, run, id.suite, sides);
    all_blessed = all_blessed && found.blessed;
    expected[id.suite] = std::move(found.expectation);
  }
  report.run = run;
  report.db = db;
  const Setting setting{report.limits, run.device.backend == Backend::host, is_partial(run)};
  report.result = judge(sides, expected, setting);
  if (values->count("replay-program") != 0) {
    const auto program = (*values)["replay-program"].as<std::string>();
    report.result = judge(sides, expected, setting, replay(store, report, program, *values));
  }
  apply_creep(report.result, expected, CreepLimits::of(run.device.backend, report.limits));
  apply_waivers(report.result, waivers, run.device.klass, today(), !is_partial(run));
  const bool lacks_baseline = (*values)["require-baseline"].as<bool>() && !all_blessed;
  report.exit = decide_exit(report.result, fail_on, lacks_baseline);
  report.throttle = throttle_summary(store, run.id);
  report.next = fmt::format("moegate bless --db {} --run {} --reason '...'", db, run.id);
  publish(store, report, *values);
  return static_cast<int>(report.exit);
}

}  // namespace moegate
