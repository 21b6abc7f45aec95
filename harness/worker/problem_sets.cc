// SPDX-License-Identifier: Apache-2.0
// The problems of a Bench: how many, of which seeds, and with what a variant needs.
#include "harness/base/rng.h"
#include "harness/kernel/recorded_routing.h"
#include "harness/worker/measure.h"

namespace moegate {
namespace {

double footprint(const Problem& problem) {
  double bytes = 0;
  for (const Tensor* t : problem.tensors()) bytes += static_cast<double>(t->bytes());
  return bytes;
}

/// How many problems a launch alternates among. Memory placement and graph instantiation shift a
/// whole process's spans by half a percent on an H200; many small sets average that out. Large ones
/// cost too much, and two are enough to defeat any cache.
size_t set_count(double bytes) {
  constexpr double kMiB = 1 << 20;
  return bytes <= 8 * kMiB ? 8 : bytes <= 64 * kMiB ? 4 : 2;
}

std::vector<std::unique_ptr<Problem>> make_sets(Device& device, const Case& c, const OpEntry& op,
                                                Home home) {
  std::vector<std::unique_ptr<Problem>> sets;
  do {
    Case seeded = c;
    seeded.params["seed"] = std::to_string(seed_of_set(c, sets.size()));
    sets.push_back(op.make(device, seeded));
  } while (home == Home::own && sets.size() < set_count(footprint(*sets[0])));
  return sets;
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

}  // namespace moegate
