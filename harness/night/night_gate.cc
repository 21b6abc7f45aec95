// SPDX-License-Identifier: Apache-2.0
#include "harness/night/night_gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "harness/base/notes.h"
#include "harness/base/text.h"
#include "harness/baseline/bless.h"
#include "harness/baseline/creep.h"
#include "harness/campaign/run_options.h"
#include "harness/campaign/runner.h"

namespace moegate {
namespace {

std::string cannot_see(const std::string& suite, const BaselineHeader& baseline) {
  return fmt::format(
      "suite {} was measured on another device ({}), the baseline's program is missing for a "
      "replay, and too few rows show how much the devices differ",
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

AbOptions replay_options(const GateInput& input, const GateRules& rules, const std::string& program,
                         const std::vector<RowName>& suspects) {
  AbOptions ab;
  ab.run.from_json(input.run.options);
  use_named_kernels(ab.run, rules.kernels, describe(input.run));
  if (!rules.device.empty()) ab.run.worker.device = rules.device;
  ab.run.order_seed = 0;
  ab.run.db = input.db;
  ab.run.command = input.run.command;
  ab.run.tags["replay"] = std::to_string(input.run.id);
  ab.base.program = program;
  ab.base.kernels = kernels_kept_with(program);
  if (ab.base.kernels.empty() && !ab.run.worker.modules.empty()) {
    usage_error(
        "--replay-program {}: {} was measured with --module, and no such files were kept with that "
        "program; give a program of out/artifacts",
        program, describe(input.run));
  }
  ab.base.label = "baseline's program";
  ab.head.label = fmt::format("replay of {}", describe(input.run));
  ab.suspects = suspects;
  return ab;
}

/// What is measured again is this program with the run's kernels from elsewhere, as they are now.
void check_same_program(const RunInfo& run, const KernelFiles& kernels) {
  if (program_hash(own_program(), kernels) == run.program) return;
  usage_error(
      "--replay-program: another program measured {}, or the kernels have changed since; run this "
      "command with the program that measured it",
      describe(run));
}

}  // namespace

std::vector<AbsentShard> absent_shards(Store& store, const RunInfo& run) {
  return mapped(store.absent_shards(run), [&](int shard) {
    return AbsentShard{shard, run.shards, absent_shard_command(run, shard)};
  });
}

GateInput find_input(Store& store, const std::string& db, int64_t run, const GateRules& rules,
                     const GateTime& time) {
  store.check_intact(kQuicklyRead);
  GateInput input;
  input.run = store.run_info(run);
  input.db = db;
  input.absent_shards = absent_shards(store, input.run);
  const Backend backend = input.run.device.backend;
  input.sides = collect(store.each_level(run));
  const bool whole = time.left_out.has_value();
  input.setting = {rules.limits(backend), backend == Backend::host,
                   !whole && is_partial(input.run)};
  CutRun cut{whole && input.run.status != "complete", {}};
  if (whole) {
    for (const CaseId& id : *time.left_out) cut.suites.insert(id.suite);
  }
  const EnvironmentItems environment = store.environment(run);
  input.expected = find_baselines(rules.baselines, input.run, input.sides, environment, cut);
  for (const auto& [suite, header] : input.expected.headers) {
    for (EnvironmentChange& change : changes_between(header.environment, environment)) {
      if (std::ranges::count(input.environment, change) > 0) continue;
      input.environment.push_back(std::move(change));
    }
  }
  for (auto& [suite, e] : input.expected.suites) {
    if (!e.other_device) continue;
    e.between = device_spread(e.sides, input.sides, std::log1p(input.setting.limits.margin));
    if (e.between) e.note += "; " + e.between->text();
  }
  return input;
}

Screened screen_stored(const GateInput& input) {
  GateResult result = judge(input.sides, input.expected.suites, input.setting);
  std::vector<CaseId> suspects = worth_a_replay(result, input.sides, input.setting.limits);
  return {std::move(result), std::move(suspects)};
}

Replayed replay(Store& store, const GateInput& input, const std::vector<CaseId>& suspects,
                const ProgramOf& program_of, const GateRules& rules, const GateTime& time,
                WorkerSource& source, std::vector<Compared>& compared) {
  Replayed all;
  if (time.left_out) all.left_out = *time.left_out;
  all.measuring_s = time.seconds_per_row * input.run.rounds;
  all.replaying_s = 2 * time.seconds_per_row * ReplayPlan().rounds;
  const Replays replays = by_program(input, suspects, program_of, all.unable);
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
    options.run.row_share_s = time.row_share_s;
    options.run.deadline = time.until.within(time.until.left() / static_cast<double>(left--));
    PreparedAb prepared = prepare_ab(std::move(options), source);
    check_same_program(input.run, prepared.head.kernels);
    compared.push_back(keep_for_why(prepared));
    Comparison result = run_ab(store, std::move(prepared), limits);
    complete_for_why(compared.back(), result);
    if (result.decided.interrupted) throw Error(Exit::interrupted, "interrupted during the replay");
    all.judged.merge(result.decided.judged);
    all.identical.merge(result.decided.identical);
    all.left_out.merge(result.decided.left_out);
    if (result.decided.replaying_s > 0) all.replaying_s = result.decided.replaying_s;
    std::ranges::copy(result.decided.notes, std::back_inserter(all.notes));
    all.worse.merge(result.decided.worse);
    all.compared.merge(result.decided.compared);
    all.other_questions.merge(result.decided.other_questions);
  }
  return all;
}

Verdict conclude(const GateInput& input, GateResult screened, const Replayed& replayed,
                 const GateRules& rules) {
  const RunInfo& run = input.run;
  const bool full = !input.setting.partial;
  Verdict verdict{.run = run,
                  .limits = input.setting.limits,
                  .result = std::move(screened),
                  .can_be_blessed = why_unfit(run, input.sides).empty()};
  if (!replayed.nothing()) {
    verdict.result = judge(input.sides, input.expected.suites, input.setting, replayed);
  }
  verdict.result.absent_shards = input.absent_shards;
  verdict.result.environment = input.environment;
  apply_creep(verdict.result, input.expected.suites,
              CreepLimits::of(run.device.backend, verdict.limits));
  apply_waivers(verdict.result, rules.waivers, run.device.klass, today(), full);
  verdict.exit = decide_exit(verdict.result, rules.fail_on,
                             rules.require_baseline && !input.expected.all_blessed);
  return verdict;
}

Verdict gate(Store& store, const std::string& db, int64_t run, const GateRules& rules,
             const ProgramOf& program_of, const GateTime& time, WorkerSource& source) {
  const GateInput input = find_input(store, db, run, rules, time);
  Screened screened = screen_stored(input);
  std::vector<Compared> compared;
  const Replayed replayed =
      replay(store, input, screened.suspects, program_of, rules, time, source, compared);
  Verdict verdict = conclude(input, std::move(screened.result), replayed, rules);
  add_causes(store, compared, rules.why, verdict.run.device.backend, time.until, verdict.result,
             source);
  return verdict;
}

}  // namespace moegate
