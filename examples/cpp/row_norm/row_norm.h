// SPDX-License-Identifier: Apache-2.0
// Operator row_norm: RMS normalisation of every row, as before each layer of a transformer.
//
//   out[t, i] = x[t, i] * weight[i] / sqrt(mean of x[t, :]^2 + 1e-6)       fp32
#pragma once

#include "harness/kernel/kernel.h"
#include "harness/kernel/redraw.h"

namespace row_norm {

constexpr float kEpsilon = 1e-6F;

/// What a launch needs, by value; pointers are device pointers.
struct Args {
  const float* x;       // [tokens, hidden]
  const float* weight;  // [hidden]
  float* out;           // [tokens, hidden]
  int64_t tokens, hidden;
};

class RowNorm : public moegate::Problem {
 public:
  static constexpr const char* kOp = "row_norm";
  static void validate(const moegate::Case& c);
  RowNorm(moegate::Device& device, const moegate::Case& c);
  Args args();

  moegate::Checked check() const override;
  bool find_truth() override;
  moegate::Corruptions corruptions() override;
  moegate::Cost cost() const override;

 private:
  bool redraw(uint64_t change) override;

  const int64_t tokens_, hidden_;
  moegate::Tensor &x_, &weight_, &out_;
  std::vector<double> truth_;
  moegate::ByChange<std::vector<double>> truths_;
};

}  // namespace row_norm
