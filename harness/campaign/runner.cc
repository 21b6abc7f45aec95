// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "harness/base/environment.h"
#include "harness/base/error.h"
#include "harness/base/escape.h"
#include "harness/base/files.h"
#include "harness/base/notes.h"
#include "harness/base/subprocess.h"
#include "harness/base/text.h"
#include "harness/judge/doubts.h"
#include "harness/worker/jit_caches.h"
#include "harness/worker/protocol.h"

namespace moegate {

Prepared open_program(RunOptions options, WorkerSource& source, std::shared_ptr<Dealer> dealer) {
  Lanes lanes(source, options.worker, std::move(dealer));
  lanes.open();
  // Before anything is asked of the worker, so that it is the same whatever is measured.
  KernelFiles kernels{options.worker.modules, lanes.seat(0).ask(&Worker::loaded), {}};
  Plan plan{lanes.seat(0).worker().hello(), {}};
  return {std::move(options), std::move(lanes), std::move(plan), std::move(kernels)};
}

void end_preparing(const Hello& hello) {
  if (!hello.timer_note.empty()) say("{}\n", hello.timer_note);
  if (InterruptGuard::interrupted()) {
    throw Error(Exit::interrupted, "interrupted before anything was measured");
  }
}

Prepared prepare(const RunOptions& options, WorkerSource& source) {
  const InterruptGuard guard;  // before a worker starts: one that dies at once must not kill us
  Prepared prepared = open_program(options, source);
  prepared.plan = make_plan(options, prepared.lanes.seat(0).worker());
  end_preparing(prepared.plan.hello);
  return prepared;
}

void use_named_kernels(RunOptions& stored, const std::vector<std::string>& named,
                       const std::string& whose) {
  std::vector<std::string>& kernels = stored.worker.modules;
  if (kernels.size() == named.size()) {
    kernels = named;
    return;
  }
  std::string flags;
  for (const std::string& file : kernels) flags += " --module " + shell_word(one_line(file));
  if (flags.empty()) usage_error("{} was measured without --module; leave out --module", whose);
  usage_error(
      "{} was measured with --module, and a store must not choose which files are loaded; if you "
      "trust these files, name all of them:{}",
      whose, flags);
}

std::string time_text(const TimePlan& plan) {
  // Verifying, building inputs and starting the process take about as long as sampling may, and
  // 0.25 s at least: smoke takes 0.2 to 0.4 s a result on two cores with 20 ms to sample.
  const double verify_s = std::max(plan.budget_s, 0.25);
  const bool known = plan.seconds_each > 0;
  const double each = known ? plan.seconds_each : plan.budget_s + verify_s;
  const std::string total =
      duration_text(each * static_cast<double>(plan.results) / static_cast<double>(plan.devices));
  const std::string why =
      known ? fmt::format("about {} ({:.2g} s each, as in an earlier run here)", total, each)
            : fmt::format("likely {} (sampling {:g} s each at most, and about {:g} s to verify)",
                          total, plan.budget_s, verify_s);
  return fmt::format(
      "{} results to measure ({} rows x {} rounds): {}; a row that hangs is given "
      "up after {:g} s",
      plan.results, plan.rows, plan.rounds, why, plan.case_timeout_s);
}

namespace {

/// Of a variant's cases the one with the smallest such batch.
void note_invariance(const std::pair<std::string, std::string>& name, const Result& result,
                     Tally& tally) {
  const auto value = [&](const char* metric) -> std::optional<double> {
    const auto found = std::ranges::find(result.metrics, metric, &Metric::name);
    return found == result.metrics.end() ? std::nullopt : std::optional(found->value);
  };
  const auto tokens = value(kInvarianceMetric);
  if (!tokens) return;
  Broken& worst = tally.invariance[name];
  if (*tokens == 0 || (worst.tokens > 0 && worst.tokens <= *tokens)) return;
  worst = {*tokens, value(kBrokenPlaceMetric).value_or(0), value(kBrokenShareMetric).value_or(0)};
}

void count_check(const Request& request, const Result& result, Tally& tally, Progress& progress) {
  if (request.canary.asked()) {
    ++tally.counts[result.status];  // a failure is what was asked for
  } else {
    tally.count(request.spec.key(), result, progress);
  }
  for (const Accuracy& a : result.accuracy) {
    if (a.rounding.graded == 0) continue;
    Graded& graded = tally.graded[{request.spec.op, request.variant, a.output}];
    take_worst(graded.measured, a.rounding);
    if (a.between < 0) continue;
    graded.stated = true;
    take_worst(graded.allowed, a.allowed());
  }
  note_invariance({request.spec.op, request.variant}, result, tally);
  for (const Control& control : result.controls) {
    ++tally.controls[control.name][control.outcome];
  }
}

/// The order of run_suites() with `known`, without its last step.
class InTime {
 public:
  InTime(Store& store, Recording& recording, const RunOptions& options, const KnownOf& known,
         Progress& progress)
      : store_(store), recording_(recording), options_(options), progress_(progress) {
    for (const PlannedCase& c : in_order(recording.plan().cases, options.order_seed, 0)) {
      const auto [suite, first] = known_.try_emplace(c.spec.suite);
      if (first) suite->second = known(c.spec.suite);
      for (const std::string& variant : c.variants) {
        const CaseId id{c.spec.suite, c.spec.key(), variant};
        const auto base = suite->second.sides.find(id);
        const bool expected = base != suite->second.sides.end() && !base->second.retired;
        (expected ? old_ : new_).push_back(id);
      }
    }
  }
  void measure();

 private:
  void rounds(int first, const std::set<RowName>& rows);
  std::set<RowName> old_rows(const std::function<bool(const CaseId&)>& is_asked) const;
  void measure_new();

  Store& store_;
  Recording& recording_;
  const RunOptions& options_;
  Progress& progress_;
  std::map<std::string, Expectation> known_;  // by suite
  std::vector<CaseId> old_, new_;             // in an order that is drawn
};

void InTime::rounds(int first, const std::set<RowName>& rows) {
  for (int round = first; round < options_.rounds && !rows.empty(); ++round) {
    if (recording_.is_cut() || InterruptGuard::interrupted()) return;
    recording_.round(round, rows, progress_);
  }
}

std::set<RowName> InTime::old_rows(const std::function<bool(const CaseId&)>& is_asked) const {
  std::set<RowName> rows;
  for (const CaseId& id : old_) {
    if (is_asked(id)) rows.insert({id.key, id.variant});
  }
  return rows;
}

/// Of a first few nobody knows how long they take.
void InTime::measure_new() {
  constexpr size_t kFew = 2;
  for (size_t next = 0; next < new_.size() && !InterruptGuard::interrupted();) {
    if (recording_.is_cut()) return;
    const size_t left = new_.size() - next;
    const size_t fit = !options_.deadline.is_set() ? left
                       : !recording_.has_timed()   ? std::min(kFew, left)
                                                   : recording_.affordable(left, options_.rounds);
    if (fit == 0) return;
    std::set<RowName> rows;
    for (const size_t end = next + fit; next < end; ++next) {
      rows.insert({new_[next].key, new_[next].variant});
    }
    rounds(0, rows);
  }
}

void InTime::measure() {
  Sides measured;
  const auto look = [&] { measured = collect(store_.each_level(recording_.run())); };
  const auto first_round = [&](const std::set<RowName>& rows) {
    if (!rows.empty()) recording_.round(0, rows, progress_);
  };
  std::set<std::tuple<std::string, std::string, std::string>> seen;
  first_round(old_rows([&](const CaseId& id) {  // one of each variant
    return seen.insert({id.suite, id.key.substr(0, id.key.find('/')), id.variant}).second;
  }));
  if (!recording_.is_cut()) {
    look();
    first_round(old_rows(
        [&](const CaseId& id) { return !is_known_by_program(id, measured, known_.at(id.suite)); }));
  }
  look();
  rounds(1, old_rows([&](const CaseId& id) {  // not identical
           const auto head = measured.find(id);
           const Side& base = known_.at(id.suite).sides.at(id);
           return head != measured.end() && !same_code(base, head->second);
         }));
  measure_new();
}

}  // namespace

std::string summary(const Tally& tally, const std::string& what) {
  std::string counts;
  for (const auto& [status, n] : tally.counts) {
    counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", n, name_of(status));
  }
  const std::string several = tally.gpus > 1 ? fmt::format("{} x ", tally.gpus) : "";
  std::string text = fmt::format("{} on {}{}: {}", what, several, one_line(tally.device.name),
                                 counts.empty() ? "nothing" : counts);
  if (!tally.interrupted) return text;
  if (tally.resume.empty()) return text + " (interrupted)";
  return fmt::format("{} (interrupted; `{}` finishes it)", text, tally.resume);
}

namespace {

/// Nothing of a verification is timed or stored. So its threads sleep while they wait for each
/// other, unless the user says otherwise: on a busy machine, waiting awake takes the time of those
/// that are waited for, and rows of a second become timeouts.
RunOptions with_sleeping_threads(RunOptions options) {
  constexpr const char* kPolicy = "OMP_WAIT_POLICY";
  const Task task = options.worker.task;
  const bool only_verifies = task == Task::verify || task == Task::controls;
  if (only_verifies && environment(kPolicy).empty()) {
    options.worker.variables.emplace(kPolicy, "passive");
  }
  return options;
}

}  // namespace

Tally check_suites(const RunOptions& options, WorkerSource& source) {
  const InterruptGuard guard;
  Prepared prepared = prepare(with_sleeping_threads(options), source);
  Plan plan = std::move(prepared.plan);
  if (options.worker.task == Task::controls) {
    plan = one_per_tolerance(std::move(plan), prepared.lanes.seat(0).worker());
  }
  // With little time it is not always the same ones that are left out.
  if (options.deadline.is_set()) plan.cases = in_order(plan.cases, options.order_seed, 0);
  Progress progress(plan.rows().size());
  Lanes& lanes = prepared.lanes;
  Tally tally;
  tally.device = plan.hello.device;
  tally.gpus = lanes.size();
  size_t checked = 0;
  lanes.dealer().begin(std::move(plan.cases));
  lanes.each([&](size_t lane) {
    while (const auto c = lanes.dealer().next(lane)) {
      const std::string key = c->spec.key();
      for (const std::string& variant : c->variants) {
        if (!lanes.going_on()) return;
        if (options.deadline.passed() && checked > 0) {
          tally.left_out.insert({c->spec.suite, key, variant});
          continue;
        }
        ++checked;
        progress.step(key + " " + variant);
        const Request request{c->spec, variant, canary_of(options, {key, variant}),
                              options.invariance};
        unless_interrupted([&] {
          CaseData data;
          const Result result = lanes.seat(lane).run(request, options.row_time(), data);
          count_check(request, result, tally, progress);
        });
      }
    }
  });
  sort_failures(tally);
  tally.interrupted = InterruptGuard::interrupted();
  return tally;
}

namespace {

/// Leaves only variants that are compiled at their launch, and orders the cases by their tokens.
void plan_sweep(Plan& plan) {
  std::set<std::pair<std::string, std::string>> compiled;
  for (const VariantDescription& v : plan.hello.variants) {
    if (v.language == "Python") compiled.insert({v.op, v.name});
  }
  for (PlannedCase& c : plan.cases) {
    std::erase_if(c.variants, [&](const std::string& name) {
      return !compiled.contains({c.spec.op, name.substr(0, name.find('/'))});
    });
  }
  std::erase_if(plan.cases, [](const PlannedCase& c) { return c.variants.empty(); });
  if (plan.cases.empty()) {
    usage_error(
        "profile compile: no variant here is compiled at its launch; give --module FILE.py");
  }
  const auto tokens = [](const PlannedCase& c) {
    const auto at = c.spec.params.find("tokens");
    return at == c.spec.params.end() ? 0 : parse_number<int>(at->second).value_or(0);
  };
  std::ranges::stable_sort(plan.cases, {}, tokens);
}

}  // namespace

Tally sweep_first_launches(RunOptions options, WorkerSource& source) {
  const InterruptGuard guard;
  const auto beside = std::filesystem::absolute(options.db).parent_path();
  std::filesystem::create_directories(beside);
  const ScratchFolder caches("sweep", beside);
  options.worker.task = Task::compile;
  options.worker.variables.merge(jit_caches(caches.path()));
  Prepared prepared = prepare(options, source);
  if (prepared.lanes.several()) {
    usage_error("--device {}: a sweep is one process after the other; give one device",
                options.worker.device);
  }
  plan_sweep(prepared.plan);
  std::map<std::pair<std::string, std::string>, std::set<RowName>> sweeps;
  for (const PlannedCase& c : prepared.plan.cases) {
    for (const std::string& variant : c.variants) {
      sweeps[{c.spec.suite, variant}].insert({c.spec.key(), variant});
    }
  }
  Store store = Store::open(options.db, Store::Mode::write);
  if (!store.takes("compile")) {
    usage_error("--db {}: an earlier program made it, and it takes no sweeps; choose another",
                options.db);
  }
  Recording recording(store, std::move(prepared));
  recording.begin(0);
  Progress progress(recording.plan().rows().size());
  int round = 0;
  for (const auto& [name, rows] : sweeps) {
    if (InterruptGuard::interrupted()) break;
    std::filesystem::remove_all(caches.path());
    jit_caches(caches.path());
    recording.round(round++, rows, progress);
  }
  recording.finish(InterruptGuard::interrupted());
  return recording.tally();
}

Tally run_suites(const RunOptions& options, int64_t resume, WorkerSource& source,
                 const KnownOf& known) {
  const InterruptGuard guard;
  Prepared prepared = prepare(options, source);  // a bad suite must leave no new store behind
  Store store = Store::open(options.db, Store::Mode::write);
  const bool resumable = options.worker.task == Task::measure;
  Recording recording(store, std::move(prepared), resumable ? "moegate run" : "");
  recording.begin(resume);
  if (recording.whole()) return recording.tally();
  const size_t rows = recording.plan().rows().size();
  const size_t all = rows * static_cast<size_t>(options.rounds);
  const size_t left = all - std::min(all, store.done(recording.run()).size());
  const double budget_s = options.worker.sampling.budget_s;
  if (options.worker.task == Task::measure) {  // a profiler's results take as long as they take
    say("{}\n",
        time_text({.rows = rows,
                   .rounds = options.rounds,
                   .results = left,
                   .seconds_each = store.seconds_per_result(recording.tally().device, budget_s),
                   .budget_s = budget_s,
                   .case_timeout_s = options.case_timeout_s,
                   .devices = recording.tally().gpus}));
  }
  Progress progress(left);
  try {
    if (known) {
      InTime(store, recording, options, known, progress).measure();
    }
    for (int round = 0; round < options.rounds && !InterruptGuard::interrupted(); ++round) {
      recording.round(round, std::nullopt, progress);
    }
    recording.finish(InterruptGuard::interrupted());
  } catch (const Error& e) {
    if (!resumable) throw;
    give_up(e.code(), "{}; `{}` finishes the run", e.what(), recording.tally().resume);
  }
  return recording.tally();
}

}  // namespace moegate
