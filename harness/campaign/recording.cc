// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/recording.h"

#include <unistd.h>

#include <algorithm>

#include "harness/base/interrupt.h"
#include "harness/base/notes.h"
#include "harness/base/rng.h"
#include "harness/base/text.h"
#include "harness/campaign/git.h"
#include "harness/campaign/program.h"
#include "harness/judge/evidence.h"
#include "harness/store/row_levels.h"
#include "harness/values/roofline.h"
#include "harness/worker/protocol.h"

namespace moegate {
namespace {

bool is_failure(Status s) {
  return s == Status::wrong || s == Status::crashed || s == Status::timeout ||
         s == Status::bad_timer;
}

RunInfo describe(const RunOptions& options, const Hello& hello) {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  RunInfo info;
  info.label = options.label;
  info.device = hello.device;
  info.protocol = kProtocol;
  info.task = name_of(options.worker.task);
  info.timer = hello.timer;
  const bool host = hello.device.backend == Backend::host;  // it flushes its operands' cache lines
  info.flush = host ? "lines" : name_of(options.worker.flush);
  info.rounds = options.rounds;
  info.git_sha = hello.git_sha;
  info.dirty = hello.dirty;
  info.build = hello.build;
  info.program =
      program_hash(options.worker.program.empty() ? own_program() : options.worker.program,
                   options.worker.kernels);
  info.host = name;
  info.command = options.command;
  info.options = options.to_json();
  for (const OpDescription& op : hello.operators) {
    info.operators.push_back(facts_of(op, hello.device.backend));
  }
  info.tags = options.tags;
  if (options.worker.sets > 0) info.tags[kSetsTag] = std::to_string(options.worker.sets);
  if (!options.worker.kernels.empty()) {
    info.tags.merge(repository_tags(options.worker.kernels[0]));  // what is there already stays
  }
  return info;
}

void check_same_setting(const RunInfo& before, const RunInfo& now) {
  const auto same = [&](const char* what, const std::string& a, const std::string& b) {
    if (a != b) {
      usage_error("--resume {}: its {} is '{}', this one is '{}'; start a new run", before.id, what,
                  a, b);
    }
  };
  same("device", before.device.uuid, now.device.uuid);
  same("timer", before.timer, now.timer);
  same("commit", before.git_sha, now.git_sha);
}

}  // namespace

void unless_interrupted(const std::function<void()>& step) {
  try {
    step();
  } catch (const Error& e) {
    if (e.code() != Exit::interrupted) throw;
  }
}

Exit Tally::exit() const {
  if (interrupted) return Exit::interrupted;
  const auto any = [&](Status s) { return counts.count(s) > 0; };
  if (any(Status::wrong)) return Exit::accuracy;
  if (any(Status::crashed) || any(Status::timeout) || any(Status::bad_timer)) return Exit::coverage;
  return Exit::ok;
}

void Tally::count(const std::string& key, const Result& result, Progress& progress) {
  const Status status = result.judged_status();
  ++counts[status];
  if (!is_failure(status)) return;
  failures.push_back({key, result.variant, result.why, result.status});
  progress.note(
      fmt::format("{} {} {}: {}", name_of(result.status), key, result.variant, result.why));
}

size_t canary_slot(const RowName& row, size_t slots) {
  const std::string text = row.first + " " + row.second;
  return hash_bytes(text.data(), text.size()) % slots;
}

Canary canary_of(const RunOptions& options, const RowName& row) {
  Canary canary;
  canary.scale = options.canary_scale;
  if (!options.canary_slow_by.empty()) {
    canary.slow_by = options.canary_slow_by[canary_slot(row, options.canary_slow_by.size())];
  }
  return canary;
}

void note_timer(const Hello& hello) {
  if (!hello.timer_note.empty()) say("{}\n", hello.timer_note);
}

Prepared prepare(const RunOptions& options, WorkerSource& source) {
  const InterruptGuard guard;  // before a worker starts: one that dies at once must not kill us
  WorkerSeat seat(source, options.worker);
  Plan plan = make_plan(options, seat.worker());
  note_timer(plan.hello);
  if (InterruptGuard::interrupted()) {
    throw Error(Exit::interrupted, "interrupted before anything was measured");
  }
  return {options, std::move(seat), std::move(plan)};
}

void Recording::begin(int64_t resume) {
  const RunInfo info = describe(options_, plan_.hello);
  if (resume > 0) {
    lock_ = RunLock(options_.db, resume);
    check_same_setting(store_.run_info(resume), info);
  }
  tally_.run = resume > 0 ? resume : store_.begin_run(info);
  if (resume <= 0) lock_ = RunLock(options_.db, tally_.run);
  if (!resumed_by_.empty()) {
    tally_.resume =
        fmt::format("{} --resume {} --db {}", resumed_by_, tally_.run, shell_word(options_.db));
  }
  tally_.device = plan_.hello.device;
  ceilings_ = store_.ceilings(tally_.device);
  done_ = store_.done(tally_.run);
}

void Recording::round(int round, const std::optional<std::set<RowName>>& only, Progress& progress) {
  process_ = 0;
  for (const PlannedCase& planned : in_order(plan_.cases, options_.order_seed, round)) {
    const std::string key = planned.spec.key();
    for (const std::string& variant : planned.variants) {
      if (InterruptGuard::interrupted()) break;
      cut_ = cut_ || time_is_up();
      if (cut_) break;
      if (only && only->count({key, variant}) == 0) continue;
      progress.step(key + " " + variant);
      if (done_.count({round, key, variant}) == 0) {
        unless_interrupted([&] { one(round, planned.spec, variant, progress); });
      }
    }
  }
  if (process_ == 0) return;  // the store had it all
  store_.end_process(process_, seat_.throttle());
  seat_.retire();
}

/// Has the process at hand run it, or a fresh one where there is none.
Result Recording::ask(int round, const Case& c, const std::string& variant, CaseData& data) {
  Worker& worker = seat_.worker();
  if (process_ == 0 || worker.pid() != pid_) {
    pid_ = worker.pid();
    process_ = store_.begin_process(tally_.run, round, pid_);
    before_.reset();
  }
  const Request request{c, variant, canary_of(options_, {c.key(), variant})};
  return worker.run(request, options_.case_timeout_s, data);
}

/// A process that dies while one row runs may die of another that ran there before (an alarm, a
/// thread, memory that it spoilt), so a fresh process says whether the row dies of itself.
Result Recording::ask_again(int round, const Case& c, const std::string& variant, Result died,
                            CaseData& data, Progress& progress) {
  const Ran before = *before_;
  Result alone = ask(round, c, variant, data);
  if (alone.status == Status::crashed || InterruptGuard::interrupted()) return alone;
  const std::string row = c.key() + " " + variant;
  if (dies_after(before, c, variant)) {
    blame(before,
          fmt::format("its process died after it, while {} ran, which alone does not: {}", row,
                      died.why),
          progress);
  } else {
    tally_.notes.push_back(fmt::format(
        "A process died while {} ran ({}); alone and after {} {} it does not: nobody is blamed.",
        row, died.why, before.spec.key(), before.variant));
    progress.note(tally_.notes.back());
  }
  return alone;
}

bool Recording::dies_after(const Ran& before, const Case& c, const std::string& variant) {
  seat_.retire();
  CaseData data;
  bool dies = false;
  for (const Request& request :
       {Request{before.spec, before.variant, {}}, Request{c, variant, {}}}) {
    if (dies) break;
    dies = seat_.worker().run(request, options_.case_timeout_s, data).status == Status::crashed;
  }
  seat_.retire();
  return dies;
}

void Recording::blame(const Ran& before, const std::string& why, Progress& progress) {
  store_.mark_crashed(before.process, before.spec.key(), before.variant, why);
  if (--tally_.counts[before.status] == 0) tally_.counts.erase(before.status);
  Result result;
  result.variant = before.variant;
  result.status = Status::crashed;
  result.why = why;
  tally_.count(before.spec.key(), result, progress);
}

void Recording::one(int round, const Case& c, const std::string& variant, Progress& progress) {
  const double start = options_.deadline.now();
  CaseData data;
  Result result = ask(round, c, variant, data);
  if (result.status == Status::crashed && before_) {
    result = ask_again(round, c, variant, std::move(result), data, progress);
  }
  const bool cold = result.measured() && cache_of(c) == Cache::cold;
  result.impossible =
      cold && !result.timer.empty() &&
      is_impossible(result.span_ns, data.cost, ceilings_, tally_.device.cache_bytes);
  result.suspect_warm = cold && came_from_cache(result, data.cost);
  store(c, data, result);
  done_.insert({round, c.key(), variant});
  tally_.count(c.key(), result, progress);
  before_ = Ran{c, variant, process_, result.judged_status()};
  note_cache_pair(c, result, data);
  seconds_ += options_.deadline.now() - start;
  tally_.seconds_per_row = seconds_ / ++rows_;
}

/// What a worker answers may be nothing that a store takes: a NaN, an output twice. It costs its row.
void Recording::store(const Case& c, const CaseData& data, Result& result) {
  try {
    store_.add_result(process_, c, data.cost, data.facts, result);
  } catch (const SqlError& e) {
    if (!e.is_about_sql()) throw;
    Result nonsense;
    nonsense.variant = result.variant;
    nonsense.status = Status::crashed;
    nonsense.why = fmt::format("answered with nonsense: {}", e.what());
    result = std::move(nonsense);
    store_.add_result(process_, c, {}, {}, result);
  }
}

/// Remembers spans of the same case cold and warm, and marks pairs that are suspiciously alike.
void Recording::note_cache_pair(const Case& c, const Result& result, const CaseData& data) {
  if (!result.measured() || cache_of(c) == Cache::cold_weights) return;
  Case cold = c;
  cold.params["cache"] = "cold";
  auto& [cold_ns, warm_ns] = cache_pairs_[{cold.key(), result.variant}];
  (cache_of(c) == Cache::cold ? cold_ns : warm_ns) = result.span_ns;
  const bool both = cold_ns > 0 && warm_ns > 0;
  if (both && looks_warm(cold_ns, warm_ns, data.cost, tally_.device.cache_bytes)) {
    store_.mark_suspect_warm(tally_.run, cold.key(), result.variant);
  }
}

std::set<CaseId, CaseIdLess> Recording::left_out() const {
  std::set<RowName> measured;
  for (const auto& [round, key, variant] : done_) measured.insert({key, variant});
  std::set<CaseId, CaseIdLess> rows;
  for (const PlannedCase& c : plan_.cases) {
    const std::string key = c.spec.key();
    for (const std::string& variant : c.variants) {
      if (measured.count({key, variant}) == 0) rows.insert({c.spec.suite, key, variant});
    }
  }
  return rows;
}

void write_down_levels(Store& store, int64_t run) {
  std::vector<RowLevel> rows;
  for (const auto& [id, side] : collect(store.levels(run))) {
    rows.push_back({.key = id.key,
                    .variant = id.variant,
                    .status = side.status,
                    .judged = side.judged,
                    .processes = side.level.n,
                    .mean_log = side.level.mean_log,
                    .sd_log = side.level.sd_log,
                    .comparable = side.comparable(),
                    .code = side.code});
  }
  write_row_levels(store, run, rows);
}

void Recording::finish(bool interrupted) {
  tally_.interrupted = interrupted;
  const bool complete = !interrupted && !cut_;
  if (complete) write_down_levels(store_, tally_.run);
  store_.end_run(tally_.run, complete ? "complete" : "interrupted");
  if (cut_) tally_.left_out = left_out();
  finished_ = true;
}

Recording::~Recording() {
  if (finished_ || tally_.run == 0) return;
  try {
    store_.end_run(tally_.run, "interrupted");
  } catch (const std::exception&) {
    // What ended the run may have ended the store: --resume takes a run that is `running` too.
  }
}

}  // namespace moegate
