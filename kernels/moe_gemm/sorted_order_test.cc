// SPDX-License-Identifier: Apache-2.0
// Sorted order: the output as check() reads it, and the copies of the activations.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "harness/device/open.h"
#include "harness/kernel/controls.h"
#include "kernels/moe_gemm/moe_gemm_testing.h"

namespace moegate::moe_gemm {
namespace {

/// The rows that the host's gather makes, put where a variant in sorted order puts them.
template <class P>
void write_sorted(P& problem, const Case& c) {
  problem.sort_output();
  problem.poison();
  check::launch_host_variant(problem, c, "gather");
  const uint16_t* right = problem.args().out;
  const MoeGemmArgs args = problem.args(RowOrder::tokens, RowOrder::sorted);
  const int width = problem.shape.n;
  for (int64_t place = 0; place < *args.padded_rows; ++place) {
    const int64_t r = args.sorted_token_ids[place];
    if (r < problem.shape.rows()) std::copy_n(right + r * width, width, args.out + place * width);
  }
}

template <class P>
class MoeGemmSortedOrder : public ::testing::Test {
 protected:
  const std::unique_ptr<Device> device_ = open_host_device();
};
using Operators = ::testing::Types<MoeGateUp, MoeDown>;
TYPED_TEST_SUITE(MoeGemmSortedOrder, Operators);

TYPED_TEST(MoeGemmSortedOrder, OutputsAreJudgedInTheOrderAskedFor) {
  for (const double most_products : {0.0, MoeGemm::kWholeTruth}) {
    const Case c = moe_gemm_case<TypeParam>({{"hidden", "512"}, {"inter", "512"}});
    TypeParam problem(*this->device_, c, most_products);
    check::launch_host_variant(problem, c, "gather");
    const uint64_t hash = problem.check().hash;
    EXPECT_THROW(problem.args(RowOrder::tokens, RowOrder::sorted), Error) << "there is none yet";
    write_sorted(problem, c);
    const Checked sorted = problem.check();
    EXPECT_TRUE(sorted.accuracy[0].ok) << sorted.accuracy[0].why;
    EXPECT_EQ(sorted.hash, hash) << "of the routed rows alone, in one order";
    for (const Accuracy& row : problem.check_rows({1, problem.shape.rows() - 1})) {
      EXPECT_TRUE(row.ok) << row.why;
    }
    const Corruptions corruptions = problem.corruptions();
    for (const Corruption* corruption : {&corruptions.experts_swapped, &corruptions.token_dropped,
                                         &corruptions.scales_transposed}) {
      write_sorted(problem, c);
      corruption->apply();
      EXPECT_FALSE(problem.check().accuracy[0].ok);
    }
    problem.args();
    EXPECT_EQ(problem.check().hash, hash) << "the output in token order is as it was";
  }
}

// The output in token order, which the variant leaves alone, is not spoilt. A rank without rows has
// nothing that could be wrong.
TYPED_TEST(MoeGemmSortedOrder, ControlsSpoilTheOutputThatIsJudged) {
  for (const char* rank : {"0/1", "0/2", "1/2"}) {
    const Case c =
        moe_gemm_case<TypeParam>({{"rank", rank}, {"routing", "hot:1:1"}, {"topk", "1"}});
    TypeParam problem(*this->device_, c), other(*this->device_, c);
    write_sorted(problem, c);
    write_sorted(other, c);
    ASSERT_TRUE(problem.check().accuracy[0].ok) << problem.check().accuracy[0].why;
    EXPECT_EQ(blind_spots(negative_controls(problem, other)), "") << rank;
  }
}

/// Row `r` of a tensor whose rows have so many bytes.
std::vector<uint8_t> row_of(const void* tensor, int64_t r, int64_t bytes) {
  const auto* from = static_cast<const uint8_t*>(tensor) + r * bytes;
  return {from, from + bytes};
}

/// Every place of sorted x has the row that `tokens` reads there, or poison.
void expect_sorted(const MoeGemmArgs& sorted, const MoeGemmArgs& tokens) {
  const MoeGemmShape& shape = tokens.shape;
  const int scale_bytes = shape.k_groups() * static_cast<int>(sizeof(float));
  const auto poison = [](int bytes) {
    return std::vector<uint8_t>(static_cast<size_t>(bytes), Tensor::kPoisonByte);
  };
  for (int64_t place = 0; place < shape.capacity(); ++place) {
    const int32_t r = tokens.sorted_token_ids[place];
    const bool padding = r >= shape.rows();
    const int64_t source = shape.source(r);
    EXPECT_EQ(row_of(sorted.x, place, shape.row_bytes()),
              padding ? poison(shape.row_bytes()) : row_of(tokens.x, source, shape.row_bytes()));
    if (!tokens.x_scales) continue;
    EXPECT_EQ(row_of(sorted.x_scales, place, scale_bytes),
              padding ? poison(scale_bytes) : row_of(tokens.x_scales, source, scale_bytes));
  }
}

TYPED_TEST(MoeGemmSortedOrder, ActivationsHavePoisonInRowsOfPadding) {
  for (const char* dtype : {"fp8", "bf16"}) {
    TypeParam problem(*this->device_,
                      moe_gemm_case<TypeParam>({{"dtype", dtype}, {"inter", "256"}}));
    EXPECT_THROW(problem.args(RowOrder::sorted), Error) << "nobody sorted them yet";
    problem.sort_activations();
    problem.sort_activations();
    const MoeGemmArgs tokens = problem.args(), sorted = problem.args(RowOrder::sorted);
    EXPECT_EQ(sorted.out, tokens.out);
    expect_sorted(sorted, tokens);
    const auto first = row_of(tokens.x, 0, problem.shape.row_bytes());
    problem.replace_activations(1);
    EXPECT_NE(row_of(tokens.x, 0, problem.shape.row_bytes()), first);
    expect_sorted(sorted, tokens);
  }
}

TYPED_TEST(MoeGemmSortedOrder, ListsHaveNoPaddingAndFollowTheRouting) {
  TypeParam problem(*this->device_, moe_gemm_case<TypeParam>({}));
  problem.lay_out("listed");
  const auto lists = [&] {
    std::vector<std::vector<int32_t>> found;
    for (Tensor* tensor : problem.tensors()) {
      const bool is_list = tensor->name() == "expert_rows" || tensor->name() == "rows_by_expert";
      if (is_list || tensor->name() == "topk_ids")
        found.push_back(tensor->template download<int32_t>());
    }
    return found;
  };
  const auto expect_ids = [](const std::vector<std::vector<int32_t>>& of) {
    size_t place = 0;
    for (size_t e = 0; e < of[0].size(); ++e) {
      for (int32_t i = 0; i < of[0][e]; ++i) {
        EXPECT_EQ(of[2][static_cast<size_t>(of[1][place++])], static_cast<int32_t>(e));
      }
    }
  };
  const auto first = lists();
  ASSERT_EQ(first.size(), 3u);
  expect_ids(first);
  EXPECT_EQ(std::accumulate(first[0].begin(), first[0].end(), 0), problem.shape.rows());
  auto rows = first[1];
  std::ranges::sort(rows);
  for (int r = 0; r < problem.shape.rows(); ++r) EXPECT_EQ(rows[static_cast<size_t>(r)], r);
  problem.replace_activations(1);
  EXPECT_NE(lists()[1], first[1]);
  expect_ids(lists());
  EXPECT_THROW(problem.lay_out("by_moon"), Error);
}

Tensor& tensor_of(Problem& problem, const std::string& name) {
  for (Tensor* tensor : problem.tensors()) {
    if (tensor->name() == name) return *tensor;
  }
  throw Error(Exit::internal, "no tensor " + name);
}

/// Calls `see` with a row and its place, expert by expert from place expert * capacity on.
template <class P>
void for_masked_rows(P& problem, const std::function<void(int32_t row, int64_t place)>& see) {
  const auto counts = tensor_of(problem, "expert_rows").template download<int32_t>();
  const auto rows = tensor_of(problem, "rows_by_expert").template download<int32_t>();
  const int64_t capacity = tensor_of(problem, "masked x").shape()[1];
  size_t next = 0;
  for (size_t e = 0; e < counts.size(); ++e) {
    for (int32_t i = 0; i < counts[e]; ++i) {
      see(rows[next++], static_cast<int64_t>(e) * capacity + i);
    }
  }
  EXPECT_EQ(next, rows.size());
}

TYPED_TEST(MoeGemmSortedOrder, MaskedRowsStandWithTheirExpert) {
  const Case c = moe_gemm_case<TypeParam>({{"inter", "256"}});
  TypeParam problem(*this->device_, c);
  problem.lay_out("masked");
  const Tensor& x = tensor_of(problem, "masked x");
  EXPECT_EQ(x.shape(), (std::vector<int64_t>{8, kMaskedRows, problem.shape.k}));
  const auto expect_activations = [&] {
    const MoeGemmArgs tokens = problem.args();
    int64_t copied = 0;
    for_masked_rows(problem, [&](int32_t row, int64_t place) {
      const int bytes = problem.shape.row_bytes();
      EXPECT_EQ(row_of(x.data(), place, bytes), row_of(tokens.x, problem.shape.source(row), bytes));
      copied += bytes;
    });
    const auto all = row_of(x.data(), 0, static_cast<int64_t>(x.bytes()));
    // No code of the drawn values is the poison's, which is NaN.
    EXPECT_EQ(std::ranges::count(all, Tensor::kPoisonByte),
              static_cast<int64_t>(x.bytes()) - copied);
  };
  expect_activations();
  problem.replace_activations(1);
  expect_activations();
  problem.replace_activations(0);

  problem.poison();
  check::launch_host_variant(problem, c, "gather");
  const uint64_t hash = problem.check().hash;
  const uint16_t* right = problem.args().out;
  problem.lay_out("masked");
  EXPECT_FALSE(problem.check().accuracy[0].ok) << "nobody wrote these";
  auto* out = tensor_of(problem, "masked out").template data<uint16_t>();
  for_masked_rows(problem, [&](int32_t row, int64_t place) {
    std::copy_n(right + int64_t{row} * problem.shape.n, problem.shape.n,
                out + place * problem.shape.n);
  });
  const Checked checked = problem.check();
  EXPECT_TRUE(checked.accuracy[0].ok) << checked.accuracy[0].why;
  EXPECT_EQ(checked.hash, hash) << "of the routed rows alone, in one order";
  problem.corruptions().experts_swapped.apply();
  EXPECT_FALSE(problem.check().accuracy[0].ok);
}

TEST(MoeDownWithoutWeights, IsTheProductAlone) {
  const auto device = open_host_device();
  const Case weighted = moe_gemm_case<MoeDown>({});
  Case c = weighted;
  c.params["weighted"] = "0";
  EXPECT_EQ(weighted.get("weighted"), "1") << "the default, which no key names";
  MoeDown alone(*device, c), usual(*device, weighted);
  EXPECT_EQ(alone.args().routing_weights, nullptr);
  for (const char* variant : {"gather", "split_k2"}) {
    alone.poison();
    check::launch_host_variant(alone, c, variant);
    const Checked checked = alone.check();
    EXPECT_TRUE(checked.accuracy[0].ok) << checked.accuracy[0].why;
  }
  check::launch_host_variant(usual, weighted, "gather");
  std::copy_n(usual.args().out, usual.shape.rows() * usual.shape.n, alone.args().out);
  EXPECT_FALSE(alone.check().accuracy[0].ok) << "weights are 0.5 to 1.5";
  EXPECT_LT(alone.cost().read_bytes, usual.cost().read_bytes);
}

}  // namespace
}  // namespace moegate::moe_gemm
