// SPDX-License-Identifier: Apache-2.0
#include "harness/inprocess/callers_problem.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "harness/kernel/check.h"
#include "harness/values/accuracy.h"
#include "harness/values/json_fields.h"

namespace moegate {
namespace {

using nlohmann::json;

constexpr uintptr_t kAligned = 8;  // what hashes and spoils tensors does so in words

void* pointer(const json& address) {
  return reinterpret_cast<void*>(address.get<uintptr_t>());
}

/// Of a format's elements as they are compared: fp64 as fp32, what is no floating type as bytes.
DType dtype_of_format(const std::string& format) {
  if (format == "fp64") return DType::f32;
  for (const DType t : {DType::f32, DType::f16, DType::bf16, DType::e4m3}) {
    if (format == name_of(t)) return t;
  }
  return DType::u8;
}

size_t size_of_format(const std::string& format) {
  return format == "fp64" ? sizeof(double) : size_of(dtype_of_format(format));
}

/// Whole words of 4 bytes where there are only such, else bytes.
std::vector<int32_t> words_of(const std::byte* from, size_t bytes) {
  std::vector<int32_t> words;
  if (bytes % sizeof(int32_t) == 0) {
    words.resize(bytes / sizeof(int32_t));
    std::memcpy(words.data(), from, bytes);
  } else {
    for (size_t i = 0; i < bytes; ++i) words.push_back(std::to_integer<int32_t>(from[i]));
  }
  return words;
}

bool overlap(const json& one, const json& other) {
  const auto a = one.at("data").get<uintptr_t>(), b = other.at("data").get<uintptr_t>();
  return a < b + other.at("bytes").get<size_t>() && b < a + one.at("bytes").get<size_t>();
}

}  // namespace

CallersBytes whole_words(const json& input) {
  const auto given = input.at("data").get<uintptr_t>();
  const uintptr_t data = (given + kAligned - 1) / kAligned * kAligned;
  const uintptr_t end = given + input.at("bytes").get<size_t>();
  return {reinterpret_cast<void*>(data), end > data ? end - data : 0};
}

void* CallersMemory::allocate(size_t) {
  if (!lent_) throw Error(Exit::internal, "a guest makes no tensors of its own");
  constexpr int kBands = 2;
  bands_ = kBands;
  return std::exchange(lent_, nullptr) - Tensor::kGuardBytes;
}

void CallersMemory::fill(void* to, uint8_t byte, size_t bytes) {
  if (bands_ > 0) {
    --bands_;
  } else {
    device_.fill(to, byte, bytes);
  }
}

size_t CallersProblem::Output::bytes() const {
  return static_cast<size_t>(elements) * size_of_format(format);
}

CallersProblem::CallersProblem(CallersMemory& memory, const json& question) : Problem(memory) {
  for (const json& stated : question.at("inputs")) {
    const CallersBytes bytes = whole_words(stated);
    const auto is_output = [&](const json& output) {
      return !output.contains("slot") && overlap(stated, output);
    };
    if (bytes.size == 0 || std::ranges::any_of(question.at("outputs"), is_output)) continue;
    memory.lend(bytes.data);
    make_tensor(stated.at("name"), Role::activation, DType::u8, {static_cast<int64_t>(bytes.size)});
  }
  for (const json& stated : question.at("outputs")) add_output(memory, stated);
}

void CallersProblem::add_output(CallersMemory& memory, const json& stated) {
  Output output{.name = stated.at("name"),
                .format = stated.at("format"),
                .elements = stated.at("elements"),
                .row = stated.at("row"),
                .at = nullptr,
                .truth = pointer(stated.at("truth")),
                .tolerance = stated.at("tolerance")};
  if (output.elements == 0) return;
  if (stated.contains("slot")) {
    output.at = static_cast<const void* const*>(pointer(stated.at("slot")));
  } else {
    void* data = pointer(stated.at("data"));
    if (std::bit_cast<uintptr_t>(data) % kAligned != 0) {
      usage_error("output {} begins at an address that is no multiple of {}; give one that does",
                  output.name, kAligned);
    }
    memory.lend(data);
    const auto row =
        static_cast<int64_t>(static_cast<size_t>(output.row) * size_of_format(output.format));
    make_tensor(output.name, Role::output, DType::u8, {output.elements / output.row, row});
    fixed_.push_back(std::make_unique<const void*>(data));
    output.at = fixed_.back().get();
  }
  outputs_.push_back(std::move(output));
}

Checked CallersProblem::check() const {
  Checked checked;
  for (const Output& output : outputs_) {
    std::vector<std::byte> bytes(output.bytes());
    device().download(bytes.data(), *output.at, bytes.size());
    checked.hash = hash_bytes(bytes.data(), bytes.size(), checked.hash);
    if (output.truth) checked.accuracy.push_back(compare(output, bytes));
  }
  return checked;
}

Accuracy CallersProblem::compare(const Output& output, const std::vector<std::byte>& bytes) const {
  const DType type = dtype_of_format(output.format);
  if (!is_floating(type)) {
    return compare_exact(output.name, words_of(bytes.data(), bytes.size()),
                         words_of(static_cast<const std::byte*>(output.truth), bytes.size()));
  }
  const auto elements = static_cast<size_t>(output.elements);
  std::vector<float> values(elements);
  const auto* doubles =
      output.format == "fp64" ? reinterpret_cast<const double*>(bytes.data()) : nullptr;
  for (size_t i = 0; i < elements; ++i) {
    values[i] = doubles ? static_cast<float>(doubles[i])
                        : read_float(type, bytes.data(), static_cast<int64_t>(i));
  }
  return compare_floats(output.name, values, {static_cast<const double*>(output.truth), elements},
                        output.row, ceilings(output.tolerance), float_type(type));
}

Corruptions CallersProblem::corruptions() {
  const auto none = [] { return Corruption::not_applicable("a function states none"); };
  return {.experts_swapped = none(), .token_dropped = none(), .scales_transposed = none()};
}

Cost CallersProblem::cost() const {
  Cost cost;
  for (const Tensor* tensor : tensors()) {
    const auto bytes = static_cast<double>(tensor->bytes());
    (tensor->role() == Role::output ? cost.write_bytes : cost.read_bytes) += bytes;
  }
  return cost;
}

}  // namespace moegate
