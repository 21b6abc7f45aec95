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
  const auto bad = std::find_if(checked.accuracy.begin(), checked.accuracy.end(),
                                [](const Accuracy& a) { return !a.ok; });
  const std::string guard = broken_guard(*sets_[set]);
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
    for (const KeptOutputs::Output& o : set.outputs) {
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
  const auto keep = [&](Problem& problem) {
    problem.poison();
    candidate.launch(problem, {device_.stream(), device_.facts()});
    device_.synchronize();
    spoilt_ = spoilt_ || !broken_guard(problem).empty();
    made.sets.push_back(keep_outputs(problem, candidate.leeway));
  };
  try {
    for (Problem* problem : subject.sets) keep(*problem);
    sets_[0]->replace_activations(unseen_);
    keep(*sets_[0]);
    sets_[0]->replace_activations(0);
  } catch (const Error& e) {
    throw Error(e.code(), fmt::format("{} (while {} ran, whose output is to be compared with)",
                                      e.what(), candidate.name));
  }
  const size_t taken = tensor_bytes() - tensors + kept_bytes(made.sets);
  const bool fit =
      misdeed(candidate, before, taken, candidate.file.ends_with(".py")).empty() && !spoilt_;
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
  result.metrics.push_back(
      {.name = "outputs_compared", .unit = "share", .value = reference_ ? 1 : sampled / all});
  if (reference_) {
    result.metrics.push_back({.name = "whole_row", .unit = "error", .value = whole_row_});
  }
}

}  // namespace moegate
