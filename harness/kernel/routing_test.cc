// SPDX-License-Identifier: Apache-2.0
#include "harness/kernel/routing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "harness/base/test_fixture.h"
#include "harness/kernel/dtype.h"

namespace moegate::test {
namespace {

constexpr RoutingShape kR1{.tokens = 1024, .experts = 256, .topk = 8};

/// Top-k ids of every row, ties to the lower index, after `transform` of each score.
template <class F>
std::vector<int32_t> top_ids(const std::vector<double>& scores, const RoutingShape& shape,
                             F transform) {
  std::vector<int32_t> ids;
  const auto width = static_cast<size_t>(shape.experts);
  for (size_t start = 0; start < scores.size(); start += width) {
    std::vector<double> row(width);
    for (size_t e = 0; e < width; ++e) row[e] = transform(scores[start + e]);
    std::vector<int32_t> order(width);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return row[static_cast<size_t>(a)] > row[static_cast<size_t>(b)];
    });
    ids.insert(ids.end(), order.begin(), order.begin() + shape.topk);
  }
  return ids;
}

std::vector<int32_t> ids_of(const std::string& spec, const RoutingShape& shape, uint64_t seed = 1) {
  return top_ids(routing_scores(spec, shape, seed), shape, [](double x) { return x; });
}

/// Coefficient of variation of the experts' loads.
double load_cv(const std::vector<int32_t>& ids, int experts) {
  std::vector<double> loads(static_cast<size_t>(experts));
  for (const int32_t id : ids) ++loads[static_cast<size_t>(id)];
  const double mean = static_cast<double>(ids.size()) / experts;
  double sum = 0;
  for (const double load : loads) sum += (load - mean) * (load - mean);
  return std::sqrt(sum / experts) / mean;
}

std::string message_of(const std::string& spec, const RoutingShape& shape) {
  return refusal_of([&] { routing_scores(spec, shape, 1); });
}

void expect_says(const std::string& message, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(message.find(part), std::string::npos) << "'" << part << "' in: " << message;
  }
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

double sigmoid_float(double x) {
  return 1.0f / (1.0f + std::exp(-static_cast<float>(x)));
}
double through_bf16(double x) {
  return bf16_to_float(float_to_bf16(static_cast<float>(x)));
}
double through_f16(double x) {
  return f16_to_float(float_to_f16(static_cast<float>(x)));
}

TEST(Routing, SeedDecides) {
  for (const std::string spec : {"uniform", "zipf:0.67", "hot:4:0.5", "balanced"}) {
    const RoutingShape shape{16, 32, 4};
    EXPECT_EQ(routing_scores(spec, shape, 7), routing_scores(spec, shape, 7)) << spec;
    EXPECT_NE(routing_scores(spec, shape, 7), routing_scores(spec, shape, 8)) << spec;
  }
}

TEST(Routing, ScoresStayWhereASigmoidTellsThemApart) {
  for (const std::string spec :
       {"uniform", "zipf:0.67", "zipf:3", "hot:8:1", "hot:1:0.5", "balanced", "shared:hot:8:1"}) {
    for (const double x : routing_scores(spec, kR1, 1)) ASSERT_LE(std::abs(x), 8) << spec;
  }
}

TEST(Routing, UniformMatchesTheDistinctExpertFormula) {
  // In expectation E (1 - (1 - k/E)^T) distinct experts.
  const RoutingShape shape{16, 256, 8};
  double active = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    active += skew_of(ids_of("uniform", shape, seed), 256).active_experts / 20.0;
  }
  EXPECT_NEAR(active, 256 * (1 - std::pow(1 - 8.0 / 256, 16)), 4);
  // Loads are binomial: CV = sqrt((1 - k/E) / (T k/E)) = 0.174.
  EXPECT_NEAR(load_cv(ids_of("uniform", kR1), 256), 0.174, 0.03);
}

TEST(Routing, ZipfReproducesTheSkewOfDeepSeekR1) {
  // Measured on 32 GPUs by TensorRT-LLM (tech blog 4): CV 1.28 and max/mean 11.9.
  for (const uint64_t seed : {1, 2, 3, 4, 5}) {
    const std::vector<int32_t> ids = ids_of("zipf:0.67", kR1, seed);
    const double skew = skew_of(ids, 256).max_over_mean;
    EXPECT_GT(skew, 10) << seed;
    EXPECT_LT(skew, 14.5) << seed;
    EXPECT_NEAR(load_cv(ids, 256), 1.28, 0.2) << seed;
  }
}

TEST(Routing, ZipfPermutesRanksBySeed) {
  const auto busiest = [](uint64_t seed) {
    std::vector<int> loads(256);
    for (const int32_t id : ids_of("zipf:1", {256, 256, 4}, seed)) ++loads[static_cast<size_t>(id)];
    return std::max_element(loads.begin(), loads.end()) - loads.begin();
  };
  std::set<std::ptrdiff_t> experts;
  for (uint64_t seed = 1; seed <= 5; ++seed) experts.insert(busiest(seed));
  EXPECT_GE(experts.size(), 4u);
}

TEST(Routing, ZipfZeroIsUniform) {
  EXPECT_EQ(ids_of("zipf:0", kR1), ids_of("uniform", kR1));
}

TEST(Routing, BalancedIsExact) {
  for (const RoutingShape shape : {RoutingShape{256, 256, 8},
                                   {120, 60, 16},
                                   {32, 256, 8},
                                   {257, 257, 16},
                                   {5, 5, 4},
                                   {7, 7, 7},
                                   {9, 3, 1}}) {
    const std::vector<int32_t> ids = ids_of("balanced", shape);
    const Skew skew = skew_of(ids, shape.experts);
    EXPECT_EQ(skew.active_experts, shape.experts) << shape.experts;
    EXPECT_EQ(skew.max_over_mean, 1) << shape.experts;
    const int stride = shape.experts / shape.topk;
    for (int t = 0; t < shape.tokens; ++t) {
      for (int i = 0; i < shape.topk; ++i) {
        ASSERT_EQ(ids[static_cast<size_t>(t * shape.topk + i)], (t + i * stride) % shape.experts);
      }
    }
  }
}

TEST(Routing, HotExpertsTakeTheirFractionOfTheTokens) {
  const RoutingShape shape{1000, 64, 4};
  const std::vector<int32_t> ids = ids_of("hot:4:0.3", shape);
  std::map<std::set<int32_t>, int> sets;
  for (size_t t = 0; t < 1000; ++t) {
    ++sets[std::set<int32_t>(ids.begin() + static_cast<std::ptrdiff_t>(4 * t),
                             ids.begin() + static_cast<std::ptrdiff_t>(4 * t + 4))];
  }
  const auto commonest = std::max_element(
      sets.begin(), sets.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  EXPECT_NEAR(commonest->second, 300, 1);
}

TEST(Routing, HotForEveryTokenIsOneExpertSet) {
  for (const int k : {1, 4, 16}) {
    const RoutingShape shape{512, 257, k};
    const std::vector<int32_t> ids = ids_of("hot:" + std::to_string(k) + ":1", shape);
    EXPECT_EQ(skew_of(ids, 257).active_experts, k);
  }
  // With fewer hot experts than k, each token has them and others.
  const std::vector<int32_t> ids = ids_of("hot:1:1", {512, 64, 4});
  EXPECT_EQ(std::count(ids.begin(), ids.end(), ids[0]), 512);
  EXPECT_GT(skew_of(ids, 64).active_experts, 60);
}

TEST(Routing, HotForNoTokenIsUniform) {
  EXPECT_EQ(ids_of("hot:4:0", kR1), ids_of("uniform", kR1));
}

TEST(Routing, ExpertsAreTheTopOfTheScores) {
  for (const std::string spec : {"uniform", "balanced", "zipf:0.67", "hot:2:0.5"}) {
    EXPECT_EQ(routed_experts(spec, {65, 60, 3}, 3), ids_of(spec, {65, 60, 3}, 3)) << spec;
  }
}

TEST(Routing, RefusesBadSpecs) {
  for (const std::string spec :
       {"",        "unifrom",  "uniform:1", "balanced:2", "zipf",     "zipf:",
        "zipf:x",  "zipf:-1",  "zipf:nan",  "zipf:11",    "zipf:1:2", "hot:1",
        "hot:0:1", "hot:65:1", "hot:1.5:1", "hot:1:1.1",  "hot:1:-1", "hot:1:1:1",
        "replay",  "replay:",  "shared",    "load",       "load:"}) {
    expect_says(message_of(spec, {8, 64, 4}), {"routing '" + spec + "'", "use uniform, balanced"});
  }
}

TEST(Routing, RefusesBadShapes) {
  expect_says(message_of("uniform", {0, 8, 2}), {"tokens = 0"});
  expect_says(message_of("uniform", {1, 8, 9}), {"experts = 8", "topk = 9"});
  expect_says(message_of("uniform", {1, 8, 0}), {"topk = 0"});
}

TEST(Routing, SkewOfKnownLoads) {
  const std::vector<int32_t> ids = {0, 1, 0, 2, 0, 1, 0, 3};
  EXPECT_EQ(skew_of(ids, 8).active_experts, 4);
  EXPECT_EQ(skew_of(ids, 8).max_over_mean, 4);
  EXPECT_EQ(skew_of({}, 8).active_experts, 0);
  EXPECT_EQ(skew_of({}, 8).max_over_mean, 0);
}

class Replay : public testing::Test {
 protected:
  void write(const std::vector<int32_t>& ids, size_t k) {
    std::string text = "{'descr': '<i4', 'fortran_order': False, 'shape': (" +
                       std::to_string(ids.size() / k) + ", " + std::to_string(k) + "), }";
    text.resize(117, ' ');
    std::ofstream out(path_, std::ios::binary);
    out << "\x93NUMPY\x01" << '\0' << 'v' << '\0' << text << '\n';  // 'v' = 118 header bytes
    for (const int32_t id : ids) {
      for (int i = 0; i < 4; ++i) out << static_cast<char>(static_cast<uint32_t>(id) >> (8 * i));
    }
  }
  std::string spec() const { return "replay:" + path_; }

  ScratchFolder folder_;
  const std::string path_ = (folder_ / "ids.npy").string();
};

TEST_F(Replay, GivesExactlyTheRecordedIds) {
  for (const int k : {1, 8, 16}) {
    const RoutingShape shape{200, 256, k};
    const std::vector<int32_t> recorded = ids_of("zipf:0.67", shape, 42);
    write(recorded, static_cast<size_t>(k));
    const std::vector<double> scores = routing_scores(spec(), shape, 1);
    EXPECT_EQ(top_ids(scores, shape, [](double x) { return x; }), recorded);
    EXPECT_EQ(top_ids(scores, shape, through_bf16), recorded);
    EXPECT_EQ(top_ids(scores, shape, through_f16), recorded);
    EXPECT_EQ(top_ids(scores, shape, sigmoid_float), recorded);
    EXPECT_EQ(top_ids(scores, shape, [](double x) { return sigmoid_float(through_bf16(x)); }),
              recorded);
  }
}

TEST_F(Replay, HasClearMargins) {
  const RoutingShape shape{100, 64, 16};
  write(ids_of("uniform", shape, 3), 16);
  std::vector<double> scores = routing_scores(spec(), shape, 1);
  for (size_t t = 0; t < 100; ++t) {
    const auto row = scores.begin() + static_cast<std::ptrdiff_t>(64 * t);
    std::sort(row, row + 64, std::greater<>());
    for (int i = 0; i < 16; ++i) ASSERT_GE(row[i] - row[i + 1], 0.12) << t << " " << i;
    ASSERT_GE(row[15] - row[16], 2);
    ASSERT_LE(std::max(std::abs(row[0]), std::abs(row[63])), 8);
  }
}

TEST_F(Replay, ReadsOnlyTheRowsOfTheCase) {
  write({1, 2, 3, 4, 99, 99}, 2);
  EXPECT_EQ(ids_of(spec(), {2, 8, 2}), (std::vector<int32_t>{1, 2, 3, 4}));
}

TEST_F(Replay, RefusesOtherTopk) {
  write({1, 2, 3, 4, 5, 6}, 2);
  expect_says(message_of(spec(), {3, 8, 4}), {path_, "shape [3, 2]", "topk = 4"});
}

TEST_F(Replay, RefusesTooFewRows) {
  write({1, 2, 3, 4, 5, 6}, 2);
  expect_says(message_of(spec(), {4, 8, 2}), {path_, "3 rows", "tokens = 4"});
}

TEST_F(Replay, RefusesIdsOutOfRange) {
  write({1, 2, 3, 8}, 2);
  expect_says(message_of(spec(), {2, 8, 2}), {path_, "row 1", "id 8", "[0, 8)"});
  write({1, -1, 3, 4}, 2);
  expect_says(message_of(spec(), {2, 8, 2}), {path_, "row 0", "id -1"});
}

TEST_F(Replay, RefusesAnExpertTwice) {
  write({1, 2, 3, 3}, 2);
  expect_says(message_of(spec(), {2, 8, 2}), {path_, "row 1", "id 3", "twice"});
}

TEST_F(Replay, RefusesMissingFile) {
  expect_says(message_of("replay:/nonexistent/a:b.npy", {2, 8, 2}),
              {"/nonexistent/a:b.npy", "does not exist"});
}

}  // namespace
}  // namespace moegate::test
