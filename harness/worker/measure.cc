// SPDX-License-Identifier: Apache-2.0
#include "harness/worker/measure.h"

#include <algorithm>
#include <cmath>

#include "harness/base/deadline.h"
#include "harness/base/rng.h"
#include "harness/device/cannot_capture.h"
#include "harness/device/scribble.h"
#include "harness/kernel/object_code.h"
#include "harness/kernel/recorded_routing.h"
#include "harness/worker/nvtx.h"

namespace moegate {
namespace {

/// How many problems a launch alternates among. Memory placement and graph instantiation shift a
/// whole process's spans by half a percent on an H200; many small sets average that out. Large ones
/// cost too much, and two are enough to defeat any cache.
size_t set_count(const Problem& problem) {
  constexpr size_t kMiB = 1 << 20;
  size_t bytes = 0;
  for (const Tensor* t : problem.tensors()) bytes += t->bytes();
  return bytes <= 8 * kMiB ? 8 : bytes <= 64 * kMiB ? 4 : 2;
}

std::vector<std::unique_ptr<Problem>> make_sets(Device& device, const Case& c, const OpEntry& op,
                                                Home home) {
  std::vector<std::unique_ptr<Problem>> sets;
  do {
    Case seeded = c;
    seeded.params["seed"] = std::to_string(seed_of_set(c, sets.size()));
    sets.push_back(op.make(device, seeded));
  } while (home == Home::own && sets.size() < set_count(*sets[0]));
  return sets;
}

constexpr double kMostCheckShare = 0.05;  // of the time, spent on comparing outputs between batches
constexpr double kComputeBound = 100;     // flops per byte from which clocks need long to settle

/// Without the sets that these conditions leave out.
Subject under(const Conditions& conditions, Subject subject) {
  // Several sets would take each other's place in the cache.
  const size_t most = conditions.cache == Cache::warm ? 1
                      : conditions.sets > 0           ? static_cast<size_t>(conditions.sets)
                                                      : subject.sets.size();
  if (subject.sets.size() > most) subject.sets.resize(most);
  return subject;
}

std::vector<Sample> take(Session& session, int count) {
  for (int i = 0; i < count; ++i) session.enqueue();
  return session.collect();
}

/// Runs the sampled sequence itself until the clock has settled between two batches.
void warm_up(Session& session, double least_s, double most_s) {
  constexpr int kLaunches = 50;
  const double start = steady_seconds();
  double last = -1;
  for (;;) {
    const double mhz = median_clock(take(session, kLaunches));
    const bool settled = last >= 0 && std::abs(mhz - last) <= 0.005 * last;
    const double passed_s = steady_seconds() - start;
    if (passed_s > most_s || (settled && passed_s >= least_s)) return;
    last = mhz;
  }
}

/// Does what captures a launch; false where it has none to capture, which the result says.
template <class Capture>
bool can_be_captured(const Capture& capture, Result& result) {
  try {
    capture();
    return true;
  } catch (const CannotCapture& e) {
    result.status = Status::unsupported;
    result.why = e.what();
  } catch (const EmptyCapture& e) {
    reject(e.what(), {}, result);
  }
  return false;
}

}  // namespace

int64_t seed_of_set(const Case& c, size_t set) {
  return std::stoll(c.get("seed")) + kSetsApart * static_cast<int64_t>(set);
}

Bench::Bench(Device& device, const Case& c, const Registry& registry, const Draw& draw, Home home)
    : device_(device),
      registry_(registry),
      case_(resolved(c, device.facts(), registry)),
      as_written_(case_.params == c.params),
      draw_(draw),
      home_(home) {
  build();
}

void Bench::build() {
  references_.clear();
  inputs_.clear();
  prepared_.clear();
  spoilt_ = false;
  const OpEntry& op = find_op(case_.op, registry_);
  sets_ = make_sets(device_, case_, op, home_);
  seeds_.clear();
  for (size_t i = 0; i < sets_.size(); ++i) seeds_.push_back(seed_of_set(case_, i));
  if (draw_.another_set && draw_.sample_seed != 0) {
    seeds_.push_back(static_cast<int64_t>(mix64(draw_.sample_seed) >> 1));
    Case drawn = case_;
    drawn.params["seed"] = std::to_string(seeds_.back());
    sets_.push_back(op.make(device_, drawn));
  }
  drawn_ = 0;
  asked_.clear();
  for (const auto& set : sets_) {
    const std::vector<Tensor*> made = set->tensors();
    asked_.emplace_back(made.begin(), made.end());
  }
  const bool host = device_.facts().backend == Backend::host;
  if (host && home_ == Home::own) yardstick_sets_ = make_sets(device_, case_, op, home_);
  for (const auto* sets : {&sets_, &yardstick_sets_}) {
    for (const auto& set : *sets) {
      set->allow_packing(false);
      if (host) set->poison();  // the kernel counts memory from when it is first written
    }
  }
}

void Bench::describe_question(size_t set, SeedError& of) const {
  if (!as_written_) return;
  uint64_t tensors = 0, inputs = 1;
  for (const Tensor* tensor : asked_[set]) {
    tensors = hash_bytes(tensor->name().data(), tensor->name().size(), tensors);
    std::vector<int64_t> words = tensor->shape();
    words.push_back(static_cast<int64_t>(tensor->role()));
    words.push_back(static_cast<int64_t>(tensor->dtype()));
    tensors = hash_bytes(words.data(), words.size() * sizeof(int64_t), tensors);
    const auto filled = inputs_.find(tensor);
    if (filled == inputs_.end()) continue;
    inputs = hash_bytes(&filled->second, sizeof filled->second, inputs);
  }
  const Cost cost = sets_[set]->cost();
  const double costs[] = {cost.flops, cost.read_bytes, cost.write_bytes};
  of.inputs = inputs;
  of.terms = pack_terms(tensors, sets_[set]->limits(), hash_bytes(costs, sizeof costs));
}

Subject Bench::subject(const Variant& variant, const std::vector<std::unique_ptr<Problem>>& sets) {
  Subject subject{&variant, {}};
  const Launch launch{device_.stream(), device_.facts()};
  for (const auto& set : sets) {
    if (variant.workspace) set->reserve_workspace(variant.workspace(case_, device_.facts()));
    if (variant.prepare && prepared_.insert({variant.name, set.get()}).second) {
      set->replace_activations(random_() | 1);
      set->allow_packing(true);
      variant.prepare(*set, launch);
      set->allow_packing(false);
      set->replace_activations(0);
    }
    subject.sets.push_back(set.get());
  }
  device_.synchronize();
  return subject;
}

Subject Bench::yardstick() {
  const std::string& name = find_op(case_.op, registry_).yardstick;
  for (const Variant& v : registry_.variants) {
    const bool is_it = v.op == case_.op && v.backend == Backend::host && v.name == name;
    if (is_it && !yardstick_sets_.empty()) return subject(v, yardstick_sets_);
  }
  return {nullptr, {}};
}

std::string Bench::refused() const {
  for (const auto* sets : {&sets_, &yardstick_sets_}) {
    for (const auto& set : *sets) {
      if (!set->refused().empty()) return set->refused();
    }
  }
  return {};
}

void Bench::guarded(Result& result, const std::function<void()>& work) {
  poisoned_ = 0;
  try {
    work();
  } catch (const NoCodeForDevice& e) {
    result.status = Status::unsupported;
    result.why = e.what();
  } catch (const Error& e) {
    const std::string advice = pool_advice();
    if (refused().empty() && !advice.empty()) throw Error(e.code(), e.what() + advice);
    if (refused().empty()) throw;
  }
  if (has_poison(result)) result.why += pool_advice();
  if (refused().empty()) return;
  spoilt_ = true;
  reject(refused(), {}, result);
}

void Bench::try_capture(const Variant& variant, Result& result) {
  can_be_captured([&] { device_.try_capture(variant, *sets_.front()); }, result);
}

/// One verified variant on one case. run() is protocol 1 behind its first stage, which verify() is.
class Bench::Measurement {
 public:
  Measurement(Bench& bench, const Variant& variant, Timer& timer, const Conditions& conditions,
              const Sampling& sampling, Result& result)
      : bench_(bench),
        variant_(variant),
        timer_(timer),
        conditions_(conditions),
        budget_s_(sampling.budget_s),
        rule_(sampling, bench.device_.facts().backend),
        result_(result) {}

  /// The stages in their order. One that finds a fault makes the result `wrong`; those that only a
  /// right variant can have are left out then.
  void run() {
    if (!open_session()) return;
    warm_up_clock();
    learn_outputs();
    pool_ = pool();  // what was captured or enqueued together for the first time may have grown it
    sample_until_precise();
    if (!is_wrong()) explain_odd_outputs();
    if (!is_wrong()) {
      summarise_session();
      doubt_the_machine();
    }
    for (size_t i = 0; i < timed_.sets.size() && !is_wrong(); ++i) {
      bench_.check_again(i, variant_, result_);
    }
    inspect_process();
    if (result_.measured()) bench_.try_unseen(variant_, timer_, conditions_, result_);
    if (!is_wrong()) hash_code();
    result_.wall_s = steady_seconds() - start_;
  }

 private:
  bool is_wrong() const { return result_.status == Status::wrong; }
  std::vector<PoolSegment> pool() const {
    return variant_.pool ? variant_.pool() : std::vector<PoolSegment>();
  }

  /// False where the launch cannot be captured, which the result says.
  bool open_session() {
    result_.timer = timer_.name();
    result_.tick_ns = timer_.tick_ns();
    timed_ = under(conditions_, bench_.subject(variant_, bench_.sets_));
    paired_ = bench_.yardstick();
    return can_be_captured(
        [&] { session_ = timer_.open(timed_, paired_.variant ? &paired_ : nullptr, conditions_); },
        result_);
  }

  void warm_up_clock() {
    const Cost work = bench_.cost();
    const bool compute_bound = work.flops > kComputeBound * (work.read_bytes + work.write_bytes);
    warm_up(*session_, compute_bound ? 0.3 : 0, std::max(0.2 * budget_s_, compute_bound ? 0.6 : 0));
  }

  /// Launches that show which problems' outputs can be compared byte by byte.
  void learn_outputs() {
    const auto behind = [&](uint8_t byte) {
      bench_.poison(variant_, timed_.sets, byte);
      bench_.device_.synchronize();
      return take(*session_, 2 * static_cast<int>(timed_.sets.size()));
    };
    const std::vector<Sample> one = behind(Tensor::kPoisonByte);
    watch_.learn(one, behind(kOtherPoisonByte));
  }

  /// Samples until the judged quantity is known well enough, or the limits are reached (noisy).
  void sample_until_precise() {
    // Every problem is launched on in every batch: one that is not would still be poisoned
    // after it.
    const int least = 2 * static_cast<int>(timed_.sets.size());
    double check_s = 0, sample_s = 0;
    std::vector<Sample> samples;
    for (;;) {
      const auto taken = [&] { return static_cast<int>(samples.size()); };
      const double random = std::uniform_real_distribution(0.0, 1.0)(bench_.random_);
      const double batch_began = steady_seconds();
      bench_.poison(variant_, timed_.sets);
      bench_.device_.synchronize();
      const auto batch = take(*session_, rule_.next_batch(taken(), least, sample_s, random));
      sample_s = (steady_seconds() - batch_began) / static_cast<double>(batch.size());
      watch_.add(batch);
      samples.insert(samples.end(), batch.begin(), batch.end());
      const bool spent = rule_.is_spent(taken(), steady_seconds() - start_);
      if (spent || rule_.are_enough(taken(), spent)) {
        summarise(samples, result_);
        if (rule_.are_enough(result_.samples, spent) && rule_.is_precise(result_)) return;
      }
      if (spent) return rule_.judge_imprecise(result_);
      // Behind the last batch all problems are compared.
      if (check_s <= kMostCheckShare * (steady_seconds() - start_)) check_s += compare_one();
      if (is_wrong()) return;
    }
  }

  /// Compares the outputs of a random problem. Returns the seconds that took.
  double compare_one() {
    constexpr int kAwake = 5;  // launches after a comparison, in which a GPU may have fallen asleep
    const double began = steady_seconds();
    const size_t last = timed_.sets.size() - 1;
    bench_.check_again(std::uniform_int_distribution<size_t>(0, last)(bench_.random_), variant_,
                       result_);
    const double seconds = steady_seconds() - began;
    if (!is_wrong()) take(*session_, kAwake);
    return seconds;
  }

  /// Where timed launches were odd, such launches are waited for and compared with the truth: sums
  /// in any order are right.
  void explain_odd_outputs() {
    if (watch_.fault().empty()) return;
    const std::string fault = odd_fault();
    if (!fault.empty()) reject(fault, {}, result_);
  }

  /// Every second launch stands alone; the others stand behind some, as in a timed batch, because
  /// blocks that race there may not race alone. Two more than there are sets, so that the last one
  /// is on another set each time.
  std::string odd_fault() {
    constexpr int kMostTries = 800, kEnough = 3;
    constexpr double kMostSeconds = 10;
    const int in_batch = static_cast<int>(timed_.sets.size()) + 2;
    const Deadline until(kMostSeconds);
    int right = 0;
    for (int i = 0; i < kMostTries && right < kEnough && !until.passed(); ++i) {
      const Sample sample = take(*session_, i % 2 == 0 ? 1 : in_batch).back();
      if (!watch_.is_odd(sample)) continue;
      const Checked checked = timed_.sets[sample.set]->check_with(variant_.leeway);
      const auto bad = std::ranges::find(checked.accuracy, false, &Accuracy::ok);
      if (bad != checked.accuracy.end()) return watch_.fault() + ": " + bad->why;
      ++right;
    }
    return right > 0 ? "" : watch_.fault() + ", and did not do so again";
  }

  /// Which code was timed, by which quantity it is judged, and against which yardstick.
  void summarise_session() {
    result_.judged = session_->judged();
    result_.kernels = session_->kernels();
    std::vector<Metric>& metrics = result_.metrics;
    if (session_->enqueue_ns() > 0) metrics.push_back({"enqueue", "ns", session_->enqueue_ns()});
    if (paired_.variant) result_.yardstick = paired_.variant->name;
    metrics.push_back({"launches_compared", "launches", static_cast<double>(watch_.compared())});
    metrics.push_back({"problem_sets", "sets", static_cast<double>(timed_.sets.size())});
  }

  /// Lowers the status of a result whose samples or whose machine cannot be trusted.
  void doubt_the_machine() {
    const bool host = bench_.device_.facts().backend == Backend::host;
    judge_samples(host, result_);
    if (!host || !result_.measured()) return;
    // A variant's few milliseconds may fall between two time slices of the other load; the whole
    // process's life does not.
    static const Interference since_first_case;
    const double disturbed = std::max(interference_.share(), since_first_case.share());
    result_.metrics.push_back({"core_wait", "share", disturbed});
    judge_interference(disturbed, result_);
  }

  /// Asked of a wrong one, too: the next variant finds the process as it was. Of what is wrong with
  /// the launches the process tells least: threads that write too late may be there still, or not.
  void inspect_process() {
    constexpr size_t kOwn = size_t{1} << 19;  // spans and samples are the harness's own
    const size_t taken = bench_.tensor_bytes(true) - tensors_;  // workspaces
    const std::string left = bench_.misdeed(variant_, before_, kOwn + taken),
                      done = session_->misdeed();
    std::string fault = done.empty() ? left : done;
    if (fault.empty()) fault = grown_pool(pool_, pool());
    if (!fault.empty()) reject(fault, {}, result_);
  }

  /// At the end: a launch may load what it runs.
  void hash_code() {
    result_.code = session_->code();
    if (paired_.variant) result_.yardstick_code = host_code(*paired_.variant);
  }

  Bench& bench_;
  const Variant& variant_;
  Timer& timer_;
  const Conditions& conditions_;
  const double budget_s_;
  const double start_ = steady_seconds();
  const StoppingRule rule_;
  const Interference interference_;
  const ProcessState before_;
  const size_t tensors_ = bench_.tensor_bytes(true);
  Result& result_;
  Subject timed_, paired_;  // paired: without a variant on a GPU
  std::unique_ptr<Session> session_;
  std::vector<PoolSegment> pool_;  // before what is timed
  LaunchWatch watch_;
};

void Bench::measure(const Variant& variant, Timer& timer, const Conditions& conditions,
                    const Sampling& sampling, Result& result) {
  guarded(result, [&] { Measurement(*this, variant, timer, conditions, sampling, result).run(); });
}

void Bench::profile(const Variant& variant) {
  constexpr int kLaunches = 3;
  const std::string name = case_.key() + " " + variant.name;
  const Launch launch{device_.stream(), device_.facts()};
  const Subject profiled = subject(variant, sets_);
  const NvtxRange all(kLaunchesRange);
  const NvtxRange range(name);
  for (int i = 0; i < kLaunches; ++i) {
    variant.launch(*profiled.sets[static_cast<size_t>(i) % profiled.sets.size()], launch);
    device_.synchronize();
  }
}

void Bench::profile(const Variant& variant, Profiler& profiler, const Conditions& conditions,
                    Result& result) {
  const double start = steady_seconds();
  const auto profile = [&] {
    profiler.profile(under(conditions, subject(variant, sets_)), conditions, result);
  };
  can_be_captured(profile, result);
  result.wall_s = steady_seconds() - start;
}

}  // namespace moegate
