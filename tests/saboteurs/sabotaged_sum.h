// SPDX-License-Identifier: Apache-2.0
// Operator sabotaged_sum: moe_sum, whose variants each cheat or break in one way and state what the
// harness must make of it. `moegate_saboteurs selftest saboteurs` runs them, a process each, so
// that what one keeps in static variables is its own. To add an attack, register one more variant.
#pragma once

#include "kernels/moe_sum/moe_sum.h"

namespace moegate::sabotaged_sum {

class SabotagedSum final : public moe_sum::MoeSum {
 public:
  static constexpr const char* kOp = "sabotaged_sum";
  using MoeSum::MoeSum;
};

/// Bytes of a tensor, kept where the harness does not see them.
using Bytes = std::vector<uint8_t>;

/// What is left of the sum where nothing is wrong: host variant blocked, CUDA
/// variant sum_vectorised.
void honest(SabotagedSum& problem, const Launch& where);
/// The problem's one output, and its one input.
Tensor& output_of(Problem& problem);
Tensor& input_of(Problem& problem);
/// Of a tensor in the host's memory.
Bytes bytes_of(const Tensor& tensor);
/// Of a few words of it, as a cheat that has little time takes it.
uint64_t sparse_hash(const Tensor& tensor);
/// KernelSpec::unsupported of what is caught by the memory that it keeps.
std::string no_sanitizer(const Case&, const DeviceFacts&);

}  // namespace moegate::sabotaged_sum
