// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/night.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iterator>

#include "harness/base/home.h"
#include "harness/base/notes.h"
#include "harness/base/rng.h"
#include "harness/base/text.h"
#include "harness/campaign/devices.h"
#include "harness/campaign/row_command.h"
#include "harness/campaign/runner.h"
#include "harness/judge/creep.h"

namespace moegate {
namespace {

// --- the gate: find, screen, replay, conclude

std::string cannot_see(const std::string& suite, const BaselineHeader& baseline) {
  return fmt::format(
      "suite {} was measured on another device ({}), its baseline's program is not to be had for a "
      "replay, and too few rows show by how much the devices differ",
      suite, baseline.gpu);
}

/// The suspects of the suites that one program is the baseline of, the most suspicious first.
using Replays = std::map<std::string, std::vector<RowName>>;  // by program

Replays by_program(const GateInput& input, const std::vector<CaseId>& suspects,
                   const ProgramOf& program_of, std::string& unable) {
  std::map<std::string, std::string> programs;  // by suite
  Replays replays;
  for (const CaseId& suspect : suspects) {
    const auto header = input.expected.headers.find(suspect.suite);
    if (header == input.expected.headers.end()) continue;
    const auto [known, first] = programs.try_emplace(suspect.suite);
    if (first) known->second = program_of(header->second);
    if (known->second.empty()) {
      const Expectation& e = input.expected.suites.at(suspect.suite);
      if (e.other_device && !e.between) unable = cannot_see(suspect.suite, header->second);
      continue;
    }
    replays[known->second].emplace_back(suspect.key, suspect.variant);
  }
  return replays;
}

/// Of this program with the run's kernels from elsewhere, as they are now.
std::string own_hash(const RunInfo& run) {
  RunOptions measured;
  measured.from_json(run.options);
  return program_hash(own_program(), measured.worker.kernels);
}

AbOptions replay_options(const GateInput& input, const GateRules& rules, const std::string& program,
                         const std::vector<RowName>& suspects) {
  AbOptions ab;
  ab.run.from_json(input.run.options);
  if (!rules.device.empty()) ab.run.worker.device = rules.device;
  ab.run.order_seed = 0;
  ab.run.db = input.db;
  ab.run.command = input.run.command;
  ab.run.tags["replay"] = std::to_string(input.run.id);
  ab.base.program = program;
  ab.base.kernels = kernels_kept_with(program);
  if (ab.base.kernels.empty() && !ab.run.worker.kernels.empty()) {
    usage_error(
        "--replay-program {}: {} has kernels from elsewhere, and none were kept with that program; "
        "give one of out/artifacts",
        program, describe(input.run));
  }
  ab.base.label = "baseline's program";
  ab.head.label = fmt::format("replay of {}", describe(input.run));
  ab.suspects = suspects;
  return ab;
}

// --- the night: verify, measure, canaries

/// The command that does the same again, by hand.
std::string command_of(const RunOptions& run) {
  std::string command = "moegate run";
  for (const std::string& suite : run.suites) command += " --suite " + shell_word(suite);
  for (const std::string& file : run.worker.kernels) command += " --kernels " + shell_word(file);
  if (run.worker.sample_seed != 0) {
    command += fmt::format(" --sample-seed {}", run.worker.sample_seed);
  }
  return fmt::format("{} --device {} --rounds {} --db {} --keep-artifact --label {}", command,
                     run.worker.device, run.rounds, shell_word(run.db), run.label);
}

/// What this night looked at that others do not, and how to look at it again.
std::string what_was_drawn(const NightOptions& options) {
  const RunOptions drawn = drawn_options(options);
  return fmt::format(
      "Further rows of large outputs were compared with the truth, drawn by sample seed {}. Cases "
      "of suite tiny were verified with another number of tokens, too: `moegate verify --suite "
      "tiny "
      "--axis tokens={} --axis routing=uniform --sample-seed {} --device {}`.",
      options.sample_seed, drawn.axes.at("tokens")[0], options.sample_seed, options.device);
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

Exit check(const RunOptions& options, WorkerSource& source,
           const std::function<void(const Tally&)>& tell) {
  const Tally tally = check_suites(options, source);
  tell(tally);
  return tally.exit();
}

// The share of the night that is over at the end of each phase. The rest is the replay's, and the
// canaries, which measure nothing that is asked about, get a tenth at most.
constexpr double kVerified = 0.1, kDrawn = 0.02, kSpoilt = 0.15, kMeasured = 0.6, kCanaries = 0.1;

/// The night's time.
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

/// One sentence about what a check had no time for.
std::string left_unchecked(const char* what, const Tally& tally) {
  size_t done = 0;
  for (const auto& [status, n] : tally.counts) done += static_cast<size_t>(n);
  const CaseId& one = *tally.left_out.begin();
  return fmt::format("{} of suite tiny had no time for {} of {} rows, for example {} {}.", what,
                     tally.left_out.size(), tally.left_out.size() + done, one.key, one.variant);
}

/// The correctness suite. A tolerance that accepts outputs spoilt on purpose says nothing about the
/// others.
void verify(const NightOptions& options, const NightCalls& calls, const Hours& hours,
            WorkerSource& source, Night& night) {
  const auto heard = [&](const char* what, const auto& tell) {
    return [&night, what, &tell](const Tally& tally) {
      if (!tally.left_out.empty()) night.notes.push_back(left_unchecked(what, tally));
      tell(tally);
    };
  };
  const auto timed = [&](RunOptions run, const Deadline& deadline) {
    run.deadline = deadline;
    run.order_seed = draw_order_seed();
    return run;
  };
  night.exits.verify = exit_of(calls, [&] {
    return check(timed(verify_options(options, Task::verify), hours.until(kVerified)), source,
                 heard("Verification", calls.verified));
  });
  if (night.exits.verify == Exit::ok && options.sample_seed != 0) {
    night.notes.push_back(what_was_drawn(options));
    // As many of them, in random order, as there is time for.
    night.exits.verify = exit_of(calls, [&] {
      return check(timed(drawn_options(options), hours.during(kDrawn)), source, calls.verified);
    });
  }
  if (night.exits.verify == Exit::interrupted) return;
  night.exits.controls = exit_of(calls, [&] {
    return check(timed(verify_options(options, Task::controls), hours.until(kSpoilt)), source,
                 heard("The negative controls", calls.spoilt));
  });
}

void measure(const NightOptions& options, const NightCalls& calls, const Hours& hours,
             WorkerSource& source, Night& night, GateTime& time) {
  night.exits.run = exit_of(calls, [&] {
    const auto now = std::chrono::system_clock::now();
    const std::string stamp =
        fmt::format("{:%Y%m%dT%H%M%SZ}", fmt::gmtime(std::chrono::system_clock::to_time_t(now)));
    RunOptions run = run_options(options, stamp);
    run.deadline = hours.until(kMeasured);
    run.order_seed = draw_order_seed();
    const Tally tally = run_suites(run, 0, source);
    keep_program(options.artifacts(), options.kernels);
    night.run = tally.run;
    time.left_out = tally.left_out;
    time.seconds_per_row = tally.seconds_per_row;
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
    worker.kernels = kernels_kept_with(program);
    source.start(worker);
    return true;
  } catch (const Error& error) {
    if (error.code() == Exit::interrupted) throw;
    calls.failed(error);
    return false;
  }
}

}  // namespace

std::vector<AbsentShard> absent_shards(Store& store, const RunInfo& run) {
  std::vector<AbsentShard> absent;
  for (const int shard : store.absent_shards(run)) {
    absent.push_back({shard, run.shards, shard_command(run.command, shard, run.shards)});
  }
  return absent;
}

GateInput find_input(Store& store, const std::string& db, int64_t run, const GateRules& rules) {
  store.check_intact(kQuicklyRead);
  GateInput input;
  input.run = store.run_info(run);
  input.db = db;
  input.absent_shards = absent_shards(store, input.run);
  const Backend backend = input.run.device.backend;
  input.sides = collect(store.each_level(run));
  input.setting = {rules.limits(backend), backend == Backend::host, is_partial(input.run)};
  input.expected = find_baselines(rules.baselines, input.run, input.sides);
  for (auto& [suite, e] : input.expected.suites) {
    if (!e.other_device) continue;
    e.between = device_spread(e.sides, input.sides, std::log1p(input.setting.limits.margin));
    if (e.between) e.note += "; " + e.between->text();
  }
  return input;
}

Screened screen(const GateInput& input) {
  Screened screened{judge(input.sides, input.expected.suites, input.setting), {}};
  const std::vector<CaseVerdict>& cases = screened.result.cases;
  std::vector<size_t> found = suspects(screened.result);
  for (size_t i = 0; i < cases.size(); ++i) {
    const CaseVerdict& v = cases[i];
    const bool off = v.base > 0 && v.head > v.base * (1 + input.setting.limits.fail_at);
    if (v.outcome == Outcome::identical && off) found.push_back(i);
  }
  const auto p_of_slower = [&](size_t i) {
    const CaseVerdict& v = cases[i];
    return v.latency && v.outcome != Outcome::identical ? v.latency->p : 0;
  };
  std::ranges::stable_sort(found, {}, p_of_slower);
  for (const size_t i : found) screened.suspects.push_back(cases[i].id);
  return screened;
}

Replayed replay(Store& store, const GateInput& input, const std::vector<CaseId>& suspects,
                const ProgramOf& program_of, const GateRules& rules, const GateTime& time,
                WorkerSource& source, std::vector<Compared>& compared) {
  Replayed all;
  if (time.left_out) all.left_out = *time.left_out;
  const Replays replays = by_program(input, suspects, program_of, all.unable);
  if (!replays.empty() && own_hash(input.run) != input.run.program) {
    usage_error(
        "--replay-program: {} was measured by another program than this one; let that one judge it",
        describe(input.run));
  }
  const auto limits = [&](Backend backend) {
    Limits shared = rules.limits(backend);
    shared.alpha /= static_cast<double>(replays.size());
    return shared;
  };
  size_t left = replays.size();
  for (const auto& [program, rows] : replays) {
    say("replaying {} of {} rows against {}\n", rows.size(), input.sides.size(), program);
    AbOptions options = replay_options(input, rules, program, rows);
    options.seconds_per_row = time.seconds_per_row;
    options.run.deadline = time.until.within(time.until.left() / static_cast<double>(left--));
    PreparedAb prepared = prepare_ab(std::move(options), source);
    compared.push_back(keep_for_why(prepared));
    Comparison result = run_ab(store, std::move(prepared), limits);
    complete_for_why(compared.back(), result);
    if (result.interrupted) throw Error(Exit::interrupted, "interrupted during the replay");
    all.judged.merge(result.decided.judged);
    all.identical.merge(result.decided.identical);
    all.left_out.merge(result.decided.left_out);
    std::ranges::copy(result.decided.notes, std::back_inserter(all.notes));
    all.worse.merge(result.decided.worse);
    all.compared.merge(result.decided.compared);
  }
  return all;
}

Verdict conclude(const GateInput& input, GateResult screened, const Replayed& replayed,
                 const GateRules& rules) {
  const RunInfo& run = input.run;
  const bool full = !input.setting.partial;
  Verdict verdict{run, input.setting.limits, std::move(screened), Exit::ok};
  if (!replayed.nothing()) {
    verdict.result = judge(input.sides, input.expected.suites, input.setting, replayed);
  }
  verdict.result.absent_shards = input.absent_shards;
  apply_creep(verdict.result, input.expected.suites,
              CreepLimits::of(run.device.backend, verdict.limits));
  apply_waivers(verdict.result, rules.waivers, run.device.klass, today(), full);
  verdict.exit = decide_exit(verdict.result, rules.fail_on,
                             rules.require_baseline && !input.expected.all_blessed);
  return verdict;
}

Verdict gate(Store& store, const std::string& db, int64_t run, const GateRules& rules,
             const ProgramOf& program_of, const GateTime& time, WorkerSource& source) {
  GateInput input = find_input(store, db, run, rules);
  if (time.left_out) input.setting.partial = false;
  Screened screened = screen(input);
  std::vector<Compared> compared;
  const Replayed replayed =
      replay(store, input, screened.suspects, program_of, rules, time, source, compared);
  Verdict verdict = conclude(input, std::move(screened.result), replayed, rules);
  add_causes(store, compared, rules.why, verdict.run.device.backend, time.until, verdict.result,
             source);
  return verdict;
}

RunOptions verify_options(const NightOptions& options, Task task) {
  RunOptions run;
  run.suites = {"tiny"};
  run.worker.device = options.device;
  run.worker.kernels = options.kernels;
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
  RunOptions run;
  run.suites = options.suites;
  if (run.suites.empty()) run.suites = {host ? "smoke" : "nightly"};
  run.worker.device = options.device;
  run.worker.kernels = options.kernels;
  run.rounds = options.rounds > 0 ? options.rounds : host ? 3 : 5;
  run.db = options.db();
  run.label = "nightly-" + now;
  run.worker.sample_seed = options.sample_seed;
  run.command = command_of(run);
  return run;
}

RunOptions canary_options(const NightOptions& options) {
  RunOptions run;
  run.suites = {"smoke"};
  run.filter = "tokens=16(,|$)";
  run.axes["launch"] = {"graph"};
  run.worker.device = options.device;
  run.worker.kernels = options.kernels;
  run.db = options.db();
  run.tags["selftest"] = "1";
  run.command = fmt::format(
      "moegate selftest --canaries --suite smoke --filter '{}' --launch graph --device {} --db {}",
      run.filter, options.device, shell_word(run.db));
  return run;
}

double NightOptions::budget() const {
  constexpr double kHost = 600, kCuda = 1200;
  return budget_s > 0 ? budget_s : backend == Backend::host ? kHost : kCuda;
}

Night night(const NightOptions& options, const NightCalls& calls, WorkerSource& source) {
  Night night;
  const Hours hours(options);
  verify(options, calls, hours, source, night);
  if (night.exit() == Exit::interrupted) return night;

  GateTime time;
  measure(options, calls, hours, source, night, time);
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
    night.verdict = gate(store, options.db(), night.run, options.rules, its_program, time, source);
    std::ranges::copy(night.notes, std::back_inserter(night.verdict->result.notes));
    return night.verdict->exit;
  });
  return night;
}

}  // namespace moegate
