// SPDX-License-Identifier: Apache-2.0
// The truth of the whole layer against its definition on small numbers, what check() takes and
// rejects, and the host variants against the truth through the verification that the harness uses.
#include "kernels/fused_moe/fused_moe.h"

#include <gtest/gtest.h>

#include <cmath>

#include "harness/device/open.h"
#include "harness/worker/measure.h"
#include "kernels/fused_moe/fused_moe_testing.h"
#include "kernels/fused_moe/steps.h"

namespace moegate::fused_moe {
namespace {

void run(FusedMoe& problem, const Case& c, const std::string& name = "chain") {
  const Variant& variant = find_variant(c.op, Backend::host, name);
  const DeviceFacts& facts = problem.device().facts();
  problem.reserve_workspace(variant.workspace(c, facts));
  problem.poison();
  variant.launch(problem, {nullptr, facts});
}

Accuracy accuracy(const FusedMoe& problem) {
  return problem.check().accuracy[0];
}

/// The layer's definition without any of its roundings, straight from the operands.
std::vector<double> layer_without_roundings(FusedMoe& problem) {
  const FusedMoeArgs args = problem.args();
  const FusedMoeShape& s = args.shape;
  const uint16_t* x = problem.x_bf16();
  const auto value = [](const uint8_t* codes, const float* scales, int64_t row, int64_t scale_row,
                        int k, int width) {
    return double{e4m3_to_float(codes[row * width + k])} *
           scales[scale_row * (width / kMoeGroup) + k / kMoeGroup];
  };
  std::vector<double> out;
  for (int t = 0; t < s.tokens; ++t) {
    std::vector<double> sum(static_cast<size_t>(s.hidden));
    for (int r = t * s.topk; r < (t + 1) * s.topk; ++r) {
      const int64_t e = args.topk_ids[r];
      std::vector<double> h, a;
      for (int n = 0; n < 2 * s.inter; ++n) {
        double dot = 0;
        for (int k = 0; k < s.hidden; ++k) {
          const int64_t row = e * 2 * s.inter + n;
          dot += (x ? bf16_to_float(x[t * s.hidden + k])
                    : value(args.x, args.x_scales, t, t, k, s.hidden)) *
                 value(args.w1, args.w1_scales, row, row / kMoeGroup, k, s.hidden);
        }
        h.push_back(dot);
      }
      for (size_t i = 0; i < h.size() / 2; ++i) {
        a.push_back(h[i] / (1 + std::exp(-h[i])) * h[i + h.size() / 2]);
      }
      for (int n = 0; n < s.hidden; ++n) {
        const int64_t row = e * s.hidden + n;
        double dot = 0;
        for (int k = 0; k < s.inter; ++k) {
          dot += a[static_cast<size_t>(k)] *
                 value(args.w2, args.w2_scales, row, row / kMoeGroup, k, s.inter);
        }
        sum[static_cast<size_t>(n)] += args.topk_weights[r] * dot;
      }
    }
    out.insert(out.end(), sum.begin(), sum.end());
  }
  return out;
}

// What is left are the roundings to e4m3 of the activations, 2.6e-2 of them.
TEST(FusedMoe, ComputesTheLayerUpToItsRoundings) {
  const auto device = open_host_device();
  for (const char* input : {"fp8", "bf16"}) {
    const Case c = fused_moe_case({{"hidden", "384"}, {"inter", "256"}, {"input", input}});
    FusedMoe problem(*device, c);
    run(problem, c);
    ASSERT_TRUE(accuracy(problem).ok) << accuracy(problem).why;
    const auto expected = layer_without_roundings(problem);
    double error = 0, size = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      error += std::pow(bf16_to_float(problem.args().out[i]) - expected[i], 2);
      size += expected[i] * expected[i];
    }
    // x has such a rounding, too, which gate and up share.
    EXPECT_NEAR(std::sqrt(error / size), problem.x_bf16() ? 0.045 : 0.025, 0.01);
    EXPECT_NEAR(std::sqrt(size / static_cast<double>(expected.size())), 1, 0.25);
  }
}

// As engines do it: the quotient by the scale factor, the product with its inverse.
TEST(FusedMoe, CodesOfInputDoNotDependOnTheDivision) {
  const auto device = open_host_device();
  FusedMoe problem(*device, fused_moe_case({{"tokens", "64"}, {"input", "bf16"}}));
  std::vector<double> values;
  for (int i = 0; i < 64 * 256; ++i) values.push_back(bf16_to_float(problem.x_bf16()[i]));
  const auto truth = silu_mul_quant::quantisation_truth(values);
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t first = i / kMoeGroup * kMoeGroup;
    float amax = 0;
    for (size_t k = first; k < first + kMoeGroup; ++k) {
      amax = std::max(amax, static_cast<float>(std::abs(values[k])));
    }
    const auto x = static_cast<float>(values[i]);
    const float scale = amax / 448, close = amax * (1 / 448.0f);
    for (const float q : {x / scale, x / close, x * (1 / scale), x * (1 / close), x * (448 / amax)})
      EXPECT_EQ(e4m3_to_float(float_to_e4m3(q)), truth.codes[i]) << x << " of " << amax;
  }
}

// A token of zeros, one with a value far above the others, whose codes are subnormal or 0.
TEST(FusedMoe, InputOfZerosAndOfOneHugeValue) {
  const auto device = open_host_device();
  Case c = fused_moe_case({{"input", "bf16"}});
  c.truth = false;
  FusedMoe problem(*device, c);
  auto* x = const_cast<uint16_t*>(problem.x_bf16());
  std::fill_n(x, 256, uint16_t{0});
  x[256 + 77] = float_to_bf16(1030);
  problem.find_truth();
  for (const char* name : {"chain", "depth_first"}) {
    run(problem, c, name);
    EXPECT_TRUE(accuracy(problem).ok) << name << accuracy(problem).why;
    for (int i = 0; i < 256; ++i) ASSERT_EQ(bf16_to_float(problem.args().out[i]), 0);
  }
}

TEST(FusedMoe, TheWholeAndASampleRejectFaults) {
  const auto device = open_host_device();
  Case c = fused_moe_case({{"tokens", "40"}, {"inter", "256"}, {"routing", "zipf:0.67"}});
  for (const double most : {FusedMoe::kWholeTruth, 0.0}) {
    if (most == 0) c.params["input"] = "bf16";
    FusedMoe problem(*device, c, most);
    run(problem, c);
    problem.check_with(
        {FusedMoe::kOtherCodes, FusedMoe::kCodesRounded});  // accuracy() is judged by what was last
    EXPECT_TRUE(accuracy(problem).ok) << accuracy(problem).why;
    const Corruptions corruptions = problem.corruptions();
    for (const Corruption* corruption : {&corruptions.experts_swapped, &corruptions.token_dropped,
                                         &corruptions.scales_transposed}) {
      run(problem, c);
      corruption->apply();
      EXPECT_FALSE(accuracy(problem).ok);
    }
    run(problem, c);
    problem.args().out[13 * 256 + 5] = 0x7f80;
    EXPECT_FALSE(accuracy(problem).ok);
  }
}

TEST(FusedMoe, AFaultThatChangesNothingLeavesTheOutput) {
  const auto device = open_host_device();
  const Case c = fused_moe_case({{"hidden", "128"}, {"topk", "1"}, {"routing", "hot:1:1"}});
  FusedMoe problem(*device, c);
  run(problem, c);
  const uint64_t hash = problem.check().hash;
  problem.corruptions().experts_swapped.apply();
  EXPECT_EQ(problem.check().hash, hash);
  problem.corruptions().token_dropped.apply();
  EXPECT_NE(problem.check().hash, hash);
}

// Activations in which, with sums of AVX-512, the largest of a group is on the other side of a tie:
// an element of the first is then off by 0.15, a row of the second by 0.04, and the six rows that
// the rank of the third has by 0.013 together.
TEST(FusedMoe, AGroupQuantisedAnewIsNoFaultOfAShortRow) {
  const auto device = open_host_device();
  const Params small = {{"tokens", "70"}, {"topk", "2"}, {"hidden", "128"}},
               few = {{"tokens", "20"}, {"experts", "8"}, {"topk", "2"}, {"inter", "128"}};
  struct Drawn {
    const char* rank;
    const Params* params;
    uint64_t change;
  };
  for (const auto& [rank, params, change] :
       {Drawn{"0/1", &small, 3930252046586699697u}, Drawn{"1/2", &small, 2890685252931158899u},
        Drawn{"1/4", &few, 15580342068422462375u}}) {
    Params all = fused_moe_case(*params).params;
    all["hidden"] = "128";
    const Case c = check::case_of(FusedMoe::kOp, {{"rank", rank}}, all);
    FusedMoe problem(*device, c);
    problem.replace_activations(change);
    ASSERT_TRUE(problem.find_truth());
    run(problem, c);
    EXPECT_TRUE(accuracy(problem).ok) << accuracy(problem).why;
  }
}

// Five of 40 tokens, first and last among them.
TEST(FusedMoe, ALargeLayerIsSampled) {
  const auto device = open_host_device();
  const Case c = fused_moe_case(
      {{"tokens", "40"}, {"hidden", "2048"}, {"inter", "1152"}, {"topk", "8"}, {"seed", "3"}});
  const FusedMoe problem(*device, c);
  const Accuracy poisoned = accuracy(problem);
  EXPECT_EQ(poisoned.output, "out (sample)");
  EXPECT_EQ(poisoned.elements % 2048, 0);
  EXPECT_GE(poisoned.elements, 3 * 2048);
  EXPECT_LE(poisoned.elements, 5 * 2048);
}

TEST(FusedMoe, CostFactsAndParameters) {
  const auto device = open_host_device();
  const FusedMoe problem(*device,
                         fused_moe_case({{"tokens", "20"}, {"topk", "1"}, {"routing", "hot:1:1"}}));
  const Cost cost = problem.cost();
  EXPECT_EQ(cost.flops, 2.0 * 20 * 3 * 256 * 128);
  EXPECT_EQ(cost.write_bytes, 20 * 256 * 2);
  const double weights = 3 * 256 * 128 + 4 * (2 * 2 + 2 * 1);
  EXPECT_EQ(cost.read_bytes, weights + 20 * (256 + 2 * 4 + 4 + 4));
  const FusedMoe bf16(*device, fused_moe_case({{"tokens", "20"}, {"input", "bf16"}}));
  const FusedMoe fp8(*device, fused_moe_case({{"tokens", "20"}}));
  EXPECT_EQ(bf16.cost().read_bytes - fp8.cost().read_bytes, 20 * (256 - 2 * 4));
  EXPECT_EQ(problem.facts()[0].value, 1);
  EXPECT_EQ(problem.facts()[3].value, 32);
  EXPECT_THROW(FusedMoe::validate(fused_moe_case({{"inter", "200"}})), Error);
  EXPECT_THROW(FusedMoe::validate(fused_moe_case({{"hidden", "130"}})), Error);
  EXPECT_THROW(FusedMoe::validate(fused_moe_case({{"block", "48"}})), Error);
  EXPECT_THROW(FusedMoe::validate(fused_moe_case({{"topk", "9"}})), Error);
  EXPECT_THROW(FusedMoe::validate(fused_moe_case({{"input", "fp16"}})), Error);
}

/// Each of `bytes` fits between where it starts and where the next does, at multiples of 256.
void expect_apart(const std::vector<const void*>& starts, const std::vector<int64_t>& bytes,
                  const void* origin, size_t all) {
  const auto at = [&](const void* p) {
    return static_cast<const std::byte*>(p) - static_cast<const std::byte*>(origin);
  };
  for (size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_EQ(at(starts[i]) % 256, 0) << i;
    EXPECT_GE(at(starts[i + 1]), at(starts[i]) + bytes[i]) << i;
  }
  EXPECT_EQ(static_cast<size_t>(at(starts.back())), all);
}

TEST(FusedMoeSteps, BuffersAreAlignedAndApart) {
  const FusedMoeShape shape = FusedMoeShape::of(fused_moe_case({}));
  alignas(256) std::byte origin[1];
  const Buffers b = buffers_at(shape, DType::bf16, origin);
  const int64_t rows = shape.rows(), places = shape.align().capacity();
  expect_apart({b.sorted_token_ids, b.expert_ids, b.padded_rows, b.next, b.h, b.act, b.q, b.scales,
                b.y, b.x, b.x_scales, b.end},
               {places * 4, shape.align().blocks() * 4, 4, 8 * 4, rows * 256 * 2, rows * 128 * 2,
                rows * 128, rows * 4, rows * 256 * 2, 7 * 256, 7 * 2 * 4},
               origin, buffer_bytes(shape, DType::bf16));
}

TEST(FusedMoeSteps, SortedBuffersHaveARowPerPlace) {
  const FusedMoeShape shape = FusedMoeShape::of(fused_moe_case({{"block", "128"}}));
  alignas(256) std::byte origin[1];
  const Buffers b = buffers_at(shape, DType::e4m3, origin, RowOrder::sorted);
  const int64_t rows = shape.rows(), places = shape.align().capacity();
  ASSERT_GT(places, 8 * rows);
  expect_apart(
      {b.sorted_token_ids, b.expert_ids, b.padded_rows, b.places, b.q, b.scales, b.y, b.end},
      {places * 4, shape.align().blocks() * 4, 4, rows * 4, places * 128, places * 4,
       places * 256 * 2},
      origin, buffer_bytes(shape, DType::e4m3, RowOrder::sorted));
  EXPECT_EQ(b.h, nullptr);
}

// The host's gather, which is its default, widens rows into memory that a chain does not have.
TEST(FusedMoeSteps, AProductThatNeedsMemoryOfItsOwnIsRefused) {
  const auto device = open_host_device();
  const Case c = fused_moe_case({});
  EXPECT_EQ(tuned_unsupported(FusedMoeShape::of(c).gate_up(), c, device->facts()),
            "gather needs memory of its own");
}

// By rows per expert: DeepSeek-R1 has 16 at 512 tokens, Qwen3-30B 32.
TEST(FusedMoe, ChainInSortedOrderIsUsualWhereExpertsHaveManyRows) {
  DeviceFacts cuda;
  cuda.backend = Backend::cuda;
  const auto usual = [&](const char* tokens, const char* experts) {
    const Case c = fused_moe_case({{"tokens", tokens}, {"experts", experts}, {"topk", "8"}});
    return find_op(FusedMoe::kOp).tuning.usual(c, cuda).front();
  };
  EXPECT_EQ(usual("1", "256"), "one_launch");
  EXPECT_EQ(usual("512", "256"), "chain_tuned");
  EXPECT_EQ(usual("1024", "256"), "chain_sorted");
  EXPECT_EQ(usual("512", "128"), "chain_sorted");
  EXPECT_EQ(usual("511", "8"), "chain_tuned");
}

TEST(FusedMoe, HostVariantsAgreeWithTheTruth) {
  const auto device = open_host_device();
  const std::vector<Params> cases = {
      {},
      {{"tokens", "1"}, {"topk", "1"}, {"hidden", "128"}},
      {{"tokens", "70"}, {"block", "64"}, {"routing", "hot:3:1"}, {"inter", "384"}},
      {{"tokens", "33"}, {"experts", "60"}, {"routing", "zipf:1.2"}},
      {{"input", "bf16"}},
      {{"tokens", "70"}, {"input", "bf16"}, {"hidden", "1024"}, {"inter", "384"}}};
  for (const Params& params : cases) {
    Bench bench(*device, fused_moe_case(params));
    for (const Variant& v : all_variants()) {
      if (v.op != FusedMoe::kOp || v.backend != Backend::host) continue;
      const Result result = bench.verify(v);
      EXPECT_EQ(result.status, Status::ok) << v.name << ": " << result.why;
    }
  }
}

}  // namespace
}  // namespace moegate::fused_moe
