// SPDX-License-Identifier: Apache-2.0
// The part of Bench that looks for what a variant does beside its launches: to its inputs, to the
// process, with memory of its own, and with what it saw before.
#include <fmt/format.h>

#include <algorithm>

#include "harness/base/stats.h"
#include "harness/device/chill.h"
#include "harness/worker/measure.h"

namespace moegate {
namespace {

constexpr int kPairs = 6;          // of launches on new activations and on the same once more
constexpr size_t kLeastSpans = 4;  // valid ones of either kind, to say anything
constexpr int kLeastSightings = 4, kMostSightings = 8;  // of the same ones before the last launch
// Honest rows were seen to keep 2.1 MB; an interpreter keeps what it imports, compiles and
// collects later.
constexpr size_t kMemoryAllowed = size_t{4} << 20, kInterpreterAllowed = size_t{32} << 20;

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
  for (int i = 0; i < kLaunches; ++i) variant.launch(*sets_[1], {nullptr, device_.facts()});
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

bool Bench::show_unseen(Result& result) {
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
  result.metrics.push_back(
      {.name = kUnseenMetric, .unit = "share", .value = known && all > 0 ? replaced / all : 0});
  return replaced > 0;
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
  guarded(result, [&] {
    Problem& problem = *sets_[0];
    std::string fault;
    if (show_unseen(result)) {
      problem.poison();
      variant.launch(problem, {device_.stream(), device_.facts()});
      device_.synchronize();
      fault = unseen_fault(variant);
    }
    problem.replace_activations(0);
    if (!fault.empty()) reject(fault, {}, result);
  });
}

void Bench::try_unseen(const Variant& variant, Timer& timer, const Conditions& conditions,
                       Result& result) {
  std::string fault;
  if (show_unseen(result)) {
    const auto session = timer.open({&variant, {sets_[0].get()}}, nullptr, conditions);
    one_sample(*session);
    fault = unseen_fault(variant);
    // What is warm is slow the first time by itself.
    if (fault.empty() && conditions.cache != Cache::warm) fault = kept_fault(variant, *session);
  }
  sets_[0]->replace_activations(0);
  device_.synchronize();
  if (!fault.empty()) reject(fault, {}, result);
}

void Bench::draw_others(const Variant& variant) {
  const size_t needed = variant.prepare ? sets_.size() : 1;
  for (; drawn_ < needed; ++drawn_) {
    sets_[drawn_]->replace_activations(unseen_);
    sets_[drawn_]->replace_activations(0);
  }
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
  try {
    work();
  } catch (const NoCodeForDevice& e) {
    result.status = Status::unsupported;
    result.why = e.what();
  } catch (const Error&) {
    if (refused().empty()) throw;
  }
  if (refused().empty()) return;
  spoilt_ = true;
  reject(refused(), {}, result);
}

void Bench::remember_inputs() {
  for (const auto& set : sets_) {
    for (const Tensor* tensor : set->tensors()) {
      if (tensor->role() != Role::activation && tensor->role() != Role::weight) continue;
      if (inputs_.contains(tensor)) continue;
      inputs_[tensor] = device_.hash(tensor->data(), tensor->bytes());
    }
  }
}

size_t Bench::tensor_bytes() const {
  size_t bytes = 0;
  for (const auto& set : sets_) {
    for (const Tensor* tensor : set->tensors()) bytes += tensor->bytes() + 2 * Tensor::kGuardBytes;
  }
  return bytes;
}

std::string Bench::misdeed(const Variant& variant, const ProcessState& before, size_t memory_limit,
                           bool may_start_threads) {
  const bool own = home_ == Home::own;
  const std::string broken = own ? before.broken(may_start_threads) : "";
  if (!broken.empty()) {
    before.restore();
    return broken;
  }
  for (const auto& [tensor, hash] : inputs_) {
    if (device_.hash(tensor->data(), tensor->bytes()) == hash) continue;
    spoilt_ = true;
    return fmt::format("changed its input '{}'; inputs belong to all variants", tensor->name());
  }
  if (!own || device_.facts().backend != Backend::host) return {};
  const bool interpreted = variant.file.ends_with(".py");
  const size_t allowed = interpreted ? kInterpreterAllowed : kMemoryAllowed + tensor_bytes() / 64;
  const size_t memory = before.memory_growth();
  if (memory <= memory_limit + allowed) return {};
  return fmt::format(
      "keeps {} bytes of its own from launch to launch; memory comes from Problem::packed() or the "
      "workspace, which are made cold",
      memory - memory_limit);
}

}  // namespace moegate
