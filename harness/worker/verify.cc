// SPDX-License-Identifier: Apache-2.0
// The part of Bench that compares outputs with the truth: before timing, after it, and with outputs
// spoilt on purpose.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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
  }
  return e;
}

}  // namespace

Result Bench::verify(const Variant& variant) {
  Result result;
  result.variant = variant.name;
  if (variant.unsupported) result.why = variant.unsupported(case_, device_.facts());
  if (!result.why.empty()) {
    result.status = Status::unsupported;
    return result;
  }
  if (variant.path) result.path = variant.path(case_, device_.facts());
  const Launch launch{device_.stream(), device_.facts()};
  hashes_.clear();
  for (Problem* problem : subject(variant, sets_).sets) {
    problem->poison();
    variant.launch(*problem, launch);
    device_.synchronize();
    const Checked checked = problem->check();
    result.seeds.push_back(summarise_outputs(seed_of_set(case_, result.seeds.size()), checked));
    hashes_.push_back(checked.hash);
    if (result.accuracy.empty()) result.accuracy = checked.accuracy;
    for (const Accuracy& a : checked.accuracy) {
      if (a.ok || result.status == Status::wrong) continue;
      result.status = Status::wrong;
      result.why = a.why;
      result.accuracy = checked.accuracy;
    }
    const std::string guard = problem->broken_guard();
    if (!guard.empty()) {
      result.status = Status::wrong;
      result.why = fmt::format("wrote outside tensor '{}': its guard band changed", guard);
    }
    if (result.status == Status::wrong) return result;
  }
  return result;
}

void Bench::control(Result& result) {
  result.controls = negative_controls(*sets_[0], *sets_[1]);
  result.why = blind_spots(result.controls);
  if (!result.why.empty()) result.status = Status::wrong;
}

void Bench::check_again(Result& result) {
  const auto fail = [&](const std::string& why, const std::vector<Accuracy>& accuracy) {
    // A variant that fails a check publishes no latency.
    Result wrong;
    wrong.variant = result.variant;
    wrong.path = result.path;
    wrong.status = Status::wrong;
    wrong.why = "after timing: " + why;
    wrong.accuracy = accuracy;
    wrong.deterministic = result.deterministic;
    result = wrong;
  };
  for (size_t i = 0; i < sets_.size() && result.status != Status::wrong; ++i) {
    const Checked checked = sets_[i]->check();
    if (checked.hash != hashes_[i]) result.deterministic = false;
    const auto bad = std::find_if(checked.accuracy.begin(), checked.accuracy.end(),
                                  [](const Accuracy& a) { return !a.ok; });
    const std::string guard = sets_[i]->broken_guard();
    if (bad != checked.accuracy.end()) {
      fail(bad->why, checked.accuracy);
    } else if (!guard.empty()) {
      fail(fmt::format("wrote outside tensor '{}'", guard), checked.accuracy);
    }
  }
}

}  // namespace moegate
