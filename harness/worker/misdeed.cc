// SPDX-License-Identifier: Apache-2.0
// The part of Bench that looks for what a variant does beside its launches: to its inputs, to the
// process, with memory of its own, and with what it saw before.
#include <fmt/format.h>

#include <algorithm>

#include "harness/base/stats.h"
#include "harness/worker/measure.h"

namespace moegate {
namespace {

constexpr int kPairs = 6;          // of launches on new activations and on the same once more
constexpr size_t kLeastSpans = 4;  // valid ones of either kind, to say anything
// Honest rows of a host's night were seen to keep 2.1 MB.
constexpr size_t kHeapAllowed = size_t{4} << 20;

/// Spans of launches on activations never seen before, and of the launches after them.
struct Pairs {
  std::vector<double> first, repeated;
};

double one_span(Session& session) {
  session.enqueue();
  const auto samples = session.collect();
  return samples.back().flags == 0 ? samples.back().span_ns : 0;
}

}  // namespace

bool first_ones_are_slower(const std::vector<double>& first, const std::vector<double>& repeated) {
  constexpr double kFactor = 1.3;
  if (first.size() < kLeastSpans || repeated.size() < kLeastSpans) return false;
  return *std::ranges::min_element(first) > *std::ranges::max_element(repeated) &&
         median(first) > kFactor * median(repeated);
}

std::string Bench::unseen_fault(const Subject& subject, Timer& timer,
                                const Conditions& conditions) {
  Problem& problem = *subject.sets[0];
  const auto session = timer.open(subject, nullptr, conditions);
  one_span(*session);
  // On a busy machine most samples are invalid: then more are taken.
  constexpr int kMostTries = 4;
  const auto measure = [&](int pairs) {
    Pairs all;
    const auto too_few = [&] {
      return std::min(all.first.size(), all.repeated.size()) < kLeastSpans;
    };
    for (int i = 0; i < pairs || (too_few() && i < kMostTries * pairs); ++i) {
      problem.replace_activations(random_() | 1);
      device_.synchronize();
      const double first = one_span(*session), repeated = one_span(*session);
      if (first > 0) all.first.push_back(first);
      if (repeated > 0) all.repeated.push_back(repeated);
    }
    return all;
  };
  Pairs pairs = measure(kPairs);
  if (problem.check().hash == hashes_[0]) {
    return "gives the same output for other activations: it does not compute";
  }
  if (!first_ones_are_slower(pairs.first, pairs.repeated)) return {};
  // By chance six are above six once in 924 times; twelve are above twelve never.
  pairs = measure(2 * kPairs);
  if (!first_ones_are_slower(pairs.first, pairs.repeated)) return {};
  return fmt::format(
      "takes {:.2f} us on activations that it never saw and {:.2f} us on the same once more: it "
      "keeps something between launches",
      median(pairs.first) / 1e3, median(pairs.repeated) / 1e3);
}

void Bench::try_unseen(const Variant& variant, Timer& timer, const Conditions& conditions,
                       Result& result) {
  if (!sets_[0]->replace_activations(1)) return;
  const std::string fault = unseen_fault({&variant, {sets_[0].get()}}, timer, conditions);
  sets_[0]->replace_activations(0);
  device_.synchronize();
  if (!fault.empty()) reject(fault, {}, result);
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

std::string Bench::misdeed(const ProcessState& before, size_t heap_limit, bool may_start_threads) {
  const std::string broken = before.broken(may_start_threads);
  if (!broken.empty()) {
    before.restore();
    return broken;
  }
  for (const auto& [tensor, hash] : inputs_) {
    if (device_.hash(tensor->data(), tensor->bytes()) == hash) continue;
    spoilt_ = true;
    return fmt::format("changed its input '{}'; inputs belong to all variants", tensor->name());
  }
  if (device_.facts().backend != Backend::host) return {};
  const size_t heap = before.heap_growth();
  if (heap <= heap_limit + kHeapAllowed + tensor_bytes() / 64) return {};
  return fmt::format(
      "keeps {} bytes of its own from launch to launch; memory comes from Problem::packed() or the "
      "workspace, which are made cold",
      heap - heap_limit);
}

}  // namespace moegate
