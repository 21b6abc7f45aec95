// SPDX-License-Identifier: Apache-2.0
// The part of Bench that looks for what a variant does beside its launches: to its inputs, to the
// process, and with memory of its own.
#include <fmt/format.h>

#include <algorithm>

#include "harness/worker/measure.h"

namespace moegate {
namespace {

// Honest rows were seen to keep 2.1 MB; an interpreter keeps what it imports, compiles and
// collects later.
constexpr size_t kMemoryAllowed = size_t{4} << 20, kInterpreterAllowed = size_t{32} << 20;

}  // namespace

void Bench::draw_others(const Variant& variant) {
  const size_t needed = variant.prepare ? sets_.size() : 1;
  for (; drawn_ < needed; ++drawn_) {
    sets_[drawn_]->replace_activations(unseen_);
    sets_[drawn_]->replace_activations(0);
  }
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

size_t Bench::tensor_bytes(bool with_yardstick) const {
  size_t bytes = 0;
  const auto add = [&](const std::vector<std::unique_ptr<Problem>>& sets) {
    for (const auto& set : sets) {
      for (const Tensor* tensor : set->tensors())
        bytes += tensor->bytes() + 2 * Tensor::kGuardBytes;
    }
  };
  add(sets_);
  if (with_yardstick) add(yardstick_sets_);
  return bytes;
}

// What lies in a pool is poisoned whether a launch freed it or kept it. Of what was freed nobody
// may expect anything. What was kept is where a launch would find the result of the one before, and
// is not told apart from a table that it made once: what lasts is allocated in prepare(), whose
// memory is not the pool's. The workspace of cuBLAS, which torch keeps there, survives it.

void Bench::poison(const Variant& variant, const std::vector<Problem*>& sets, uint8_t byte) {
  for (Problem* set : sets) set->poison(byte);
  poisoned_ = kept_ = 0;
  poison_ = byte;
  if (!variant.pool) return;
  for (const PoolSegment& segment : variant.pool()) {
    device_.fill(segment.data, byte, segment.bytes);
    poisoned_ += segment.bytes;
    kept_ += segment.kept;
  }
}

bool Bench::has_poison(const Result& result) const {
  const auto& outputs = result.accuracy;
  if (poisoned_ == 0 || std::ranges::all_of(outputs, &Accuracy::ok)) return false;
  if (std::ranges::any_of(outputs, [](const Accuracy& a) { return a.nonfinite > 0; })) return true;
  constexpr int kWord = 4;  // of other numbers, so many bytes are hardly all alike
  for (size_t i = 0; i < std::min(sets_.size(), result.seeds.size()); ++i) {
    for (const Tensor* tensor : sets_[i]->tensors()) {
      if (tensor->role() != Role::output) continue;
      std::vector<uint8_t> bytes(tensor->bytes());
      device_.download(bytes.data(), tensor->data(), bytes.size());
      if (std::search_n(bytes.begin(), bytes.end(), kWord, poison_) != bytes.end()) return true;
    }
  }
  return false;
}

std::string Bench::pool_advice() const {
  if (poisoned_ == 0) return {};
  return fmt::format(
      "; its pool of {} bytes, of which launches kept {}, was poisoned before: a launch that reads "
      "there what it did not write is wrong; allocate what must last in prepare()",
      poisoned_, kept_);
}

std::string grown_pool(const std::vector<PoolSegment>& before,
                       const std::vector<PoolSegment>& after) {
  size_t grown = 0;
  for (const PoolSegment& now : after) {
    const bool known = std::ranges::any_of(before, [&](const PoolSegment& was) {
      return was.data == now.data && was.bytes == now.bytes;
    });
    if (!known) grown += now.bytes;
  }
  if (grown == 0) return {};
  return fmt::format(
      "took {} bytes from the GPU (cudaMalloc) in timed launches; allocate as much in every "
      "launch, or in prepare()",
      grown);
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
