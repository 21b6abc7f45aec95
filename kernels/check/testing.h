// SPDX-License-Identifier: Apache-2.0
// What the operators' tests have in common: cases, and every CUDA variant against the truth.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "harness/device/open.h"
#include "harness/kernel/tile_file.h"
#include "harness/worker/measure.h"

namespace moegate::check {

using Params = std::map<std::string, std::string>;

/// A case of operator `op`: its parameters' defaults, replaced by `small`, replaced by `params`.
inline Case case_of(const std::string& op, const Params& params, const Params& small = {}) {
  Case c;
  c.suite = "test";
  c.op = op;
  for (const Param& p : find_op(op).params) c.params[p.name] = p.default_value;
  for (const Param& p : common_params()) c.params[p.name] = p.default_value;
  for (const auto& [name, value] : small) c.params[name] = value;
  for (const auto& [name, value] : params) c.params[name] = value;
  return c;
}

/// Of an operator with a Tuning "tile/NAME" is what NAME is.
inline bool is_another_name(const Variant& v) {
  return is_tile_variant(v.name) && find_op(v.op).tuning.usual;
}

/// Runs a host variant on the problem of a case, outputs poisoned first.
inline void launch_host_variant(Problem& problem, const Case& c, const std::string& name) {
  const Variant& variant = find_variant(c.op, Backend::host, name);
  const DeviceFacts& facts = problem.device().facts();
  problem.reserve_workspace(variant.workspace(c, facts));
  problem.poison();
  variant.launch(problem, {nullptr, facts});
}

/// Each of the operator's, `tuned` and candidates too, also on activations that it never saw.
inline void expect_host_variants_right(Device& device, const Case& c) {
  Bench bench(device, c);
  for (const Variant& v : all_variants()) {
    if (v.op != c.op || v.backend != Backend::host) continue;
    Result result = bench.verify(v);
    if (result.status == Status::ok) bench.check_unseen(v, result);
    EXPECT_EQ(result.status, Status::ok) << c.key() << " " << v.name << ": " << result.why;
  }
}

/// Skips without a GPU.
class CudaVariants : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    if (cuda_devices(&why).empty()) GTEST_SKIP() << "no CUDA device: " << why;
    device_ = open_cuda_device(0);
  }

  void expect_right(const Case& c) {
    Bench bench(*device_, c);
    for (const Variant& v : all_variants()) {
      if (v.op != c.op || v.backend != Backend::cuda || is_another_name(v)) continue;
      Result result = bench.verify(v);
      if (result.status == Status::ok) bench.check_unseen(v, result);
      EXPECT_TRUE(result.status == Status::ok || result.status == Status::unsupported)
          << c.key() << " " << v.name << ": " << result.why;
    }
  }

  std::unique_ptr<Device> device_;
};

}  // namespace moegate::check
