// SPDX-License-Identifier: Apache-2.0
// The part of Bench that compares outputs with the truth: before timing, after it, on activations
// that the variant never saw, and with outputs spoilt on purpose.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "harness/base/deadline.h"
#include "harness/base/stats.h"
#include "harness/device/chill.h"
#include "harness/device/scribble.h"
#include "harness/kernel/controls.h"
#include "harness/kernel/object_code.h"
#include "harness/worker/jit_caches.h"
#include "harness/worker/measure.h"

namespace moegate {
namespace {

bool is_compiled_at_launch(const Variant& variant) {
  return variant.file.ends_with(".py");
}

SeedError summarise_outputs(int64_t seed, const Checked& checked) {
  SeedError e;
  e.seed = seed;
  e.hash = checked.hash;
  for (const Accuracy& a : checked.accuracy) {
    // Written so that NaN wins.
    if (!(a.rel_l2 <= e.rel_l2)) e.rel_l2 = a.rel_l2;
    if (!(a.worst_row <= e.worst_row)) e.worst_row = a.worst_row;
    if (!(std::abs(a.scale - 1) <= std::abs(e.bias))) e.bias = a.scale - 1;
    e.truth += a.truth;
    take_worst(e.rounding, a.rounding);
  }
  return e;
}

}  // namespace

/// A variant that fails a check publishes no latency.
void reject(const std::string& why, const std::vector<Accuracy>& accuracy, Result& result) {
  Result wrong;
  wrong.variant = result.variant;
  wrong.path = result.path;
  wrong.status = Status::wrong;
  wrong.why = why;
  wrong.accuracy = accuracy.empty() ? result.accuracy : accuracy;
  wrong.deterministic = result.deterministic;
  result = wrong;
}

Result Bench::verify(const Variant& variant, std::function<void()> launched) {
  launched_ = is_compiled_at_launch(variant) ? std::move(launched) : nullptr;
  Result result;
  result.variant = variant.name;
  guarded(result, [&] { result = verify_all(variant); });
  return result;
}

Result Bench::verify_all(const Variant& variant) {
  Result result;
  result.variant = variant.name;
  result.why = why_unsupported(variant, case_, device_.facts());
  if (!result.why.empty()) {
    result.status = Status::unsupported;
    return result;
  }
  if (variant.path) result.path = variant.path(case_, device_.facts());
  reference_ = reference_for(variant);
  whole_row_ = 0;
  make_row_truths();
  draw_others(variant);
  const ProcessState before;
  const size_t tensors = tensor_bytes();
  const Subject verified = subject(variant, sets_);
  remember_inputs();
  hashes_.clear();
  for (size_t i = 0; i < verified.sets.size() && result.status != Status::wrong; ++i) {
    const bool compared = reference_ != nullptr;
    verify(variant, *verified.sets[i], result);
    if (result.status == Status::wrong) break;
    const std::string fault = whole_fault(i);
    if (!fault.empty()) reject(fault, {}, result);
    if (compared && !reference_) return verify_all(variant);  // with one that is right
  }
  // Compilers in Python start threads with the first launch. While it is timed, nobody may.
  const std::string fault =
      misdeed(variant, before, tensor_bytes() - tensors, is_compiled_at_launch(variant));
  if (!fault.empty()) reject(fault, {}, result);
  if (result.status == Status::ok) note_compared(result.accuracy, result);
  return result;
}

void Bench::launch_behind(uint8_t poison, const Variant& variant, Problem& problem) {
  this->poison(variant, {&problem}, poison);
  variant.launch(problem, {device_.stream(), device_.facts()});
  device_.synchronize();
}

void Bench::launch_first(const Variant& variant, Problem& problem, Result& result) {
  static const bool has_cache = !are_jit_caches_empty();  // not what this process puts there
  poison(variant, {&problem});
  device_.synchronize();
  const auto before = loaded_modules();
  const double start = steady_seconds();
  variant.launch(problem, {device_.stream(), device_.facts()});
  device_.synchronize();
  result.metrics.push_back({kFirstCallMetric, "s", steady_seconds() - start});
  result.metrics.push_back({kJitCacheMetric, "", has_cache ? 1.0 : 0.0});
  const auto after = loaded_modules();
  if (!before || !after) return;
  const auto note = [&](const char* metric, const char* unit, uint64_t LoadedModules::*of) {
    result.metrics.push_back({metric, unit, static_cast<double>(*after.*of - *before.*of)});
  };
  note(kModulesMetric, "modules", &LoadedModules::count);
  note(kModuleBytesMetric, "B", &LoadedModules::bytes);
  note(kModuleCodesMetric, "codes", &LoadedModules::codes);
}

void Bench::verify(const Variant& variant, Problem& problem, Result& result) {
  const bool first = result.seeds.empty();
  if (is_compiled_at_launch(variant) && compiled_.insert(variant.name).second) {
    launch_first(variant, problem, result);
  } else {
    launch_behind(Tensor::kPoisonByte, variant, problem);
  }
  if (launched_) std::exchange(launched_, nullptr)();
  Checked checked = problem.check_with(variant.leeway);
  // What is as it should be because it was never written, as an index of -1, is another byte now.
  if (first && std::ranges::all_of(checked.accuracy, &Accuracy::ok)) {
    launch_behind(kOtherPoisonByte, variant, problem);
    checked = problem.check_with(variant.leeway);
  }
  const size_t set = result.seeds.size();
  result.seeds.push_back(summarise_outputs(seeds_[set], checked));
  describe_question(set, result.seeds.back());
  hashes_.push_back(checked.hash);
  if (result.accuracy.empty()) result.accuracy = checked.accuracy;
  for (const Accuracy& a : checked.accuracy) {
    if (a.ok || result.status == Status::wrong) continue;
    result.status = Status::wrong;
    result.why = a.why;
    result.accuracy = checked.accuracy;
  }
  const std::string guard = broken_guard(problem);
  if (guard.empty()) return;
  result.status = Status::wrong;
  result.why = fmt::format("wrote outside tensor '{}': its guard band changed", guard);
}

std::string Bench::broken_guard(const Problem& problem) const {
  return home_ == Home::own ? problem.broken_guard() : "";
}

void Bench::control(Result& result) {
  result.controls = negative_controls(*sets_[0], *sets_[1]);
  result.why = blind_spots(result.controls);
  if (!result.why.empty()) result.status = Status::wrong;
}

void Bench::check_again(size_t set, const Variant& variant, Result& result) {
  const Checked checked = sets_[set]->check_with(variant.leeway);
  // What is bit for bit what was verified has been compared whole.
  std::string fault;
  if (checked.hash != hashes_[set]) {
    result.deterministic = false;
    fault = whole_fault(set);
  }
  const auto bad = std::ranges::find(checked.accuracy, false, &Accuracy::ok);
  const std::string guard = broken_guard(*sets_[set]);
  if (bad != checked.accuracy.end()) {
    fault = bad->why;
  } else if (!guard.empty()) {
    fault = fmt::format("wrote outside tensor '{}'", guard);
  } else if (fault.empty()) {
    return;
  }
  reject("in timed launches: " + fault, checked.accuracy, result);
}

// The part of Bench for outputs that check() samples: rows drawn anew, and the whole of them beside
// another variant's. Who is wrong where two differ, the truth of those rows says.

namespace {

/// What is wrong in some rows, naming the one; empty when nothing is.
std::string row_fault(Problem& problem, const std::vector<int64_t>& rows) {
  const auto accuracy = problem.check_rows(rows);
  const auto bad = std::ranges::find(accuracy, false, &Accuracy::ok);
  if (bad == accuracy.end()) return {};
  const int64_t width = bad->elements / static_cast<int64_t>(rows.size());
  const int64_t row = bad->worst_index / std::max<int64_t>(1, width);
  return fmt::format("row {}: {}", rows.at(static_cast<size_t>(std::max<int64_t>(0, row))),
                     bad->why);
}

size_t kept_bytes(const std::vector<KeptOutputs>& sets) {
  size_t bytes = 0;
  for (const KeptOutputs& set : sets) {
    for (const KeptOutput& o : set) {
      bytes += o.copy->bytes() + 2 * Tensor::kGuardBytes + o.places.size() * sizeof(int32_t);
    }
  }
  return bytes;
}

}  // namespace

std::vector<int64_t> Bench::drawn_rows_of(size_t set) const {
  if (draw_.sample_seed == 0) return {};
  return drawn_rows(problem_of(set), draw_.sample_seed + set);
}

const Bench::Reference* Bench::reference_for(const Variant& variant) {
  if (sets_[0]->sampled_outputs().empty()) return nullptr;
  for (const Variant* v : references_for(variant, find_op(case_.op, registry_), registry_.variants,
                                         case_, device_.facts())) {
    const auto made = references_.find(v->name);
    if (made != references_.end()) return &made->second;
    if (!refuted_.contains(v->name) && make_reference(*v)) return &references_.at(v->name);
  }
  return nullptr;
}

void Bench::make_row_truths() {
  for (size_t set = 0; set < sets_.size(); ++set) {
    const auto rows = drawn_rows_of(set);
    if (!rows.empty()) sets_[set]->check_rows(rows);
  }
}

bool Bench::make_reference(const Variant& candidate) {
  draw_others(candidate);
  const ProcessState before;
  const size_t tensors = tensor_bytes();
  const Subject subject = this->subject(candidate, sets_);
  remember_inputs();
  Reference made{&candidate, {}};
  // Whether it is right its own row says, and the truth of the rows in which it differs.
  compiled_.insert(candidate.name);
  const auto keep = [&](Problem& problem) {
    launch_behind(Tensor::kPoisonByte, candidate, problem);
    spoilt_ = spoilt_ || !broken_guard(problem).empty();
    made.sets.push_back(keep_outputs(problem, candidate.leeway));
  };
  try {
    for (Problem* problem : subject.sets) keep(*problem);
    sets_[0]->replace_activations(unseen_);
    keep(*sets_[0]);
    sets_[0]->replace_activations(0);
  } catch (const Error& e) {
    give_up(e.code(), "{} (while {} ran, whose output is to be compared with)", e.what(),
            candidate.name);
  }
  const size_t taken = tensor_bytes() - tensors + kept_bytes(made.sets);
  const bool fit =
      misdeed(candidate, before, taken, is_compiled_at_launch(candidate)).empty() && !spoilt_;
  if (spoilt_) build();
  if (!fit) {
    refuted_.insert(candidate.name);
    return false;
  }
  references_.emplace(candidate.name, std::move(made));
  return true;
}

std::string Bench::whole_fault(size_t set) {
  Problem& problem = problem_of(set);
  const auto drawn = drawn_rows_of(set);
  std::string fault = drawn.empty() ? "" : row_fault(problem, drawn);
  if (!fault.empty()) return fault + fmt::format(" (drawn by --sample-seed {})", draw_.sample_seed);
  if (!reference_) return {};
  for (const WholeComparison& whole : compare_whole(problem, reference_->sets.at(set))) {
    whole_row_ = std::max(whole_row_, whole.worst_row);
    if (whole.rows_over == 0) continue;
    std::vector<int64_t> rows = whole.worst;
    std::ranges::sort(rows);
    fault = row_fault(problem, rows);
    if (fault.empty()) {  // then it is the other that is not right
      refuted_.insert(reference_->variant->name);
      references_.erase(reference_->variant->name);
      reference_ = nullptr;
      return {};
    }
    return fmt::format(
        "{}: row {} and {} more of {} differ from variant {} by up to {:.2g} (ceiling {:.2g}; {} "
        "elements not finite on one side); by the truth {}",
        whole.output, whole.worst[0], whole.rows_over - 1, whole.rows, reference_->variant->name,
        whole.worst_row, whole.ceiling, whole.nonfinite, fault);
  }
  return {};
}

void Bench::note_compared(const std::vector<Accuracy>& checked, Result& result) const {
  double all = 0, sampled = 0;
  for (const SampledOutput& o : sets_[0]->sampled_outputs()) {
    all += static_cast<double>(o.rows) * static_cast<double>(o.width);
  }
  if (all == 0) return;
  for (const Accuracy& a : checked) sampled += static_cast<double>(a.elements);
  // Less than 1: no other variant runs this case.
  result.metrics.push_back({"outputs_compared", "share", reference_ ? 1 : sampled / all});
  if (reference_) result.metrics.push_back({"whole_row", "error", whole_row_});
}

// The part of Bench that launches on activations which the variant never saw.

namespace {

constexpr int kPairs = 6;          // of launches on new activations and on the same once more
constexpr size_t kLeastSpans = 4;  // valid ones of either kind, to say anything
constexpr int kLeastSightings = 4, kMostSightings = 8;  // of the same ones before the last launch

Sample one_sample(Session& session) {
  session.enqueue();
  return session.collect().back();
}

/// Spans without a fault; or with those during which the thread lost its core.
std::vector<double> spans_of(const std::vector<Sample>& samples, bool with_preempted) {
  std::vector<double> spans;
  for (const Sample& s : samples) {
    if (s.flags == 0 || (with_preempted && s.flags == kPreempted)) spans.push_back(s.span_ns);
  }
  return spans;
}

}  // namespace

bool first_ones_are_slower(const std::vector<double>& first, const std::vector<double>& repeated,
                           double factor) {
  if (first.size() < kLeastSpans || repeated.size() < kLeastSpans) return false;
  return *std::ranges::min_element(first) > *std::ranges::max_element(repeated) &&
         median(first) > factor * median(repeated);
}

bool Bench::Pairs::too_few() const {
  return std::min(spans_of(first, false).size(), spans_of(repeated, false).size()) < kLeastSpans;
}

bool Bench::Pairs::first_are_slower(double factor) const {
  // On a busy machine few launches keep their core, and what is slower by much is all the same.
  constexpr double kByMuch = 10;
  return first_ones_are_slower(spans_of(first, too_few()), spans_of(repeated, too_few()),
                               too_few() ? kByMuch : factor);
}

/// Before either launch a host has the variant's code in its caches, and knows of no branch how it
/// goes: else the first one is slower by a quarter for what is not the variant's doing.
void Bench::meet_others(const Variant& variant) {
  if (device_.facts().backend != Backend::host) return;
  constexpr int kLaunches = 3;
  for (int i = 0; i < kLaunches; ++i) variant.launch(problem_of(1), {nullptr, device_.facts()});
  forget_branches();
}

/// Spans of the first launch on activations that nobody saw, and of one some launches later: who
/// keeps what it has seen a few times does not yet do so the second time.
void Bench::add_pair(const Variant& variant, Session& session, Pairs& all) {
  Problem& problem = *sets_[0];
  problem.replace_activations(random_() | 1);
  device_.synchronize();
  meet_others(variant);
  all.first.push_back(one_sample(session));
  const int sightings = std::uniform_int_distribution(kLeastSightings, kMostSightings)(random_);
  for (int i = 1; i < sightings; ++i) session.enqueue();
  session.collect();
  meet_others(variant);
  all.repeated.push_back(one_sample(session));
}

std::string Bench::kept_fault(const Variant& variant, Session& session) {
  // On a busy machine most samples are invalid: then more are taken.
  constexpr int kMostTries = 2;
  const auto measure = [&](int pairs) {
    Pairs all;
    for (int i = 0; i < pairs || (all.too_few() && i < kMostTries * pairs); ++i) {
      add_pair(variant, session, all);
    }
    return all;
  };
  // Honest launches on a host were seen to take up to 1.2 times as long on the first ones.
  const double factor = device_.facts().backend == Backend::host ? 1.5 : 1.3;
  if (!measure(kPairs).first_are_slower(factor)) return {};
  // By chance six are above six once in 924 times; twelve are above twelve never.
  const Pairs pairs = measure(2 * kPairs);
  if (!pairs.first_are_slower(factor)) return {};
  return fmt::format(
      "takes {:.2f} us on activations that it never saw and {:.2f} us on the same once more: it "
      "keeps something between launches",
      median(spans_of(pairs.first, true)) / 1e3, median(spans_of(pairs.repeated, true)) / 1e3);
}

void Bench::with_unseen(Result& result, const std::function<std::string()>& look) {
  Problem& problem = *sets_[0];
  problem.replace_activations(unseen_);
  double all = 0, replaced = 0;
  for (const Tensor* tensor : problem.tensors()) {
    const auto known = inputs_.find(tensor);
    if (tensor->role() != Role::activation || known == inputs_.end()) continue;
    const auto bytes = static_cast<double>(tensor->bytes());
    all += bytes;
    if (device_.hash(tensor->data(), tensor->bytes()) != known->second) replaced += bytes;
  }
  const bool known = replaced > 0 && problem.find_truth();
  result.metrics.push_back({kUnseenMetric, "share", known ? replaced / all : 0});
  const std::string fault = replaced > 0 ? look() : "";
  problem.replace_activations(0);
  device_.synchronize();
  if (!fault.empty()) reject(fault, {}, result);
}

std::string Bench::unseen_fault(const Variant& variant) {
  Problem& problem = *sets_[0];
  const bool known = problem.find_truth();
  const Checked checked = problem.check_with(variant.leeway);
  if (!known) {
    if (checked.hash != hashes_[0]) return {};
    return "gives the same output for other activations: it does not compute";
  }
  const auto bad = std::ranges::find(checked.accuracy, false, &Accuracy::ok);
  const std::string fault = bad != checked.accuracy.end() ? bad->why : whole_fault(sets_.size());
  return fault.empty() ? "" : "on activations that it never saw: " + fault;
}

void Bench::check_unseen(const Variant& variant, Result& result) {
  const auto look = [&] {
    launch_behind(Tensor::kPoisonByte, variant, *sets_[0]);
    return unseen_fault(variant);
  };
  guarded(result, [&] { with_unseen(result, look); });
}

void Bench::try_unseen(const Variant& variant, Timer& timer, const Conditions& conditions,
                       Result& result) {
  with_unseen(result, [&] {
    const auto session = timer.open({&variant, {sets_[0].get()}}, nullptr, conditions);
    one_sample(*session);
    std::string fault = unseen_fault(variant);
    // What is warm is slow the first time by itself.
    if (fault.empty() && conditions.cache != Cache::warm) fault = kept_fault(variant, *session);
    return fault;
  });
}

}  // namespace moegate
