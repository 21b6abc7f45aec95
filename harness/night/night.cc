// SPDX-License-Identifier: Apache-2.0
#include "harness/night/night.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <iterator>

#include "harness/base/environment.h"
#include "harness/base/rng.h"
#include "harness/base/text.h"
#include "harness/campaign/run_options.h"
#include "harness/campaign/runner.h"

namespace moegate {
namespace {

bool judges_own_kernels(const NightOptions& options) {
  return options.kernels.empty();
}

/// Of any phase. Kernels from elsewhere are tested by the suites that are judged; the tool's own
/// have a smaller one for that, `test`; null: what is judged.
RunOptions options_of(const NightOptions& options, const char* test) {
  RunOptions run;
  run.suites = options.suites.empty() ? default_suites(options.backend) : options.suites;
  if (test && judges_own_kernels(options)) run.suites = {test};
  run.worker.device = options.device;
  run.worker.modules = options.kernels;
  run.db = options.db();
  return run;
}

/// How a phase ended; an Error is told and becomes its exit code.
template <class Phase>
Exit exit_of(const NightCalls& calls, Phase phase) {
  try {
    return phase();
  } catch (const Error& error) {
    calls.failed(error);
    return error.code();
  }
}

// The share of the night that is over at the end of each phase. The rest is the replay's, and the
// canaries, which measure nothing that is asked about, get a tenth at most.
constexpr double kVerified = 0.1, kDrawn = 0.02, kSpoilt = 0.15, kMeasured = 0.6, kCanaries = 0.1;

class Hours {
 public:
  explicit Hours(const NightOptions& options)
      : budget_(options.budget()), end_(options.budget(), options.clock) {}
  const Deadline& end() const { return end_; }
  /// When this share of the night is over.
  Deadline until(double share) const { return end_.within(end_.left() - (1 - share) * budget_); }
  /// From now on for this share of the night.
  Deadline during(double share) const { return end_.within(share * budget_); }

 private:
  double budget_;
  Deadline end_;
};

std::string left_unchecked(const char* what, const Tally& tally) {
  size_t done = 0;
  for (const auto& [status, n] : tally.counts) done += static_cast<size_t>(n);
  const CaseId& one = *tally.left_out.begin();
  return fmt::format("{} had no time for {} of {} rows, for example {} {}.", what,
                     tally.left_out.size(), tally.left_out.size() + done, one.key, one.variant);
}

/// The correctness suite; of kernels from elsewhere those judged, which alone have their cases. A
/// tolerance that accepts outputs spoilt on purpose says nothing about the others.
void verify(const NightOptions& options, const NightCalls& calls, const Hours& hours,
            WorkerSource& source, Night& night, std::string& klass) {
  const auto check = [&](RunOptions run, const Deadline& deadline, const char* what,
                         const std::function<void(const Tally&)>& tell) {
    run.deadline = deadline;
    run.row_share_s = options.row_share_s();
    run.order_seed = draw_order_seed();
    return exit_of(calls, [&] {
      const Tally tally = check_suites(run, source);
      klass = tally.device.klass;
      if (what && !tally.left_out.empty()) night.notes.push_back(left_unchecked(what, tally));
      tell(tally);
      return tally.exit();
    });
  };
  night.exits.verify = check(verify_options(options, Task::verify), hours.until(kVerified),
                             "Verification", calls.verified);
  if (options.sample_seed != 0) {
    night.notes.push_back(fmt::format(
        "Further rows of large outputs were compared with the truth, drawn by sample seed {}.",
        options.sample_seed));
  }
  if (night.exits.verify == Exit::ok && options.sample_seed != 0 && judges_own_kernels(options)) {
    const RunOptions drawn = drawn_options(options);
    night.notes.push_back(fmt::format(
        "Cases of suite tiny were verified with another number of tokens, too: `moegate verify{}`.",
        repeating_flags(drawn, kSelectionGroup)));
    // As many of them, in random order, as there is time for.
    night.exits.verify = check(drawn, hours.during(kDrawn), nullptr, calls.verified);
  }
  if (night.exits.verify == Exit::interrupted) return;
  night.exits.controls = check(verify_options(options, Task::controls), hours.until(kSpoilt),
                               "The negative controls", calls.spoilt);
}

/// What baselines and candidates say of the suites before they are measured. Kernels from elsewhere
/// may read what is no part of a program, so that it shows nothing of them.
KnownOf known_of(const NightOptions& options, const std::string& klass) {
  const std::string program = options.kernels.empty() ? program_hash(own_program(), {}) : "";
  return [places = options.rules.baselines, klass, program](const std::string& suite) {
    return known_rows(places, klass, suite, program);
  };
}

/// Where nothing is known of any suite, nothing is going to be replayed either.
bool may_be_replayed(const RunOptions& run, const KnownOf& known) {
  return std::ranges::any_of(run.suites, [&](const std::string& suite) {
    return !known(std::filesystem::path(suite).stem().string()).sides.empty();
  });
}

void measure(const NightOptions& options, const NightCalls& calls, const Hours& hours,
             const std::string& klass, WorkerSource& source, Night& night, GateTime& time) {
  night.exits.run = exit_of(calls, [&] {
    RunOptions run =
        run_options(options, fmt::format("{:%Y%m%dT%H%M%SZ}", fmt::gmtime(std::time(nullptr))));
    const KnownOf known = known_of(options, klass);
    run.deadline = hours.until(may_be_replayed(run, known) ? kMeasured : 1 - kCanaries);
    run.row_share_s = options.row_share_s();
    run.order_seed = draw_order_seed();
    const Tally tally = run_suites(run, 0, source, known);
    const std::string kept = keep_program(options.artifacts(), tally.kernels);
    const std::string lost = try_kept(kept, run.worker, source);
    if (!lost.empty()) night.notes.push_back(lost);
    night.run = tally.run;
    time.left_out = tally.left_out;
    time.seconds_per_row = tally.seconds_per_row;
    time.row_share_s = run.row_share_s;
    std::ranges::copy(tally.notes, std::back_inserter(night.notes));
    calls.measured(tally);
    return tally.exit();
  });
}

/// Faults of a known size, which the gate has to catch before its silence means anything.
Exit fly(const NightOptions& options, const NightCalls& calls, const Hours& hours,
         double seconds_per_row, WorkerSource& source) {
  return exit_of(calls, [&] {
    Store store = Store::open(options.db(), Store::Mode::write);
    SelftestOptions test{canary_options(options), options.backend, options.rules.limits};
    test.run.deadline = hours.during(kCanaries);
    test.run.row_share_s = options.row_share_s();
    test.seconds_per_row = seconds_per_row;
    const Canaries canaries = fly_canaries(store, test, source);
    calls.flown(canaries);
    return canaries.caught() ? Exit::ok : Exit::environment;
  });
}

/// Whether a program starts and speaks this one's protocol; why it does not is told.
bool answers(const std::string& program, const NightOptions& options, const NightCalls& calls,
             WorkerSource& source) {
  try {
    WorkerOptions worker = verify_options(options, Task::verify).worker;
    worker.program = program;
    worker.device = devices_of(worker.device)[0];
    worker.modules = kernels_kept_with(program);
    source.start(worker);
    return true;
  } catch (const Error& error) {
    if (error.code() == Exit::interrupted) throw;
    calls.failed(error);
    return false;
  }
}

}  // namespace

std::vector<std::string> default_suites(Backend backend) {
  return {backend == Backend::host ? "smoke" : "nightly"};
}

RunOptions verify_options(const NightOptions& options, Task task) {
  RunOptions run = options_of(options, "tiny");
  run.worker.task = task;
  run.worker.sample_seed = options.sample_seed;
  return run;
}

RunOptions drawn_options(const NightOptions& options) {
  constexpr uint64_t kMost = 300, kStream = 911;
  RunOptions run = verify_options(options, Task::verify);
  run.axes["tokens"] = {std::to_string(1 + random_bits(options.sample_seed, kStream, 0) % kMost)};
  run.axes["routing"] = {"uniform"};  // recorded ids are those of few tokens
  return run;
}

RunOptions run_options(const NightOptions& options, const std::string& now) {
  const bool host = options.backend == Backend::host;
  RunOptions run = options_of(options, nullptr);
  run.rounds = options.rounds > 0 ? options.rounds : host ? kRounds : kNightRounds;
  run.label = "nightly-" + now;
  run.worker.sample_seed = options.sample_seed;
  run.invariance = 128;  // tokens: where kernels choose most of their blocks and splits
  run.command =
      fmt::format("moegate run{} --rounds {} --db {} --keep-artifact --label {}",
                  repeating_flags(run, kSelectionGroup), run.rounds, shell_word(run.db), run.label);
  return run;
}

RunOptions canary_options(const NightOptions& options) {
  RunOptions run = options_of(options, "smoke");
  if (judges_own_kernels(options)) {
    run.filter = "tokens=16(,|$)";
    run.axes["launch"] = {"graph"};
  }
  run.tags["selftest"] = "1";
  run.command = fmt::format("moegate selftest canaries{} --db {}",
                            repeating_flags(run, kSelectionGroup), shell_word(run.db));
  return run;
}

double NightOptions::row_share_s() const {
  constexpr double kShare = 0.1, kLeast = 10;
  return std::max(kLeast, kShare * budget());
}

double NightOptions::budget() const {
  constexpr double kHost = 600, kCuda = 1200;
  return budget_s > 0 ? budget_s : backend == Backend::host ? kHost : kCuda;
}

Night night(const NightOptions& options, const NightCalls& calls, WorkerSource& source) {
  Night night;
  const Hours hours(options);
  std::string klass;  // of the device
  verify(options, calls, hours, source, night, klass);
  if (night.exit() == Exit::interrupted) return night;

  GateTime time;
  measure(options, calls, hours, klass, source, night, time);
  if (night.run == 0 || !can_be_judged(night.exits.run)) return night;

  night.exits.canaries = fly(options, calls, hours, time.seconds_per_row, source);
  if (night.exits.canaries == Exit::interrupted) return night;

  // A program of another age may not be one to talk to: then the stored numbers decide.
  const auto its_program = [&](const BaselineHeader& baseline) -> std::string {
    const std::string program =
        program_of(baseline, {options.artifacts(), home() / "artifacts"}, calls.build,
                   hours.end().left(), !options.kernels.empty());
    return program.empty() || answers(program, options, calls, source) ? program : "";
  };
  night.exits.gate = exit_of(calls, [&] {
    Store store = Store::open(options.db(), Store::Mode::update);
    time.until = hours.end();
    GateRules rules = options.rules;
    rules.kernels = options.kernels;
    night.verdict = gate(store, options.db(), night.run, rules, its_program, time, source);
    std::ranges::copy(night.notes, std::back_inserter(night.verdict->result.notes));
    return night.verdict->exit;
  });
  return night;
}

}  // namespace moegate
