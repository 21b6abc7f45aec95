// SPDX-License-Identifier: Apache-2.0
// Variants that depend on their batch in one way each, of an operator that exists.
#include "harness/worker/batch_invariance.h"

#include <gtest/gtest.h>

#include "harness/device/open.h"
#include "harness/kernel/only_tensor_fixture.h"
#include "harness/values/run.h"

namespace moegate::test {
namespace {

constexpr const char* kSum = "moe_sum";
constexpr int kRow = 24;

Case case_of(int tokens) {
  Case c{"test", "small", kSum, {}, {}};
  for (const Param& p : find_op(kSum).params) c.params[p.name] = p.default_value;
  for (const Param& p : common_params()) c.params[p.name] = p.default_value;
  c.params["tokens"] = std::to_string(tokens);
  c.params["topk"] = "3";
  c.params["hidden"] = std::to_string(kRow);
  return c;
}

using Rows = std::vector<uint16_t>;

class BatchInvarianceTest : public ::testing::Test {
 protected:
  /// What a variant is found to be that spoils right outputs so.
  std::vector<Metric> ask(const std::function<void(Rows& rows, int tokens)>& spoil, int tokens) {
    Variant variant = find_variant(kSum, Backend::host, "per_token");
    variant.launch = [&spoil, right = variant.launch](Problem& problem, const Launch& where) {
      right(problem, where);
      Tensor& out = only(problem, Role::output);
      auto rows = out.download<uint16_t>();
      spoil(rows, static_cast<int>(rows.size()) / kRow);
      out.upload(rows);
    };
    return ask_batch_invariance(variant, case_of(2), tokens, own_registry(), *device_);
  }
  std::unique_ptr<Device> device_ = open_host_device();
};

void expect_broken(const std::vector<Metric>& metrics, double tokens, double place, double share) {
  ASSERT_EQ(metrics.size(), 3u);
  EXPECT_EQ(metrics[0].name, kInvarianceMetric);
  EXPECT_EQ(metrics[0].value, tokens);
  EXPECT_EQ(metrics[1].name, kBrokenPlaceMetric);
  EXPECT_EQ(metrics[1].value, place);
  EXPECT_EQ(metrics[2].name, kBrokenShareMetric);
  EXPECT_DOUBLE_EQ(metrics[2].value, share);
}

TEST_F(BatchInvarianceTest, ARightVariantIsInvariant) {
  const auto metrics = ask([](Rows&, int) {}, 300);
  ASSERT_EQ(metrics.size(), 1u);
  EXPECT_EQ(metrics[0].name, kInvarianceMetric);
  EXPECT_EQ(metrics[0].value, 0);
}

TEST_F(BatchInvarianceTest, FindsADependenceOnThePlace) {
  const auto odd_places = [](Rows& rows, int tokens) {
    for (int t = 1; t < tokens; t += 2) rows[static_cast<size_t>(t * kRow)] ^= 1;
  };
  expect_broken(ask(odd_places, 64), 2, 1, 1.0 / kRow);
}

TEST_F(BatchInvarianceTest, FindsADependenceOnTheLastPlaceOfABlock) {
  const auto last = [](Rows& rows, int tokens) {
    for (int t = 63; t < tokens; t += 64) rows[static_cast<size_t>(t * kRow)] ^= 1;
  };
  expect_broken(ask(last, 100), 64, 63, 1.0 / kRow);
}

TEST_F(BatchInvarianceTest, FindsADependenceOnTheNumberOfTokens) {
  const auto even_numbers = [](Rows& rows, int tokens) {
    if (tokens % 2 != 0) return;
    for (uint16_t& bits : rows) bits ^= 1;
  };
  expect_broken(ask(even_numbers, 64), 2, 1, 1);
  const auto many = [](Rows& rows, int tokens) {
    if (tokens < 257) return;
    for (uint16_t& bits : rows) bits ^= 1;
  };
  EXPECT_EQ(ask(many, 300)[0].value, 257);
  EXPECT_EQ(ask(many, 256)[0].value, 0) << "no batch is as large";
}

TEST_F(BatchInvarianceTest, FindsADependenceOnTheCompany) {
  const auto neighbour = [](Rows& rows, int tokens) {
    for (int t = tokens - 1; t > 0; --t) {
      const auto row = static_cast<size_t>(t * kRow);
      rows[row] ^= rows[row - kRow] & 1;
    }
  };
  const auto metrics = ask(neighbour, 64);
  ASSERT_EQ(metrics.size(), 3u);
  EXPECT_GT(metrics[0].value, 0);
}

TEST_F(BatchInvarianceTest, OneBatchSaysNothing) {
  EXPECT_TRUE(ask([](Rows&, int) {}, 1).empty());
}

TEST_F(BatchInvarianceTest, OutputsOfABatchAreNotAsked) {
  Case c{"test", "small", "moe_align", {}, {}};
  for (const Param& p : find_op(c.op).params) c.params[p.name] = p.default_value;
  c.params["tokens"] = c.params["experts"] = "8";
  c.params["topk"] = "2";
  c.params["block"] = "4";
  c.params["seed"] = "1";
  const Variant& variant = find_variant(c.op, Backend::host, "counting_sort");
  EXPECT_TRUE(ask_batch_invariance(variant, c, 8, own_registry(), *device_).empty());
}

}  // namespace
}  // namespace moegate::test
