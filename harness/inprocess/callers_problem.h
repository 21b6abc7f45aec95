// SPDX-License-Identifier: Apache-2.0
// A problem whose tensors are the caller's memory, with or without a truth.
#pragma once

#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/kernel/kernel.h"

namespace moegate {

/// The words of 8 bytes of an input, from the first one that begins in it.
struct CallersBytes {
  void* data;
  size_t size;
};
CallersBytes whole_words(const nlohmann::json& input);

/// A device whose next tensor lies where the caller's is. Round that is memory of somebody else: a
/// tensor's guard bands are there in name only, and nobody may look at them (Home::guest).
class CallersMemory final : public Device {
 public:
  explicit CallersMemory(Device& device) : device_(device) { facts_ = device.facts(); }

  void lend(void* data) { lent_ = static_cast<std::byte*>(data); }

  void* allocate(size_t bytes) override;
  void release(void*) noexcept override {}
  void upload(void* to, const void* from, size_t bytes) override {
    device_.upload(to, from, bytes);
  }
  void download(void* to, const void* from, size_t bytes) override {
    device_.download(to, from, bytes);
  }
  void copy(void* to, const void* from, size_t bytes) override { device_.copy(to, from, bytes); }
  void fill(void* to, uint8_t byte, size_t bytes) override;
  void fill_random(void* to, size_t units, const RandomFill& what) override {
    device_.fill_random(to, units, what);
  }
  uint64_t hash(const void* data, size_t bytes) override { return device_.hash(data, bytes); }
  std::vector<RowDistance> row_distances(const RowPairs& pairs) override {
    return device_.row_distances(pairs);
  }
  void synchronize() override { device_.synchronize(); }
  void try_capture(const Variant& variant, Problem& problem) override {
    device_.try_capture(variant, problem);
  }
  void* stream() const override { return device_.stream(); }

 private:
  Device& device_;
  std::byte* lent_ = nullptr;
  int bands_ = 0;  // fills to come that are of the guard bands of the tensor at hand
};

/// Inputs, outputs and truths as a question states them (README.md).
class CallersProblem final : public Problem {
 public:
  /// Throws Error(usage) for an output that cannot be looked at where it is.
  CallersProblem(CallersMemory& memory, const nlohmann::json& question);

  /// Without truths: only the hash.
  Checked check() const override;
  Corruptions corruptions() override;
  Cost cost() const override;

 private:
  struct Output {
    std::string name, format;
    int64_t elements, row;  // row: of the last dimension
    const void* const* at;  // where the address stands, which each launch may change
    const void* truth;      // doubles, or for what is no floating type its bytes; null: unknown
    Tolerance tolerance;
    size_t bytes() const;
  };
  void add_output(CallersMemory& memory, const nlohmann::json& stated);
  Accuracy compare(const Output& output, const std::vector<std::byte>& bytes) const;

  std::vector<Output> outputs_;
  std::vector<std::unique_ptr<const void*>>
      fixed_;  // addresses of outputs that stay where they are
};

}  // namespace moegate
