// SPDX-License-Identifier: Apache-2.0
// moegate selftest: does the gate stay silent for an unchanged program, and does it catch faults?
#include "harness/campaign/runner.h"
#include "harness/campaign/selftest.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/gate_flags.h"
#include "harness/commands/run_flags.h"
#include "harness/device/open.h"
#include "harness/report/ab_report.h"

namespace moegate {
namespace {

namespace po = boost::program_options;

// Far enough beyond what a case fails from that noise is no excuse.
constexpr double kSlowCanaryCuda = 0.05, kSlowCanaryHost = 1.0;
constexpr double kScaleCanary = 1.05;

po::options_description selftest_flags() {
  po::options_description flags("What to test");
  flags.add_options()  //
      ("aa", po::value<int>()->value_name("N"),
       "this program against itself, at least N process pairs of every row: a failure is a false "
       "alarm")  //
      ("inject", po::value<std::string>()->value_name("P%,P%"),
       "the same with slow-downs of these sizes built into the head, dealt out over the rows")  //
      ("canaries", po::bool_switch(),
       "a slow-down (5 % on a GPU, a factor of 2 on a host) and outputs times 1.05 must be caught, "
       "else exit 21")  //
      ("db", po::value<std::string>()->default_value("results.sqlite")->value_name("PATH"),
       "the store; made when missing");
  return flags;
}

std::vector<double> read_injected(const po::variables_map& values) {
  if (values.count("inject") == 0) return {};
  std::vector<double> shares;
  for (const std::string& part : split_list("--inject", values["inject"].as<std::string>())) {
    shares.push_back(parse_share("--inject", part));
  }
  return shares;
}

/// One program on both sides, with these slow-downs in the head.
AbOptions self_against_self(const RunOptions& run, const std::vector<double>& injected) {
  AbOptions ab;
  ab.run = run;
  ab.base.label = "selftest base";
  ab.head.label = "selftest head";
  ab.trust_code = false;
  if (injected.empty()) return ab;
  ab.base.canary_slow_by = {0};  // the same kernels, without the delay
  ab.head.canary_slow_by = injected;
  return ab;
}

Comparison measured(Store& store, const AbOptions& ab, const po::variables_map& values) {
  Comparison result =
      run_ab(store, prepare_ab(ab, worker_processes()),
             [&](Backend backend) { return read_limits(values, backend); });
  if (result.interrupted) throw Error(Exit::interrupted, "interrupted; what was measured is kept");
  return result;
}

void print_calibration(const Comparison& result, const std::vector<Calibration>& calibrations) {
  fmt::print("{}\n{}", render(calibration_table(calibrations), Format::md),
             render(mde_histogram(result), Format::md));
  const auto blind = blind_cases(result);
  if (!blind.empty()) fmt::print("\nBlind:\n");
  for (const std::string& line : blind) fmt::print("- {}\n", line);
}

/// A/A or injection: measures, stores and prints the calibration. Returns the false alarms.
int calibrate_gate(Store& store, const RunOptions& run, const po::variables_map& values,
                   const std::vector<double>& injected) {
  AbOptions ab = self_against_self(run, injected);
  if (values.count("aa") != 0) {
    ab.least_rounds = values["aa"].as<int>();
    at_least("--aa", ab.least_rounds, 2);
  }
  const Comparison result = measured(store, ab, values);
  const auto calibrations = calibrate(result, injected.empty() ? std::vector<double>{0} : injected);
  store_calibration(store, result.head_run, calibrations);
  print_calibration(result, calibrations);
  return injected.empty() ? calibrations[0].failed : 0;
}

/// The slow canary: whether the gate saw it wherever the machine let it look.
bool catches_slow(Store& store, const RunOptions& run, const po::variables_map& values) {
  // Not by opening the device: that pins this process, and with it the workers.
  const bool host = cuda_ordinal(run.worker.device) < 0 || cuda_devices(nullptr).empty();
  const Backend backend = host ? Backend::host : Backend::cuda;
  const double slow_by = backend == Backend::cuda ? kSlowCanaryCuda : kSlowCanaryHost;
  AbOptions ab = self_against_self(run, {slow_by});
  ab.plan = {2, 6, 0};
  const Comparison result = measured(store, ab, values);
  const Calibration c = calibrate(result, {slow_by})[0];
  store_calibration(store, result.head_run, {c});
  int seeing = 0;
  for (const auto& [id, j] : result.decided.judged) seeing += j.mde > 0 && j.mde <= slow_by;
  fmt::print("canary {}: {} of {} rows caught, {} could be expected to see it\n", percent(slow_by),
             c.failed, c.judged, seeing);
  // A busy host is no fault of the gate's, and the report of the night says that it was busy.
  if (backend == Backend::host && seeing == 0) return true;
  return seeing > 0 && 2 * c.failed >= seeing;
}

/// A bad suite must leave no new store behind.
void check_plan(RunOptions run) {
  run.worker.task = Task::verify;  // a plan needs no timer
  prepare(run, worker_processes());
}

bool catches_scale(RunOptions run) {
  run.worker.task = Task::verify;
  run.canary_scale = kScaleCanary;
  const Tally tally = check_suites(run, worker_processes());
  int wrong = 0, all = 0;
  for (const auto& [status, n] : tally.counts) {
    all += status == Status::unsupported ? 0 : n;
    wrong += status == Status::wrong ? n : 0;
  }
  fmt::print("canary outputs x {:g}: {} of {} rows caught\n", kScaleCanary, wrong, all);
  return wrong == all && all > 0;
}

}  // namespace

int cmd_selftest(const std::vector<std::string>& args) {
  po::options_description flags = selftest_flags();
  flags.add(selection_flags()).add(measuring_flags()).add(limit_flags());
  const auto values = parse("moegate selftest --aa N --suite S [options]", flags, args);
  if (!values) return 0;
  const auto injected = read_injected(*values);
  const bool canaries = (*values)["canaries"].as<bool>();
  const bool aa = values->count("aa") != 0;
  if (!aa && injected.empty() && !canaries) {
    usage_error("selftest: nothing to test; give --aa N, --inject 2%,5% or --canaries");
  }
  RunOptions run = read_selection(*values);
  read_measuring(*values, run);
  run.db = (*values)["db"].as<std::string>();
  run.command = command_line("selftest", args);
  run.tags["selftest"] = "1";
  check_plan(run);
  Store store = Store::open(run.db, Store::Mode::write);
  if (canaries) {
    const bool slow = catches_slow(store, run, *values);
    const bool scale = catches_scale(run);
    if (!slow || !scale) {
      fmt::print("a canary was missed: this gate cannot be trusted here\n");
      return static_cast<int>(Exit::environment);
    }
  }
  const bool calibrates = aa || !injected.empty();
  const int false_alarms = calibrates ? calibrate_gate(store, run, *values, injected) : 0;
  if (false_alarms == 0) return 0;
  fmt::print("\nfalse alarms: an unchanged program failed\n");
  return static_cast<int>(Exit::latency);
}

}  // namespace moegate
