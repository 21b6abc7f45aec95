// SPDX-License-Identifier: Apache-2.0
// The truth against answers worked out by hand, what check() takes and rejects, and the host
// variants against the truth through the same verification that the harness uses.
#include "kernels/silu_mul_quant/silu_mul_quant.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "harness/device/open.h"
#include "harness/worker/measure.h"
#include "kernels/silu_mul_quant/host_silu.h"
#include "kernels/silu_mul_quant/silu_mul_quant_testing.h"

namespace moegate::silu_mul_quant {
namespace {

TEST(SiluMulQuantTruth, RoundsToTheNearestCode) {
  for (int code = 0; code < 0x7f; ++code) {
    const double value = e4m3_to_float(static_cast<uint8_t>(code));
    EXPECT_EQ(round_to_e4m3(value), value);
    EXPECT_EQ(round_to_e4m3(-value), -value);
    const double next = code == 0x7e ? 512 : e4m3_to_float(static_cast<uint8_t>(code + 1));
    const double middle = (value + next) / 2, even = code % 2 == 0 || code == 0x7e ? value : next;
    EXPECT_EQ(round_to_e4m3(middle), even) << code;
    EXPECT_EQ(round_to_e4m3(middle * (1 - 1e-9)), value) << code;
  }
  EXPECT_EQ(round_to_e4m3(1e9), 448);
}

/// One row of one group, zero but for the columns set.
struct Row {
  std::vector<uint16_t> h = std::vector<uint16_t>(256);
  void set(size_t column, float gate, float up) {
    h[column] = float_to_bf16(gate);
    h[128 + column] = float_to_bf16(up);
  }
};

// silu(1) = 0.7310585786, silu(-2) = -0.2384058440.
TEST(SiluMulQuantTruth, IsTheActivationOverItsScale) {
  Row row;
  row.set(0, 1, 2);
  row.set(127, -2, 1);
  const auto out = silu_mul_quant_truth(row.h, 128);
  ASSERT_EQ(out.scales.size(), 1u);
  EXPECT_NEAR(out.scales[0], 1.4621171573 / 448, 1e-12);
  EXPECT_EQ(out.codes[0], 448);
  EXPECT_EQ(out.codes[1], 0);
  EXPECT_EQ(out.codes[127], -72);  // -0.2384058440 / 1.4621171573 * 448 = -73.05
}

TEST(SiluMulQuantTruth, ZerosHaveTheLeastScale) {
  const auto out = silu_mul_quant_truth(Row().h, 128);
  EXPECT_NEAR(out.scales[0], 1e-10 / 448, 1e-20);
  EXPECT_EQ(out.codes, std::vector<double>(128));
}

void run(SiluMulQuant& problem) {
  problem.poison();
  run_fused(problem.args());
}

std::vector<bool> oks(const SiluMulQuant& problem) {
  std::vector<bool> ok;
  for (const Accuracy& a : problem.check().accuracy) ok.push_back(a.ok);
  return ok;
}

using Oks = std::vector<bool>;

TEST(SiluMulQuant, ChecksCodesAndScalesOfTheWholeAndOfASample) {
  const auto device = open_host_device();
  for (const int64_t most : {SiluMulQuant::kWholeTruth, int64_t{0}}) {
    SiluMulQuant problem(*device, silu_mul_quant_case({{"tokens", "300"}}), most);
    run(problem);
    EXPECT_EQ(oks(problem), (Oks{true, true}));
    const SiluMulQuantArgs args = problem.args();
    args.q[args.shape.inter] = 0x7f;  // of the second row
    args.scales[3] = std::nanf("");
    EXPECT_EQ(oks(problem), (Oks{false, false}));
    run(problem);
    args.scales[0] *= 1.0001f;
    args.q[5] = float_to_e4m3(e4m3_to_float(args.q[5]) * -2 + 8);
    EXPECT_EQ(oks(problem), (Oks{false, false}));
  }
}

// Of 384 codes one of the largest that falls to the other side of a tie is more than 1 %.
TEST(SiluMulQuant, ACodeNextToATieIsNoFaultOfASmallOutput) {
  const auto device = open_host_device();
  SiluMulQuant problem(*device,
                       silu_mul_quant_case({{"tokens", "1"}, {"topk", "3"}, {"inter", "128"}}));
  run(problem);
  const std::span<uint8_t> codes(problem.args().q, 384);
  const auto is_large = [](uint8_t code) { return (code & 0x7f) > 0x79; };
  const auto large = std::ranges::find_if(codes, is_large);
  ASSERT_NE(large, codes.end());
  *large -= 1;
  EXPECT_EQ(oks(problem), (Oks{true, true}));
  for (uint8_t& code : codes) code -= is_large(code) ? 1 : 0;
  EXPECT_EQ(oks(problem), (Oks{false, true}));
}

TEST(SiluMulQuant, RoundingToBf16IsAllowedWhereItIsStated) {
  const auto device = open_host_device();
  SiluMulQuant problem(*device, silu_mul_quant_case({}));
  std::vector<uint16_t> act(15 * 256);
  run_two_passes(problem.args(), act.data());
  EXPECT_EQ(oks(problem), (Oks{false, false}));
  problem.check_with({SiluMulQuant::kRoundedToBf16,
                      SiluMulQuant::kTwiceRounded});  // and so are the checks that follow
  EXPECT_EQ(oks(problem), (Oks{true, true}));
  problem.args().scales[0] *= 1.01f;
  EXPECT_EQ(oks(problem), (Oks{true, false}));
}

TEST(SiluMulQuant, ControlsSpoilWhatTheySay) {
  const auto device = open_host_device();
  SiluMulQuant problem(*device, silu_mul_quant_case({}));
  const Corruptions corruptions = problem.corruptions();
  run(problem);
  corruptions.experts_swapped.apply();
  EXPECT_EQ(oks(problem), (Oks{false, true}));
  run(problem);
  corruptions.token_dropped.apply();
  EXPECT_EQ(oks(problem), (Oks{false, true}));
  run(problem);
  corruptions.scales_transposed.apply();
  EXPECT_EQ(oks(problem), (Oks{true, false}));
}

TEST(SiluMulQuant, CostAndParameters) {
  const auto device = open_host_device();
  const SiluMulQuant problem(*device, silu_mul_quant_case({}));
  EXPECT_EQ(problem.cost().read_bytes, 15 * 512 * 2);
  EXPECT_EQ(problem.cost().write_bytes, 15 * 256 + 15 * 2 * 4);
  EXPECT_THROW(SiluMulQuant::validate(silu_mul_quant_case({{"inter", "200"}})), Error);
  EXPECT_THROW(SiluMulQuant::validate(silu_mul_quant_case({{"values", "some"}})), Error);
}

TEST(SiluMulQuant, HostVariantsAgreeWithTheTruth) {
  const auto device = open_host_device();
  for (const char* values : {"normal", "edges"}) {
    for (const char* inter : {"128", "640"}) {
      Bench bench(*device, silu_mul_quant_case({{"inter", inter}, {"values", values}}));
      for (const Variant& v : all_variants()) {
        if (v.op != SiluMulQuant::kOp || v.backend != Backend::host) continue;
        const Result result = bench.verify(v);
        EXPECT_EQ(result.status, Status::ok) << inter << " " << v.name << ": " << result.why;
      }
    }
  }
}

}  // namespace
}  // namespace moegate::silu_mul_quant
