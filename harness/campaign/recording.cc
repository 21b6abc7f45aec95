// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/recording.h"

#include <unistd.h>

#include <algorithm>

#include "harness/base/text.h"
#include "harness/campaign/git.h"
#include "harness/campaign/run_options.h"
#include "harness/store/level_walk.h"
#include "harness/values/roofline.h"

namespace moegate {

void unless_interrupted(const std::function<void()>& step) {
  try {
    step();
  } catch (const Error& e) {
    if (e.code() != Exit::interrupted) throw;
  }
}

Exit Tally::exit() const {
  if (interrupted) return Exit::interrupted;
  if (counts.count(Status::wrong) > 0) return Exit::accuracy;
  const bool failed =
      std::ranges::any_of(counts, [](const auto& c) { return is_failure(c.first); });
  if (failed || lost > 0) return Exit::coverage;
  return Exit::ok;
}

void Tally::count(const std::string& key, const Result& result, Progress& progress) {
  const Status status = result.judged_status();
  ++counts[status];
  note_unseen(key, result, progress);
  if (!is_failure(status)) return;
  failures.push_back({key, result.variant, result.why});
  const std::string text =
      fmt::format("{} {} {}: {}", name_of(result.status), key, result.variant, result.why);
  if (said.insert(text).second) progress.note(text);
}

void Tally::note_unseen(const std::string& key, const Result& result, Progress& progress) {
  const auto none = [](const Metric& m) { return m.name == kUnseenMetric && m.value == 0; };
  if (!std::ranges::any_of(result.metrics, none)) return;
  const std::string op = key.substr(0, key.find('/'));
  if (!never_unseen.insert(op).second) return;
  notes.push_back(fmt::format(
      "{} {} was right on its first inputs and was not verified on others: operator {} has no "
      "other activations for this case, or does not find their truth (Problem::find_truth).",
      key, result.variant, op));
  progress.note(notes.back());
}

void sort_failures(Tally& tally) {
  if (tally.gpus < 2) return;
  std::ranges::stable_sort(tally.failures, NaturalLess(), [](const Failure& failure) {
    return std::pair(failure.key, failure.variant);
  });
}

// What a run states about itself before its first row, and whether another one may be a part of it.

namespace {

/// `kernels`: of kernels from elsewhere, what they are made of once they are loaded.
RunInfo describe(const RunOptions& options, const Lanes& lanes, const Hello& hello,
                 const KernelFiles& kernels) {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  RunInfo info;
  info.label = options.label;
  if (!options.campaign.empty()) {
    info.campaign = options.campaign;
    info.shard = options.shard + 1;
    info.shards = options.shards;
  }
  info.device = hello.device;
  info.protocol = kProtocol;
  info.task = name_of(options.worker.task);
  info.timer = hello.timer;
  const bool host = hello.device.backend == Backend::host;  // it flushes its operands' cache lines
  info.flush = host ? "lines" : name_of(options.worker.conditions.flush);
  info.rounds = options.rounds;
  info.git_sha = hello.git_sha;
  info.dirty = hello.dirty;
  info.build = hello.build;
  info.program = program_hash(
      options.worker.program.empty() ? own_program() : options.worker.program, kernels);
  info.host = name;
  info.command = options.command;
  info.options = options.to_json();
  for (const OpDescription& op : hello.operators) {
    info.operators.push_back(facts_of(op, hello.device.backend));
  }
  info.tags = options.tags;
  if (options.worker.conditions.sets > 0)
    info.tags[kSetsTag] = std::to_string(options.worker.conditions.sets);
  if (lanes.several()) info.tags[kGpusTag] = gpus_text(lanes.uuids());
  if (!options.worker.modules.empty()) {
    info.tags.merge(repository_tags(options.worker.modules[0]));  // what is there already stays
  }
  return info;
}

/// Throws Error(usage) where a run that was begun in one setting cannot be finished in this one: on
/// another device, by another timer or from another commit.
void check_same_setting(const RunInfo& before, const RunInfo& now) {
  const auto same = [&](const char* what, const std::string& a, const std::string& b) {
    if (a != b) {
      usage_error("--resume {}: the run has {} '{}', and here it is '{}'; start a new run",
                  before.id, what, a, b);
    }
  };
  same("device", uuids_of(before), uuids_of(now));
  same("timer", before.timer, now.timer);
  same("commit", before.git_sha, now.git_sha);
}

}  // namespace

/// What this shard was begun as, in a task that Slurm requeued; 0: none that can be finished here.
int64_t Recording::begun_before(const RunInfo& now) {
  const int64_t run = now.shard == 0 ? 0 : store_.find_shard(now.campaign, now.shard);
  if (run == 0) return 0;
  const RunInfo before = store_.run_info(run);
  if (before.options != now.options || before.program != now.program ||
      before.shards != now.shards) {
    usage_error(
        "{}: run {} is the same shard of this campaign, but has other options or another program; "
        "give another --campaign or another --db",
        options_.db, run);
  }
  whole_ = before.status == "complete";
  if (whole_ || uuids_of(before) == uuids_of(now)) return run;
  say("run {} of this shard was on {}; the shard begins again on {}\n", run, uuids_of(before),
      uuids_of(now));
  return 0;
}

void Recording::begin(int64_t resume) {
  const RunInfo info = describe(options_, lanes_, plan_.hello, tally_.kernels);
  if (resume == 0) resume = begun_before(info);
  if (whole_) {
    tally_.run = resume;
    tally_.device = plan_.hello.device;
    finished_ = true;
    say("shard {} of {} is complete: run {}\n", info.shard, info.shards, resume);
    return;
  }
  if (resume > 0) {
    lock_.emplace(options_.db, resume);
    check_same_setting(store_.run_info(resume), info);
  }
  tally_.run = resume > 0 ? resume : store_.begin_run(info);
  if (resume <= 0) lock_.emplace(options_.db, tally_.run);
  if (!resumed_by_.empty()) {
    tally_.resume =
        fmt::format("{} --resume {} --db {}", resumed_by_, tally_.run, shell_word(options_.db));
    for (const std::string& file : options_.worker.modules)
      tally_.resume += " --module " + shell_word(file);
  }
  tally_.device = plan_.hello.device;
  ceilings_ = store_.ceilings(tally_.device);
  environment_ = store_.environment(tally_.run);
  done_ = store_.done(tally_.run);
  tally_.gpus = lanes_.size();
  if (resume > 0 && lanes_.several()) settle_as_stored();
  // In the process that planned, the kernels of a graph follow each other faster than ever after
  // (README.md): it measures nothing.
  // Nor does it compile: what it loaded, its first launches would not load again.
  if (options_.worker.task == Task::measure || options_.worker.task == Task::compile)
    lanes_.retire();
}

/// What is finished goes on where it was begun.
void Recording::settle_as_stored() {
  const std::map<std::string, int> gpus = store_.gpus_of_cases(tally_.run);
  for (size_t lane = 0; lane < lanes_.size(); ++lane) {
    const int gpu = gpu_number(lanes_.seat(lane).device());
    for (const auto& [key, number] : gpus) {
      if (number == gpu) lanes_.dealer().settle(key, lane);
    }
  }
}

void Recording::round(int round, const std::optional<std::set<RowName>>& only, Progress& progress) {
  // A sweep is in the order of its plan.
  std::vector<PlannedCase> cases = options_.worker.task == Task::compile
                                       ? plan_.cases
                                       : in_order(plan_.cases, options_.order_seed, round);
  if (only) {
    std::erase_if(cases, [&](const PlannedCase& planned) {
      const std::string key = planned.spec.key();
      return std::ranges::none_of(planned.variants, [&](const std::string& variant) {
        return only->contains({key, variant});
      });
    });
  }
  Dealer& dealer = lanes_.dealer();
  dealer.begin(std::move(cases));
  do {  // once more where a lane was lost: what it had not begun is the others'
    lanes_.each([&](size_t lane) { play(lane, round, only, progress); });
  } while (dealer.any() && lanes_.going_on() && !cut_);
  behind_ = behind_ || (tally_.lost > 0 && dealer.leaves_some());
}

void Recording::play(size_t lane, int round, const std::optional<std::set<RowName>>& only,
                     Progress& progress) {
  Place& place = at_[lane];
  place.process = 0;
  while (lanes_.going_on() && !cut_) {
    const std::optional<PlannedCase> planned = lanes_.dealer().next(lane);
    if (!planned) break;
    try {
      play_case(lane, round, *planned, only, progress);
    } catch (const Error& error) {
      const bool others = lanes_.dealer().left() > 1;
      if (!others || error.code() != Exit::environment) throw;
      lanes_.dealer().put_back(*planned, lane);
      return lose(lane, error, progress);
    }
  }
  if (place.process == 0) return;  // the store had it all
  store_.end_process(place.process, lanes_.seat(lane).ask(&Worker::throttle));
  for (LoadedFile& file : lanes_.seat(lane).ask(&Worker::loaded)) {
    loaded_.insert_or_assign(file.path, std::move(file));
  }
  store_environment(place.process, lanes_.seat(lane).ask(&Worker::environment));
  lanes_.seat(lane).retire();
}

/// Processes of one run are compared as one side: they may load more or less, but nothing else.
void Recording::store_environment(int64_t process, const EnvironmentItems& environment) {
  store_.set_environment(process, environment);
  const std::string what = contradiction(environment_, environment);
  if (!what.empty()) {
    give_up(Exit::environment,
            "the environment changed while run {} was measured: {}; measure again when nobody "
            "installs anything",
            tally_.run, what);
  }
  environment_.insert(environment_.end(), environment.begin(), environment.end());
  environment_ = in_order(std::move(environment_));
}

void Recording::play_case(size_t lane, int round, const PlannedCase& planned,
                          const std::optional<std::set<RowName>>& only, Progress& progress) {
  const std::string key = planned.spec.key();
  for (const std::string& variant : planned.variants) {
    if (!lanes_.going_on()) break;
    cut_ = cut_ || time_is_up();
    if (cut_) break;
    if (only && only->count({key, variant}) == 0) continue;
    if (done_.count({round, key, variant}) > 0 || stopped_.contains({key, variant})) continue;
    progress.step(key + " " + variant);
    unless_interrupted([&] { one({lane, round, planned.spec, variant}, progress); });
  }
}

/// Its device does not open any more.
void Recording::lose(size_t lane, const Error& why, Progress& progress) {
  lanes_.dealer().lose(lane);
  ++tally_.lost;
  tally_.notes.push_back(
      fmt::format("{} was lost ({}): the other devices measured the rows that it had not begun, "
                  "and the rows that it had begun lack rounds.",
                  lanes_.seat(lane).device(), why.what()));
  progress.note(tally_.notes.back());
}

std::set<CaseId, CaseIdLess> Recording::left_out() {
  std::set<RowName> measured;
  for (const auto& [round, key, variant] : done_) measured.insert({key, variant});
  std::vector<CaseQuestion> questions;
  for (const PlannedCase& c : plan_.cases) {
    CaseQuestion question{.spec = c.spec, .variants = c.variants};
    const std::string key = c.spec.key();
    std::erase_if(question.variants, [&](const std::string& variant) {
      return measured.contains({key, variant});
    });
    if (!question.variants.empty()) questions.push_back(std::move(question));
  }
  std::vector<CaseAnswer> answers(questions.size());
  if (!questions.empty() && tally_.lost == 0) {
    answers = lanes_.seat(0).worker().check(questions);
    lanes_.seat(0).retire();
  }
  std::set<CaseId, CaseIdLess> rows;
  for (size_t i = 0; i < questions.size(); ++i) {
    const Case& spec = questions[i].spec;
    for (const std::string& variant : questions[i].variants) {
      if (!answers[i].unsupported.contains(variant)) {
        rows.insert({spec.suite, spec.key(), variant});
      }
    }
  }
  return rows;
}

void write_down_levels(Store& store, int64_t run) {
  std::vector<RowLevel> rows;
  for (const auto& [id, side] : collect(store.each_level(run))) {
    rows.push_back({0, id.key, id.variant, side.status, side.judged, side.level.n,
                    side.level.mean_log, side.level.sd_log, side.comparable(), side.code});
  }
  write_row_levels(store, run, rows);
}

void Recording::finish(bool interrupted) {
  tally_.interrupted = interrupted;
  const bool all = !interrupted && !cut_ && !behind_;
  // On several GPUs a row's history is that of one of them, which its results name.
  if (all && !lanes_.several()) write_down_levels(store_, tally_.run);
  store_.end_run(tally_.run, all ? "complete" : "interrupted");
  if (!interrupted && (cut_ || behind_)) tally_.left_out = left_out();
  tally_.kernels.loaded = tally_.kernels.imported;
  for (const auto& [path, file] : loaded_) {
    const bool known = std::ranges::count(tally_.kernels.imported, path, &LoadedFile::path) > 0;
    if (!known) tally_.kernels.loaded.push_back(file);
  }
  sort_failures(tally_);
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

// What becomes of one row of a recording: asked of a worker, doubted, stored.

/// Has the process at hand run it, or a fresh one where there is none.
Result Recording::ask(const Row& row, CaseData& data) {
  WorkerSeat& seat = lanes_.seat(row.lane);
  const pid_t pid = seat.worker().pid();
  Place& place = at_[row.lane];
  if (place.process == 0 || pid != place.pid) {
    place.pid = pid;
    place.process = store_.begin_process(tally_.run, row.round, place.pid);
    place.before.reset();
  }
  const RowName name{row.spec.key(), row.variant};
  const Request request{.spec = row.spec,
                        .variant = row.variant,
                        .canary = canary_of(options_, name),
                        .invariance = row.round == 0 ? options_.invariance : 0};
  Result result = seat.run(request, options_.row_time(), data);
  if (result.status == Status::timeout && options_.row_share_s > 0) stopped_.insert(name);
  return result;
}

/// A process that dies while one row runs may die of another that ran there before (an alarm, a
/// thread, memory that it spoilt). A row that crashes in some processes looks the same, so the
/// crash is its own unless each time it lives alone and dies behind the other.
Result Recording::ask_again(const Row& row, Result died, CaseData& data, Progress& progress) {
  constexpr int kTimes = 3;
  const Ran before = *at_[row.lane].before;
  Result alone = ask(row, data);
  for (int time = 1; time <= kTimes; ++time) {
    if (InterruptGuard::interrupted()) return alone;
    if (time > 1 && dies(row.lane, {{.spec = row.spec, .variant = row.variant}})) return died;
    if (alone.status == Status::crashed) return alone;
    if (dies(row.lane, {{.spec = before.spec, .variant = before.variant},
                        {.spec = row.spec, .variant = row.variant}}))
      continue;
    tally_.notes.push_back(
        fmt::format("{} {} crashed in one process and not in another, both alone and after {} {}: "
                    "it caused the crash itself.",
                    row.spec.key(), row.variant, before.spec.key(), before.variant));
    progress.note(tally_.notes.back());
    return died;
  }
  blame(before,
        fmt::format("its process died after it, while {} {} ran, which alone does not ({} times of "
                    "{}): {}",
                    row.spec.key(), row.variant, kTimes, kTimes, died.why),
        progress);
  return alone;
}

/// Whether a fresh process dies of these, one after the other.
bool Recording::dies(size_t lane, const std::vector<Request>& requests) {
  WorkerSeat& seat = lanes_.seat(lane);
  seat.retire();
  CaseData data;
  bool dies = false;
  for (const Request& request : requests) {
    if (dies) break;
    dies = seat.run(request, options_.row_time(), data).status == Status::crashed;
  }
  seat.retire();
  return dies;
}

void Recording::blame(const Ran& before, const std::string& why, Progress& progress) {
  store_.mark_crashed(before.process, before.spec.key(), before.variant, why);
  if (--tally_.counts[before.status] == 0) tally_.counts.erase(before.status);
  const Result result{.variant = before.variant, .status = Status::crashed, .why = why};
  tally_.count(before.spec.key(), result, progress);
}

void Recording::one(const Row& row, Progress& progress) {
  const double start = options_.deadline.now();
  CaseData data;
  Place& place = at_[row.lane];
  Result result = ask(row, data);
  if (result.status == Status::crashed && place.before) {
    result = ask_again(row, std::move(result), data, progress);
  }
  const bool cold = result.measured() && cache_of(row.spec) == Cache::cold;
  result.impossible =
      cold && !result.timer.empty() &&
      is_impossible(result.span_ns, data.cost, ceilings_, tally_.device.cache_bytes);
  result.suspect_warm = cold && came_from_cache(result, data.cost);
  store(row, data, result);
  lanes_.dealer().settle(row.spec.key(), row.lane);
  done_.insert({row.round, row.spec.key(), row.variant});
  tally_.count(row.spec.key(), result, progress);
  place.before = Ran{row.spec, row.variant, place.process, result.judged_status()};
  note_cache_pair(row.spec, result, data);
  seconds_ += options_.deadline.now() - start;
  tally_.seconds_per_row = seconds_ / ++rows_ / static_cast<double>(lanes_.dealer().left());
}

/// An answer that no store takes (a NaN, an output twice) costs its row.
void Recording::store(const Row& row, const CaseData& data, Result& result) {
  const int64_t process = at_[row.lane].process;
  say_which_gpu(row.lane, result);
  try {
    store_.add_result(process, row.spec, data.cost, data.facts, result);
  } catch (const SqlError& e) {
    if (!e.is_about_sql()) throw;
    result = Result{.variant = result.variant,
                    .status = Status::crashed,
                    .why = fmt::format("answered with nonsense: {}", e.what())};
    say_which_gpu(row.lane, result);
    store_.add_result(process, row.spec, {}, {}, result);
  }
}

/// Where it could be one of several. A worker has no say in it.
void Recording::say_which_gpu(size_t lane, Result& result) {
  if (!lanes_.several()) return;
  std::erase_if(result.metrics, [](const Metric& metric) { return metric.name == kGpuMetric; });
  const int gpu = gpu_number(lanes_.seat(lane).device());
  result.metrics.push_back({.name = kGpuMetric, .unit = "", .value = static_cast<double>(gpu)});
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

}  // namespace moegate
