// SPDX-License-Identifier: Apache-2.0
// The part of Bench that compares outputs with the truth: before timing, after it, and with outputs
// spoilt on purpose.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/device/scribble.h"
#include "harness/kernel/controls.h"
#include "harness/worker/measure.h"

namespace moegate {
namespace {

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

Result Bench::verify(const Variant& variant) {
  Result result;
  result.variant = variant.name;
  guarded(result, [&] { result = verify_all(variant); });
  return result;
}

Result Bench::verify_all(const Variant& variant) {
  Result result;
  result.variant = variant.name;
  if (variant.unsupported) result.why = variant.unsupported(case_, device_.facts());
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
  const bool compiles = variant.file.ends_with(".py");
  const std::string fault = misdeed(variant, before, tensor_bytes() - tensors, compiles);
  if (!fault.empty()) reject(fault, {}, result);
  if (result.status == Status::ok) note_compared(result.accuracy, result);
  return result;
}

Checked Bench::launch_behind(uint8_t poison, const Variant& variant, Problem& problem) {
  problem.poison(poison);
  variant.launch(problem, {device_.stream(), device_.facts()});
  device_.synchronize();
  return problem.check_with(variant.leeway);
}

void Bench::verify(const Variant& variant, Problem& problem, Result& result) {
  Checked checked = launch_behind(Tensor::kPoisonByte, variant, problem);
  // What is as it should be because it was never written, as an index of -1, is another byte now.
  const bool first = result.seeds.empty();
  if (first && std::ranges::all_of(checked.accuracy, &Accuracy::ok)) {
    checked = launch_behind(kOtherPoisonByte, variant, problem);
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
  const std::string guard = problem.broken_guard();
  if (guard.empty()) return;
  result.status = Status::wrong;
  result.why = fmt::format("wrote outside tensor '{}': its guard band changed", guard);
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
  const auto bad = std::find_if(checked.accuracy.begin(), checked.accuracy.end(),
                                [](const Accuracy& a) { return !a.ok; });
  const std::string guard = sets_[set]->broken_guard();
  if (bad != checked.accuracy.end()) {
    reject("in timed launches: " + bad->why, checked.accuracy, result);
  } else if (!guard.empty()) {
    reject(fmt::format("in timed launches: wrote outside tensor '{}'", guard), checked.accuracy,
           result);
  } else if (!fault.empty()) {
    reject("in timed launches: " + fault, checked.accuracy, result);
  }
}

void Bench::check_again(const Subject& timed, Result& result) {
  for (size_t i = 0; i < timed.sets.size() && result.status != Status::wrong; ++i) {
    check_again(i, *timed.variant, result);
  }
}

}  // namespace moegate
