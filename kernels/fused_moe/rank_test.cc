// SPDX-License-Identifier: Apache-2.0
// Ranks of expert parallelism (harness/kernel/expert_rank.h): what they compute together is what
// the layer computes, operator by operator, and a row of another rank shows.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "harness/kernel/controls.h"
#include "kernels/fused_moe/fused_moe_testing.h"
#include "kernels/moe_align/moe_align_testing.h"
#include "kernels/moe_gemm/moe_gemm_testing.h"

namespace moegate {
namespace {

using check::Params;

class Ranks : public testing::Test {
 protected:
  /// 33 tokens; of four ranks the last ones have few rows, or none.
  static Params of_rank(const std::string& rank, const std::string& routing = "hot:3:0.9") {
    return {{"tokens", "33"}, {"routing", routing}, {"rank", rank}};
  }
  static std::vector<std::string> ranks(int n) {
    std::vector<std::string> all;
    for (int r = 0; r < n; ++r) all.push_back(fmt::format("{}/{}", r, n));
    return all;
  }
  static void launch(Problem& problem, const Case& c) {
    check::launch_host_variant(problem, c, find_op(c.op).yardstick);
    for (const Accuracy& a : problem.check().accuracy) ASSERT_TRUE(a.ok) << c.key() << a.why;
  }
  /// The operator's host variants and negative controls, in a layer of 8 experts with these of the
  /// parameters that the operator has. Returns its first fact.
  double expect_right(const std::string& op, Params params, bool unseen) {
    params.merge(Params{{"experts", "8"}, {"hidden", "256"}, {"inter", "128"}});
    Case c = check::case_of(op, {});
    for (const auto& [name, value] : params) {
      if (c.params.contains(name)) c.params[name] = value;
    }
    Bench bench(*device_, c);
    for (const Variant& v : all_variants()) {
      if (v.op != op || v.backend != Backend::host || check::is_another_name(v)) continue;
      Result result = bench.verify(v);
      if (result.status == Status::ok) bench.control(result);
      if (unseen && result.status == Status::ok) bench.check_unseen(v, result);
      EXPECT_EQ(result.status, Status::ok) << c.key() << " " << v.name << ": " << result.why;
    }
    for (const Fact& fact : bench.facts()) {
      EXPECT_TRUE(std::isfinite(fact.value)) << c.key() << " " << fact.name;
    }
    return bench.facts()[0].value;
  }

  std::unique_ptr<Device> device_ = open_host_device();
};

TEST_F(Ranks, TheirOutputsAddUpToTheLayers) {
  using fused_moe::FusedMoe;
  const auto outputs = [&](const Params& params) {
    const Case c = fused_moe::fused_moe_case(params);
    FusedMoe problem(*device_, c);
    launch(problem, c);
    std::vector<double> values;
    for (int i = 0; i < problem.shape.tokens * problem.shape.hidden; ++i) {
      values.push_back(bf16_to_float(problem.args().out[i]));
    }
    return values;
  };
  const auto whole = outputs(of_rank("0/1"));
  for (const int n : {2, 4, 8}) {
    std::vector<double> sum(whole.size());
    for (const std::string& rank : ranks(n)) {
      const auto part = outputs(of_rank(rank));
      std::transform(sum.begin(), sum.end(), part.begin(), sum.begin(), std::plus<>());
    }
    double error = 0, size = 0;
    for (size_t i = 0; i < whole.size(); ++i) {
      error += std::pow(sum[i] - whole[i], 2);
      size += whole[i] * whole[i];
    }
    // Every rank's part is rounded to bf16 once.
    EXPECT_LT(std::sqrt(error / size), 4e-3) << n;
  }
}

TEST_F(Ranks, TheirBlocksAreTheLayers) {
  using moe_align::MoeAlign;
  using Blocks = std::vector<std::pair<int, std::vector<int32_t>>>;  // expert of the layer, rows
  const auto blocks = [&](const std::string& rank) {
    Case c = moe_align::moe_align_case(of_rank(rank));
    MoeAlign problem(*device_, c);
    launch(problem, c);
    const auto args = problem.args();
    Blocks all;
    for (int b = 0; b < *args.num_tokens_post_padded / problem.shape.block; ++b) {
      const int32_t* rows = args.sorted_token_ids + b * problem.shape.block;
      all.emplace_back(ExpertRank::of(c).first() + args.expert_ids[b],
                       std::vector(rows, rows + problem.shape.block));
    }
    return all;
  };
  for (const int n : {2, 4, 8}) {
    Blocks together;
    for (const std::string& rank : ranks(n)) {
      const Blocks its = blocks(rank);
      together.insert(together.end(), its.begin(), its.end());
    }
    EXPECT_EQ(together, blocks("0/1")) << n;
  }
}

template <class P>
class RanksOfProducts : public Ranks {};
using Products = testing::Types<moe_gemm::MoeGateUp, moe_gemm::MoeDown>;
TYPED_TEST_SUITE(RanksOfProducts, Products);

TYPED_TEST(RanksOfProducts, TheirRowsAreTheLayers) {
  for (const char* dtype : {"fp8", "bf16"}) {
    std::vector<uint16_t> whole, together;
    double flops = 0, rows = 0, expected = 0;
    for (const char* rank : {"0/1", "0/4", "1/4", "2/4", "3/4"}) {
      Params params = this->of_rank(rank);
      params["dtype"] = dtype;
      const Case c = moe_gemm::moe_gemm_case<TypeParam>(params);
      TypeParam problem(*this->device_, c);
      this->launch(problem, c);
      const auto args = problem.args();
      const auto n = static_cast<size_t>(problem.shape.n);
      if (whole.empty()) {
        whole.assign(args.out, args.out + static_cast<size_t>(problem.shape.rows()) * n);
        together.resize(whole.size());
        expected = problem.cost().flops;
        continue;
      }
      for (int i = 0; i < *args.padded_rows; ++i) {
        const int32_t r = args.sorted_token_ids[i];
        if (r >= problem.shape.rows()) continue;
        std::copy_n(args.out + static_cast<size_t>(r) * n, n,
                    &together[static_cast<size_t>(r) * n]);
        ++rows;
      }
      flops += problem.cost().flops;
    }
    EXPECT_EQ(rows, 99);
    EXPECT_EQ(together, whole) << dtype;
    EXPECT_EQ(flops, expected);
  }
}

TYPED_TEST(RanksOfProducts, RowsOfOthersAreNotLookedAtButTheirsAre) {
  const Case c = moe_gemm::moe_gemm_case<TypeParam>(this->of_rank("1/2", "uniform"));
  for (const double most : {5e8, 0.0}) {  // whole, and a sample
    TypeParam problem(*this->device_, c, most);
    this->launch(problem, c);
    const uint64_t hash = problem.check().hash;
    const auto args = problem.args();
    const int own = args.sorted_token_ids[0];
    int other = 0;
    while (std::count(args.sorted_token_ids, args.sorted_token_ids + *args.padded_rows, other) >
           0) {
      ++other;
    }
    const auto spoil = [&](int row) {
      args.out[int64_t{row} * problem.shape.n + 5] = 0x7f80;  // infinite
      return problem.check();
    };
    const Checked foreign = spoil(other);
    EXPECT_TRUE(foreign.accuracy[0].ok) << foreign.accuracy[0].why;
    EXPECT_EQ(foreign.hash, hash);
    const Checked changed = spoil(own);
    EXPECT_FALSE(changed.accuracy[0].ok);
    EXPECT_NE(changed.hash, hash);
  }
}

// Host variants of every kind, in token and in sorted order, whole and of the busiest rank.
TEST_F(Ranks, HostVariantsAgreeWithTheTruth) {
  for (const char* op : {"moe_align", "moe_gate_up", "moe_down", "fused_moe"}) {
    for (const char* rank : {"1/2", "3/4", "busiest/8"}) {
      Params params = of_rank(rank, "zipf:1.2");
      params["topk"] = "3";
      if (std::string(op) == "moe_align") params["block"] = "16";
      expect_right(op, params, false);
    }
  }
}

// Of 8 experts the hot one has all rows.
TEST_F(Ranks, ARankWithoutRowsComputesNothing) {
  for (const char* op : {"moe_align", "moe_gate_up", "moe_down", "fused_moe"}) {
    int without = 0;
    for (const std::string& rank : ranks(4)) {
      Params params = {{"tokens", "9"}, {"topk", "1"}, {"block", "16"}};
      params.merge(of_rank(rank, "hot:1:1"));
      without += expect_right(op, params, true) == 0;
    }
    EXPECT_EQ(without, 3) << op;
  }
}

// What a kernel would leave that forgets whose expert is whose: the whole layer's sum.
TEST_F(Ranks, RowsOfOthersInTheSumAreWrong) {
  using fused_moe::FusedMoe;
  const Case all = fused_moe::fused_moe_case(of_rank("0/1", "uniform"));
  const Case part = fused_moe::fused_moe_case(of_rank("1/2", "uniform"));
  FusedMoe whole(*device_, all), rank(*device_, part);
  launch(whole, all);
  launch(rank, part);
  const auto elements = static_cast<size_t>(whole.shape.tokens) * 256;
  std::copy_n(whole.args().out, elements, rank.args().out);
  EXPECT_FALSE(rank.check().accuracy[0].ok);
  const size_t token = 256;  // one row of another rank in one token alone
  launch(rank, part);
  std::copy_n(whole.args().out + token, token, rank.args().out + token);
  const Accuracy a = rank.check().accuracy[0];
  EXPECT_FALSE(a.ok);
  EXPECT_NE(a.why.find("token 1"), std::string::npos) << a.why;
}

TEST_F(Ranks, AKernelThatTakesARowOfAnotherRankIsWrong) {
  const Case c = fused_moe::fused_moe_case(of_rank("1/2", "uniform"));
  Bench bench(*device_, c);
  Variant greedy = find_variant(c.op, Backend::host, "chain");
  EXPECT_EQ(bench.verify(greedy).status, Status::ok);
  greedy.name = "greedy";
  greedy.launch = [right = greedy.launch](Problem& problem, const Launch& where) {
    const auto args = static_cast<fused_moe::FusedMoe&>(problem).args();
    auto* ids = const_cast<int32_t*>(args.topk_ids);
    int32_t* foreign = std::find(ids, ids + args.shape.rows(), -1);
    *foreign = 0;
    right(problem, where);
    *foreign = -1;
  };
  const Result result = bench.verify(greedy);
  EXPECT_EQ(result.status, Status::wrong) << result.why;
}

TEST_F(Ranks, NumbersThatDoNotDivideAreRefused) {
  EXPECT_THROW(fused_moe::FusedMoe::validate(fused_moe::fused_moe_case({{"rank", "0/3"}})), Error);
  EXPECT_THROW(moe_align::MoeAlign::validate(moe_align::moe_align_case({{"rank", "8/8"}})), Error);
  const auto c = moe_gemm::moe_gemm_case<moe_gemm::MoeDown>({{"rank", "busiest/4"}});
  EXPECT_NO_THROW(moe_gemm::MoeDown::validate(c));
  EXPECT_EQ(moe_gemm::MoeDown::shape_of(c).experts, 2);
}

}  // namespace
}  // namespace moegate
