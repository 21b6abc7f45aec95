// SPDX-License-Identifier: Apache-2.0
#include "harness/runner.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <numeric>
#include <optional>
#include <set>

#include "harness/plausibility.h"
#include "harness/progress.h"
#include "harness/provenance.h"
#include "harness/rng.h"

namespace moegate {
namespace {

volatile std::sig_atomic_t interrupted = 0;

/// While it lives, the first Ctrl-C (or TERM) lets the variant at hand finish and then ends the
/// run; a second one kills at once. Either way what was measured is in the store.
class InterruptGuard {
 public:
  InterruptGuard() {
    interrupted = 0;
    struct sigaction action {};
    action.sa_handler = [](int) { interrupted = 1; };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, &old_int_);
    sigaction(SIGTERM, &action, &old_term_);
    // A worker that died must be an error value of write(), not the end of the runner.
    old_pipe_ = std::signal(SIGPIPE, SIG_IGN);
  }
  ~InterruptGuard() {
    sigaction(SIGINT, &old_int_, nullptr);
    sigaction(SIGTERM, &old_term_, nullptr);
    std::signal(SIGPIPE, old_pipe_);
  }
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  struct sigaction old_int_ {
  }, old_term_{};
  void (*old_pipe_)(int);
};

/// A worker that is started when it is needed: at first, after it died, and after it was retired.
class WorkerSeat {
 public:
  WorkerSeat(const WorkerOptions& options, const std::vector<Case>& cases)
      : options_(options), cases_(cases) {}
  Worker& worker() {
    if (!worker_ || !worker_->alive()) worker_.emplace(options_, cases_);
    return *worker_;
  }
  /// The next use gets a fresh process.
  void retire() { worker_.reset(); }
  /// Clock-throttle reasons, when there is a worker to ask.
  std::string throttle() { return worker_ ? worker_->throttle() : ""; }

 private:
  const WorkerOptions& options_;
  const std::vector<Case>& cases_;
  std::optional<Worker> worker_;
};

bool is_failure(Status s) {
  return s == Status::wrong || s == Status::crashed || s == Status::timeout ||
         s == Status::bad_timer;
}

void count(Tally& tally, const std::string& key, const Result& result, Progress& progress) {
  ++tally.counts[result.status];
  if (!is_failure(result.status)) return;
  tally.failures.push_back({key, result.variant, result.why, result.status});
  progress.note(
      fmt::format("{} {} {}: {}", name_of(result.status), key, result.variant, result.why));
}

size_t total_variants(const std::vector<Planned>& planned) {
  return std::accumulate(planned.begin(), planned.end(), size_t{0},
                         [](size_t n, const Planned& p) { return n + p.variants.size(); });
}

/// The plan in another order every round, and the variants rotated, so that no case always follows
/// the same neighbour.
std::vector<Planned> reorder(std::vector<Planned> planned, int round) {
  const auto stream = static_cast<uint64_t>(round);
  for (size_t i = planned.size(); i > 1; --i) {
    std::swap(planned[i - 1], planned[random_bits(0, stream, i) % i]);
  }
  for (Planned& p : planned) {
    const auto shift = static_cast<std::ptrdiff_t>(stream % p.variants.size());
    std::rotate(p.variants.begin(), p.variants.begin() + shift, p.variants.end());
  }
  return planned;
}

/// One run of the plan into the store.
class Recorder {
 public:
  Recorder(const RunOptions& options, Store& store, int64_t run, const DeviceFacts& device)
      : options_(options),
        store_(store),
        run_(run),
        device_(device),
        done_(store.done(run)),
        ceilings_(store.ceilings(device)) {}

  void record(WorkerSeat& seat, const std::vector<Case>& cases, const std::vector<Planned>& planned,
              Tally& tally) {
    const size_t total = total_variants(planned) * static_cast<size_t>(options_.rounds);
    Progress progress(total);
    size_t finished = 0;
    for (int round = 0; round < options_.rounds && !interrupted; ++round) {
      process_ = 0;
      for (const Planned& p : reorder(planned, round)) {
        const Case& c = cases[p.index];
        for (const Variant* variant : p.variants) {
          if (interrupted) break;
          progress.step(finished++, c.key() + " " + variant->name);
          if (done_.count({round, c.key(), variant->name}) == 0) {
            one(seat, round, c, p.index, *variant, tally, progress);
          }
        }
      }
      if (process_ == 0) continue;  // a resumed run has the whole round already
      store_.end_process(process_, seat.throttle());
      seat.retire();
    }
  }

 private:
  void one(WorkerSeat& seat, int round, const Case& c, size_t index, const Variant& variant,
           Tally& tally, Progress& progress) {
    Worker& worker = seat.worker();
    if (process_ == 0 || worker.pid() != pid_) {
      pid_ = worker.pid();
      process_ = store_.begin_process(run_, round, pid_);
    }
    CaseData data;
    Result result = worker.run(index, variant, options_.case_timeout_s, data);
    result.impossible = result.measured() && cache_of(c) == Cache::cold &&
                        is_impossible(result.span_ns, data.cost, ceilings_, device_.cache_bytes);
    store_.add_result(process_, c, data.cost, data.facts, result);
    count(tally, c.key(), result, progress);
    note_cache_pair(c, result, data);
  }

  /// Remembers spans of the same case cold and warm, and marks pairs that are suspiciously alike.
  void note_cache_pair(const Case& c, const Result& result, const CaseData& data) {
    if (!result.measured() || cache_of(c) == Cache::cold_weights) return;
    Case cold = c;
    cold.params["cache"] = "cold";
    auto& [cold_ns, warm_ns] = pairs_[{cold.key(), result.variant}];
    (cache_of(c) == Cache::cold ? cold_ns : warm_ns) = result.span_ns;
    const bool both = cold_ns > 0 && warm_ns > 0;
    if (both && looks_warm(cold_ns, warm_ns, data.cost, device_.cache_bytes)) {
      store_.mark_suspect_warm(run_, cold.key(), result.variant);
    }
  }

  const RunOptions& options_;
  Store& store_;
  int64_t run_;
  const DeviceFacts& device_;
  std::set<std::tuple<int, std::string, std::string>> done_;
  std::map<std::string, double> ceilings_;
  int64_t process_ = 0;
  pid_t pid_ = -1;
  std::map<std::pair<std::string, std::string>, std::pair<double, double>> pairs_;
};

RunInfo describe(const RunOptions& options, const Hello& hello) {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  RunInfo info;
  info.label = options.label;
  info.device = hello.device;
  info.protocol = kProtocol;
  info.timer = hello.timer;
  const bool host = hello.device.backend == Backend::host;  // it flushes its operands' cache lines
  info.flush = host ? "lines" : name_of(options.worker.flush);
  info.rounds = options.rounds;
  info.git_sha = provenance().git_sha;
  info.dirty = provenance().dirty;
  info.build = provenance().build;
  info.host = name;
  info.command = options.command;
  info.options = options.to_json();
  info.tags = options.tags;
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

Exit Tally::exit() const {
  if (interrupted) return Exit::interrupted;
  const auto any = [&](Status s) { return counts.count(s) > 0; };
  if (any(Status::wrong)) return Exit::accuracy;
  if (any(Status::crashed) || any(Status::timeout) || any(Status::bad_timer)) return Exit::coverage;
  return Exit::ok;
}

std::string summary(const Tally& tally, const std::string& what) {
  std::string counts;
  for (const auto& [status, n] : tally.counts) {
    counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", n, name_of(status));
  }
  return fmt::format("{} on {}: {}{}", what, tally.device.name, counts.empty() ? "nothing" : counts,
                     tally.interrupted ? " (interrupted; --resume finishes it)" : "");
}

Tally check_suites(const RunOptions& options) {
  const auto loaded = load_cases(options);
  const InterruptGuard guard;
  WorkerSeat seat(options.worker, loaded);
  Tally tally;
  tally.device = seat.worker().hello().device;
  const auto cases = adapt(loaded, tally.device.backend);
  auto planned = plan(options, cases, tally.device.backend);
  if (options.worker.task == Task::controls) {
    planned = one_variant_each(std::move(planned), cases, tally.device);
  }
  Progress progress(total_variants(planned));
  size_t finished = 0;
  for (const Planned& p : planned) {
    for (const Variant* variant : p.variants) {
      if (interrupted) break;
      const std::string key = cases[p.index].key();
      progress.step(finished++, key + " " + variant->name);
      CaseData data;
      const Result result = seat.worker().run(p.index, *variant, options.case_timeout_s, data);
      count(tally, key, result, progress);
      for (const Control& c : result.controls) ++tally.controls[c.name][c.outcome];
    }
  }
  tally.interrupted = interrupted != 0;
  return tally;
}

Tally run_suites(const RunOptions& options, int64_t resume) {
  const auto loaded = load_cases(options);
  Store store = Store::open(options.db, Store::Mode::write);
  const InterruptGuard guard;
  WorkerSeat seat(options.worker, loaded);
  const Hello hello = seat.worker().hello();
  if (!hello.timer_note.empty()) fmt::print(stderr, "{}\n", hello.timer_note);
  const auto cases = adapt(loaded, hello.device.backend);
  const auto planned = plan(options, cases, hello.device.backend);
  const RunInfo info = describe(options, hello);
  if (resume > 0) check_same_setting(store.run_info(resume), info);
  Tally tally;
  tally.run = resume > 0 ? resume : store.begin_run(info);
  tally.device = hello.device;
  Recorder(options, store, tally.run, hello.device).record(seat, cases, planned, tally);
  tally.interrupted = interrupted != 0;
  store.end_run(tally.run, tally.interrupted ? "interrupted" : "complete");
  return tally;
}

}  // namespace moegate
