// SPDX-License-Identifier: Apache-2.0
// The truth of the whole layer against its definition, by hand and on small numbers, what check()
// rejects, and the host variants against the truth through the verification that the harness uses.
#include "kernels/qmoe_layer/qmoe_layer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "harness/base/test_fixture.h"
#include "harness/kernel/routing.h"
#include "kernels/qmoe_layer/host_steps.h"
#include "kernels/qmoe_layer/qmoe_layer_testing.h"

namespace moegate::qmoe_layer {
namespace {

Accuracy accuracy(const QmoeLayer& problem) {
  return problem.check().accuracy[0];
}

/// One token, two of three experts, H = I = 2, one scale factor per column, SiLU; bf16.
QmoeLayerShape small_shape() {
  return QmoeLayerShape::of(qmoe_layer_case({{"tokens", "1"},
                                             {"experts", "3"},
                                             {"topk", "2"},
                                             {"hidden", "2"},
                                             {"inter", "2"},
                                             {"alpha", "1"},
                                             {"beta", "0"},
                                             {"limit", "0"},
                                             {"dtype", "bf16"}}));
}

TEST(QmoeLayerTruth, TheLargestLogitsChooseAndWeigh) {
  const float three = std::log(3.0f);
  const Assignment a = assigned(small_shape(), {three, -5, 0});
  EXPECT_EQ(a.experts, (std::vector<int32_t>{0, 2}));
  EXPECT_NEAR(a.weights[0], 0.75, 1e-7);
  EXPECT_NEAR(a.weights[1], 0.25, 1e-7);
  EXPECT_EQ(assigned(small_shape(), {1, 2, 1}).experts, (std::vector<int32_t>{1, 0}))
      << "of equal logits the lower expert's";
}

// Column 0 of fc1's first output reads x[0], column 1 x[1]; fc2 hands a on in expert 0 and swaps it
// in expert 2, whose bias is 1.
TEST(QmoeLayerTruth, RoundsBetweenTheParts) {
  QmoeLayerShape shape = small_shape();
  shape.fc1.has_bias = shape.fc2.has_bias = true;
  QmoeLayerInputs in;
  in.x = {1, 0.375f};
  in.assignment = {{0, 2}, {0.75, 0.25}};
  // Low nibble first, 8 is zero: gate and up of output 0 are x[0], x[1], of output 1 3 x[0], x[1].
  in.fc1[0] = in.fc1[2] = {{0x89, 0x98, 0x8b, 0x98}, {1, 1, 1, 1}, {0, 0, 0, 0}};
  in.fc2[0] = {{0x89, 0x98}, {1, 1}, {0, 0}};
  in.fc2[2] = {{0x98, 0x89}, {1, 1}, {1, 1}};
  const auto rounded = [](double x) { return bf16_to_float(float_to_bf16(static_cast<float>(x))); };
  const auto silu = [](double x) { return x / (1 + std::exp(-x)); };
  const double a0 = rounded(silu(1) * 0.375), a1 = rounded(silu(3) * 0.375);
  ASSERT_NE(a0, silu(1) * 0.375);
  ASSERT_NE(rounded(a1 + 1), a1 + 1);
  EXPECT_EQ(qmoe_layer_truth(shape, in), (std::vector<double>{0.75 * a0 + 0.25 * rounded(a1 + 1),
                                                              0.75 * a1 + 0.25 * rounded(a0 + 1)}));
}

/// The layer's definition without any of its roundings, straight from the operands.
std::vector<double> layer_without_roundings(const QmoeLayerArgs& args) {
  const int hidden = args.shape.hidden(), inter = args.shape.inter(),
            experts = args.shape.experts();
  const auto value = [&](const uint16_t* from, int64_t i) {
    return double{read_float(args.shape.dtype(), from, i)};
  };
  const auto column = [&](const qmoe::QmoeArgs& product, int e, int n, const auto& x) {
    const qmoe::QmoeShape& s = product.shape;
    const int64_t at = int64_t{e} * s.n + n;
    double sum = product.bias ? value(product.bias, at) : 0;
    for (int k = 0; k < s.k; ++k) {
      const int byte = product.weights[(at * s.k + k) / 2];
      sum += ((k % 2 == 0 ? byte & 15 : byte >> 4) - 8) *
             value(product.scales, at * (s.k / s.block) + k / s.block) * x(k);
    }
    return sum;
  };
  std::vector<double> out;
  for (int t = 0; t < args.shape.tokens(); ++t) {
    std::vector<std::pair<double, int>> order;
    for (int e = 0; e < experts; ++e) order.emplace_back(-value(args.logits, t * experts + e), e);
    std::sort(order.begin(), order.end());
    order.resize(static_cast<size_t>(args.shape.topk()));
    double all = 0;
    for (const auto& [minus, e] : order) all += std::exp(-minus);
    std::vector<double> sum(static_cast<size_t>(hidden));
    for (const auto& [minus, e] : order) {
      std::vector<double> a;
      const auto x = [&](int k) { return value(args.fc1.x, int64_t{t} * hidden + k); };
      for (int i = 0; i < inter; ++i) {
        const double limit = args.fc1.shape.limit;
        const double gate = std::min(column(args.fc1, e, 2 * i, x), limit);
        const double up = std::clamp(column(args.fc1, e, 2 * i + 1, x), -limit, limit);
        a.push_back(gate / (1 + std::exp(-args.fc1.shape.alpha * gate)) *
                    (up + args.fc1.shape.beta));
      }
      const auto activation = [&](int k) { return a[static_cast<size_t>(k)]; };
      for (int n = 0; n < hidden; ++n) {
        sum[static_cast<size_t>(n)] += std::exp(-minus) / all * column(args.fc2, e, n, activation);
      }
    }
    out.insert(out.end(), sum.begin(), sum.end());
  }
  return out;
}

TEST(QmoeLayer, ComputesTheLayerUpToItsRoundings) {
  const auto device = open_host_device();
  const std::vector<Params> cases = {{},
                                     {{"bias", "1"}, {"scale-block", "32"}},
                                     {{"alpha", "1"}, {"beta", "0"}, {"limit", "0"}},
                                     {{"bias", "1"}, {"values", "edges"}, {"scale-block", "64"}}};
  for (const Params& params : cases) {
    const Case c = qmoe_layer_case(params);
    QmoeLayer problem(*device, c);
    check::launch_host_variant(problem, c, "chain");
    ASSERT_TRUE(accuracy(problem).ok) << accuracy(problem).why;
    const auto expected = layer_without_roundings(problem.args());
    double error = 0, size = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      error += std::pow(f16_to_float(problem.args().out[i]) - expected[i], 2);
      size += expected[i] * expected[i];
    }
    EXPECT_NEAR(std::sqrt(error / size), 3e-4, 2e-4) << c.key() << ": three roundings to fp16";
  }
}

TEST(QmoeLayer, LogitsDecideAsTheRoutingSays) {
  const auto device = open_host_device();
  for (const char* routing : {"uniform", "zipf:1.2", "hot:2:1", "balanced"}) {
    const Case c = qmoe_layer_case({{"tokens", "20"}, {"routing", routing}});
    QmoeLayer problem(*device, c);
    const QmoeLayerShape& s = problem.shape;
    std::vector<float> logits;
    for (int i = 0; i < s.tokens() * s.experts(); ++i) {
      logits.push_back(f16_to_float(problem.args().logits[i]));
    }
    EXPECT_EQ(assigned(s, logits).experts,
              routed_experts(routing, {s.tokens(), s.experts(), s.topk()}, 1))
        << routing;
  }
}

// Among logits at the edges some that are not chosen equal the last one that is.
TEST(QmoeLayer, EdgesHaveTiesThatTheLowerExpertWins) {
  const auto device = open_host_device();
  QmoeLayer problem(*device, qmoe_layer_case({{"tokens", "40"}, {"values", "edges"}}));
  const QmoeLayerShape& s = problem.shape;
  int ties = 0;
  for (int t = 0; t < s.tokens(); ++t) {
    std::vector<float> row;
    for (int e = 0; e < s.experts(); ++e) {
      row.push_back(f16_to_float(problem.args().logits[t * s.experts() + e]));
    }
    std::sort(row.begin(), row.end(), std::greater<>());
    const auto k = static_cast<size_t>(s.topk());
    ties += row[k - 1] == row[k];
  }
  EXPECT_GT(ties, 5);
}

TEST(QmoeLayer, RejectsFaults) {
  const auto device = open_host_device();
  for (const char* tokens : {"1", "40"}) {
    for (const char* dtype : {"fp16", "bf16"}) {
      const Case c = qmoe_layer_case(
          {{"tokens", tokens}, {"dtype", dtype}, {"scale-block", "32"}, {"routing", "zipf:0.67"}});
      QmoeLayer problem(*device, c);
      problem.check_with({QmoeLayer::kSumsInHalf, QmoeLayer::kRoundedInHalf});  // the widest
      const Corruptions corruptions = problem.corruptions();
      for (const Corruption* corruption : {&corruptions.experts_swapped, &corruptions.token_dropped,
                                           &corruptions.scales_transposed}) {
        check::launch_host_variant(problem, c, "chain");
        EXPECT_TRUE(accuracy(problem).ok) << accuracy(problem).why;
        corruption->apply();
        EXPECT_FALSE(accuracy(problem).ok) << c.key();
      }
    }
  }
}

TEST(QmoeLayer, AFaultThatChangesNothingLeavesTheOutput) {
  const auto device = open_host_device();
  const Case c = qmoe_layer_case({{"topk", "1"}, {"routing", "hot:1:1"}});
  QmoeLayer problem(*device, c);
  check::launch_host_variant(problem, c, "chain");
  const uint64_t hash = problem.check().hash;
  problem.corruptions().experts_swapped.apply();
  problem.corruptions().scales_transposed.apply();
  EXPECT_EQ(problem.check().hash, hash) << "one expert, one scale factor per column";
  problem.corruptions().token_dropped.apply();
  EXPECT_NE(problem.check().hash, hash);
}

TEST(QmoeLayer, CostCountsTheOperandsOfActiveExpertsOnce) {
  const auto device = open_host_device();
  const QmoeLayer problem(*device, qmoe_layer_case({{"tokens", "20"},
                                                    {"topk", "2"},
                                                    {"routing", "hot:2:1"},
                                                    {"bias", "1"},
                                                    {"scale-block", "32"}}));
  EXPECT_EQ(problem.facts()[0].value, 2) << "active experts";
  const Cost cost = problem.cost();
  EXPECT_EQ(cost.flops, 2.0 * 40 * 3 * 192 * 64);
  const double fc1 = 128 * (192 / 2 + 2 * 192 / 32 + 2), fc2 = 192 * (64 / 2 + 2 * 64 / 32 + 2);
  EXPECT_EQ(cost.read_bytes, 2 * (fc1 + fc2) + 2 * 20 * (192 + 8));
  EXPECT_EQ(cost.write_bytes, 2 * 20 * 192);
}

TEST(QmoeLayer, ParametersThatDoNotFitAreNamed) {
  const auto message = [](const Params& params) {
    return test::refusal_of([&] { QmoeLayer::validate(qmoe_layer_case(params)); });
  };
  using ::testing::IsSubstring;
  EXPECT_EQ(message({}), "accepted");
  EXPECT_PRED_FORMAT2(IsSubstring, "dtype", message({{"dtype", "fp32"}}));
  EXPECT_PRED_FORMAT2(IsSubstring, "scale-block = 128 does not divide K = 192",
                      message({{"scale-block", "128"}}));
  EXPECT_PRED_FORMAT2(IsSubstring, "scale-block = 64 does not divide K = 96",
                      message({{"scale-block", "64"}, {"inter", "96"}}));
  EXPECT_PRED_FORMAT2(IsSubstring, "hidden = 191 is odd", message({{"hidden", "191"}}));
  EXPECT_PRED_FORMAT2(IsSubstring, "inter = 63 is odd", message({{"inter", "63"}}));
  EXPECT_PRED_FORMAT2(IsSubstring, "topk", message({{"topk", "9"}}));
  EXPECT_PRED_FORMAT2(IsSubstring, "routing", message({{"routing", "zipf"}}));
}

TEST(QmoeLayerSteps, BuffersAreAlignedAndApart) {
  const QmoeLayerShape shape = QmoeLayerShape::of(qmoe_layer_case({}));
  alignas(256) std::byte origin[1];
  const Buffers b = buffers_at(shape, origin);
  const std::vector<const void*> starts = {b.ids,
                                           b.weights,
                                           b.next,
                                           b.routed.row_source,
                                           b.routed.row_expert,
                                           b.routed.row_own,
                                           b.routed.token_rows,
                                           b.routed.token_weights,
                                           b.a,
                                           b.y,
                                           b.end};
  const int64_t rows = shape.rows(), ids = rows * 4;
  const std::vector<int64_t> bytes = {ids, ids, 8 * 4, ids,           ids,
                                      ids, ids, ids,   rows * 64 * 2, rows * 192 * 2};
  const auto at = [&](const void* p) {
    return reinterpret_cast<uintptr_t>(p) - reinterpret_cast<uintptr_t>(origin);
  };
  for (size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_EQ(at(starts[i]) % 256, 0u) << i;
    EXPECT_GE(at(starts[i + 1]), at(starts[i]) + static_cast<size_t>(bytes[i])) << i;
  }
  EXPECT_EQ(at(b.end), buffer_bytes(shape));
}

TEST(QmoeLayerSteps, RowsAreSortedByExpertThenTokenAndATokensAscend) {
  const auto device = open_host_device();
  const Case c = qmoe_layer_case({{"tokens", "40"}});
  QmoeLayer problem(*device, c);
  problem.reserve_workspace(buffer_bytes(problem.shape));
  const QmoeLayerArgs args = problem.args();
  const Buffers b = buffers_at(args.shape, problem.workspace());
  select_experts(args, b);
  sort_rows(args, b);
  const Routed& routed = b.routed;
  const int rows = args.shape.rows(), k = args.shape.topk();
  for (int r = 1; r < rows; ++r) {
    EXPECT_LT(std::pair(routed.row_expert[r - 1], routed.row_source[r - 1]),
              std::pair(routed.row_expert[r], routed.row_source[r]));
  }
  for (int i = 0; i < rows; ++i) {
    EXPECT_EQ(routed.row_own[i], i);
    EXPECT_EQ(routed.row_source[routed.token_rows[i]], i / k);
    if (i % k > 0) {
      EXPECT_LT(routed.token_rows[i - 1], routed.token_rows[i]);
    }
    const int32_t expert = routed.row_expert[routed.token_rows[i]];
    const auto* first = b.ids + i / k * k;
    const auto slot = std::find(first, first + k, expert) - first;
    EXPECT_EQ(routed.token_weights[i], b.weights[i / k * k + slot]);
  }
}

// Sizes that are no multiple of a vector or a panel, one expert with more rows than a run holds,
// more experts than any other kernel of a row takes.
TEST(QmoeLayer, HostVariantsAgreeWithTheTruth) {
  const auto device = open_host_device();
  const std::vector<Params> cases = {
      {},
      {{"tokens", "1"}, {"topk", "1"}, {"hidden", "2"}, {"inter", "2"}},
      {{"hidden", "70"}, {"inter", "26"}, {"bias", "1"}, {"dtype", "bf16"}},
      {{"tokens", "40"}, {"routing", "hot:3:1"}, {"scale-block", "64"}, {"dtype", "bf16"}},
      {{"tokens", "9"}, {"values", "edges"}, {"bias", "1"}, {"scale-block", "32"}},
      {{"tokens", "33"}, {"experts", "600"}, {"routing", "zipf:1.2"}, {"hidden", "66"}},
      {{"hidden", "520"}, {"inter", "264"}, {"tokens", "3"}, {"alpha", "1"}, {"limit", "0"}}};
  for (const Params& params : cases) {
    Bench bench(*device, qmoe_layer_case(params));
    for (const Variant& v : all_variants()) {
      if (v.op != QmoeLayer::kOp || v.backend != Backend::host) continue;
      const Result result = bench.verify(v);
      EXPECT_EQ(result.status, Status::ok) << v.name << ": " << result.why;
    }
  }
}

}  // namespace
}  // namespace moegate::qmoe_layer
