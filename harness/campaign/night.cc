// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/night.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdio>

#include "harness/base/text.h"
#include "harness/campaign/runner.h"
#include "harness/judge/creep.h"

namespace moegate {
namespace {

// --- the gate: find, screen, replay, conclude

/// The suspects of the suites that one program is the baseline of.
using Replays = std::map<std::string, std::set<RowName>>;  // by program

Replays by_program(const GateInput& input, const std::vector<CaseId>& suspects,
                   const ProgramOf& program_of) {
  std::map<std::string, std::string> programs;  // by suite
  Replays replays;
  for (const CaseId& suspect : suspects) {
    const auto header = input.expected.headers.find(suspect.suite);
    if (header == input.expected.headers.end()) continue;
    const auto [known, first] = programs.try_emplace(suspect.suite);
    if (first) known->second = program_of(header->second);
    if (known->second.empty()) continue;
    replays[known->second].insert({suspect.key, suspect.variant});
  }
  return replays;
}

AbOptions replay_options(const GateInput& input, const std::string& program,
                         const std::set<RowName>& suspects) {
  AbOptions ab;
  ab.run.from_json(input.run.options);
  ab.run.db = input.db;
  ab.run.command = input.run.command;
  ab.run.tags["replay"] = std::to_string(input.run.id);
  ab.base.program = program;
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
  return fmt::format("{} --device {} --rounds {} --db {} --keep-artifact --label {}", command,
                     run.worker.device, run.rounds, shell_word(run.db), run.label);
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

/// The correctness suite. A tolerance that accepts outputs spoilt on purpose says nothing about the
/// others.
void verify(const NightOptions& options, const NightCalls& calls, WorkerSource& source,
            NightExits& exits) {
  exits.verify = exit_of(
      calls, [&] { return check(verify_options(options, Task::verify), source, calls.verified); });
  if (exits.verify == Exit::interrupted) return;
  exits.controls = exit_of(
      calls, [&] { return check(verify_options(options, Task::controls), source, calls.spoilt); });
}

void measure(const NightOptions& options, const NightCalls& calls, WorkerSource& source,
             Night& night) {
  night.exits.run = exit_of(calls, [&] {
    const auto now = std::chrono::system_clock::now();
    const std::string stamp =
        fmt::format("{:%Y%m%dT%H%M%SZ}", fmt::gmtime(std::chrono::system_clock::to_time_t(now)));
    const Tally tally = run_suites(run_options(options, stamp), 0, source);
    keep_program(options.artifacts());
    night.run = tally.run;
    calls.measured(tally);
    return tally.exit();
  });
}

/// Faults of a known size, which the gate has to catch before its silence means anything.
Exit fly(const NightOptions& options, const NightCalls& calls, WorkerSource& source) {
  return exit_of(calls, [&] {
    Store store = Store::open(options.db(), Store::Mode::write);
    const SelftestOptions test{canary_options(options), options.backend, options.rules.limits};
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
    source.start(worker);
    return true;
  } catch (const Error& error) {
    if (error.code() == Exit::interrupted) throw;
    calls.failed(error);
    return false;
  }
}

}  // namespace

GateInput find_input(Store& store, const std::string& db, int64_t run, const GateRules& rules) {
  GateInput input;
  input.run = store.run_info(run);
  input.db = db;
  const Backend backend = input.run.device.backend;
  input.sides = collect(store.levels(run));
  input.setting = {rules.limits(backend), backend == Backend::host, is_partial(input.run)};
  input.expected = find_baselines(rules.baselines, input.run, input.sides);
  return input;
}

std::vector<CaseId> screen(const GateInput& input) {
  return suspects(judge(input.sides, input.expected.suites, input.setting));
}

Replayed replay(Store& store, const GateInput& input, const std::vector<CaseId>& suspects,
                const ProgramOf& program_of, const GateRules& rules, WorkerSource& source) {
  Replayed all;
  const Replays replays = by_program(input, suspects, program_of);
  if (!replays.empty() && program_hash("/proc/self/exe") != input.run.program) {
    usage_error(
        "--replay-program: {} was measured by another program than this one; let that one judge it",
        describe(input.run));
  }
  const auto limits = [&](Backend backend) {
    Limits shared = rules.limits(backend);
    shared.alpha /= static_cast<double>(replays.size());
    return shared;
  };
  for (const auto& [program, rows] : replays) {
    fmt::print(stderr, "replaying {} of {} cases against {}\n", rows.size(), input.sides.size(),
               program);
    PreparedAb prepared = prepare_ab(replay_options(input, program, rows), source);
    Comparison result = run_ab(store, std::move(prepared), limits);
    if (result.interrupted) throw Error(Exit::interrupted, "interrupted during the replay");
    all.judged.merge(result.decided.judged);
    all.identical.merge(result.decided.identical);
    all.worse.merge(result.decided.worse);
    all.compared.merge(result.decided.compared);
  }
  return all;
}

Verdict conclude(const GateInput& input, const Replayed& replayed, const GateRules& rules) {
  const RunInfo& run = input.run;
  const bool full = !input.setting.partial;
  Verdict verdict{run, input.setting.limits, {}, Exit::ok};
  verdict.result = judge(input.sides, input.expected.suites, input.setting, replayed);
  apply_creep(verdict.result, input.expected.suites,
              CreepLimits::of(run.device.backend, verdict.limits));
  apply_waivers(verdict.result, rules.waivers, run.device.klass, today(), full);
  verdict.exit = decide_exit(verdict.result, rules.fail_on,
                             rules.require_baseline && !input.expected.all_blessed);
  return verdict;
}

Verdict gate(Store& store, const std::string& db, int64_t run, const GateRules& rules,
             const ProgramOf& program_of, WorkerSource& source) {
  const GateInput input = find_input(store, db, run, rules);
  const std::vector<CaseId> suspects = screen(input);
  const Replayed replayed = replay(store, input, suspects, program_of, rules, source);
  return conclude(input, replayed, rules);
}

RunOptions verify_options(const NightOptions& options, Task task) {
  RunOptions run;
  run.suites = {"tiny"};
  run.worker.device = options.device;
  run.worker.task = task;
  return run;
}

RunOptions run_options(const NightOptions& options, const std::string& now) {
  const bool host = options.backend == Backend::host;
  RunOptions run;
  run.suites = options.suites;
  if (run.suites.empty()) run.suites = {host ? "smoke" : "nightly"};
  run.worker.device = options.device;
  run.rounds = options.rounds > 0 ? options.rounds : host ? 3 : 5;
  run.db = options.db();
  run.label = "nightly-" + now;
  run.command = command_of(run);
  return run;
}

RunOptions canary_options(const NightOptions& options) {
  RunOptions run;
  run.suites = {"smoke"};
  run.filter = "tokens=16(,|$)";
  run.axes["launch"] = {"graph"};
  run.worker.device = options.device;
  run.db = options.db();
  run.tags["selftest"] = "1";
  run.command = fmt::format(
      "moegate selftest --canaries --suite smoke --filter '{}' --launch graph --device {} --db {}",
      run.filter, options.device, shell_word(run.db));
  return run;
}

Night night(const NightOptions& options, const NightCalls& calls, WorkerSource& source) {
  Night night;
  verify(options, calls, source, night.exits);
  if (night.exit() == Exit::interrupted) return night;

  measure(options, calls, source, night);
  if (night.run == 0 || !can_be_judged(night.exits.run)) return night;

  night.exits.canaries = fly(options, calls, source);
  if (night.exits.canaries == Exit::interrupted) return night;

  // A program of another age may not be one to talk to: then the stored numbers decide.
  const auto its_program = [&](const BaselineHeader& baseline) -> std::string {
    const std::string program = program_of(baseline, options.artifacts(), calls.build);
    return program.empty() || answers(program, options, calls, source) ? program : "";
  };
  night.exits.gate = exit_of(calls, [&] {
    Store store = Store::open(options.db(), Store::Mode::update);
    night.verdict = gate(store, options.db(), night.run, options.rules, its_program, source);
    return night.verdict->exit;
  });
  return night;
}

}  // namespace moegate
