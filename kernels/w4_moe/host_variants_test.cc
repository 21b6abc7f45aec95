// SPDX-License-Identifier: Apache-2.0
// Each instruction set that this processor has: against the truth, and its panels one by one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "harness/device/open.h"
#include "kernels/w4_moe/host/product.h"
#include "kernels/w4_moe/w4_moe_testing.h"

namespace moegate::w4_moe {
namespace {

using host::Isa;
using host::Panel;

template <class P>
class W4Host : public ::testing::Test {
 protected:
  std::unique_ptr<Device> device_ = open_host_device();
};
using Operators = ::testing::Types<W4GateUp, W4Down>;
TYPED_TEST_SUITE(W4Host, Operators);

// One row of an expert up to more than a panel holds, in blocks of one row and of all; every group.
TYPED_TEST(W4Host, EveryInstructionSetAgreesWithTheTruth) {
  const std::vector<std::pair<int, Params>> cases = {
      {32, {{"values", "edges"}}},
      {96, {{"tokens", "70"}, {"routing", "hot:3:1"}, {"block", "64"}}},
      {736, {{"tokens", "33"}, {"routing", "zipf:1.2"}, {"block", "1"}}},
      {2880, {{"tokens", "1"}, {"values", "edges"}}},
      {96, {{"weights", "int4"}, {"bias", "0"}, {"tokens", "33"}}},
      {192, {{"weights", "int4"}, {"group", "64"}, {"values", "edges"}}},
      {384, {{"weights", "int4"}, {"group", "128"}, {"routing", "hot:1:1"}}}};
  for (const auto& [k, params] : cases) {
    for (const Isa* isa : host::isas()) {
      for (const auto launch : {host::launch_gather, host::launch_expert_once}) {
        TypeParam problem(*this->device_, product_case<TypeParam>(params, k, 70));
        problem.reserve_workspace(host::workspace_bytes(problem.shape));
        problem.poison();
        launch({problem.args(), problem.template workspace<float>(), *isa});
        const Accuracy accuracy = problem.check().accuracy[0];
        EXPECT_TRUE(accuracy.ok) << isa->name << " " << k << ": " << accuracy.why;
        EXPECT_EQ(accuracy.beyond(), "") << isa->name << " " << k;
        EXPECT_EQ(problem.broken_guard(), "") << isa->name << " " << k;
      }
    }
  }
}

/// A panel of `columns` columns, all of which have `scale` throughout; rows of x are added.
struct Operand {
  W4Shape shape{};
  std::vector<uint8_t> codes;
  std::vector<uint16_t> int4_scales;
  std::vector<uint8_t> scales;
  std::vector<float> x;

  Operand(W4Weights weights, int k, int group, int columns, uint16_t scale) {
    shape.weights = weights;
    shape.k = k;
    shape.group = group;
    const auto of = static_cast<size_t>(columns);
    codes.resize(of * static_cast<size_t>(k) / 2);
    scales.assign(of * static_cast<size_t>(shape.groups()), static_cast<uint8_t>(scale));
    int4_scales.assign(scales.size(), scale);
  }

  void add_row(const Isa& isa, const std::vector<uint16_t>& row) {
    const auto pitch = static_cast<size_t>(host::pitch(shape));
    x.resize(x.size() + pitch);
    isa.widen(row.data(), shape.k, x.data() + x.size() - pitch);
  }

  /// [last - first, columns]
  std::vector<float> sums(const Isa& isa, int first, int last) const {
    Panel panel{};
    panel.codes = codes.data();
    panel.columns = static_cast<int>(codes.size()) / (shape.k / 2);
    panel.scales = scales.data();
    if (shape.weights == W4Weights::int4) panel.scales = int4_scales.data();
    panel.rows = last - first;
    for (int i = 0; i < panel.rows; ++i) panel.x[i] = x.data() + (first + i) * host::pitch(shape);
    std::vector<float> to(static_cast<size_t>(panel.rows * panel.columns));
    isa.multiply(shape, panel, to.data());
    return to;
  }
};

constexpr float kE2m1[] = {0, .5, 1, 1.5, 2, 3, 4, 6};
constexpr uint16_t kOne = 0x3f80;

/// Sixteen columns, each of one code at place `k`, times a one there.
std::vector<float> decoded(const Isa& isa, W4Weights weights, int k, uint16_t scale) {
  const bool int4 = weights == W4Weights::int4;
  Operand o(weights, 64, 32, 16, scale);
  for (size_t code = 0; code < 16; ++code) {
    const int none = int4 ? 8 : 0, here = static_cast<int>(code);
    for (int at = 0; at < 64; ++at) {
      o.codes[(code * 64 + static_cast<size_t>(at)) / 2] |= (at == k ? here : none) << at % 2 * 4;
    }
  }
  std::vector<uint16_t> row(64);
  row[static_cast<size_t>(k)] = kOne;
  o.add_row(isa, row);
  return o.sums(isa, 0, 1);
}

TEST(W4Isa, EveryCodeIsDecodedToItsValueAtEveryPlace) {
  for (const Isa* isa : host::isas()) {
    for (int k = 0; k < 64; ++k) {
      const auto mxfp4 = decoded(*isa, W4Weights::mxfp4, k, 130);
      const auto int4 = decoded(*isa, W4Weights::int4, k, 0x4100);
      for (size_t code = 0; code < 16; ++code) {
        const float e2m1 = code < 8 ? kE2m1[code] : -kE2m1[code - 8];
        EXPECT_EQ(mxfp4[code], 8 * e2m1) << isa->name << " " << code << " at " << k;
        EXPECT_EQ(int4[code], 8 * (static_cast<float>(code) - 8)) << isa->name << " " << code;
      }
    }
  }
}

TEST(W4Isa, EveryScaleOfAByteIsItsPowerOfTwo) {
  for (const Isa* isa : host::isas()) {
    for (uint16_t byte = 0; byte < 253; ++byte) {
      const auto sums = decoded(*isa, W4Weights::mxfp4, 5, byte);
      for (size_t code = 0; code < 8; ++code) {
        EXPECT_EQ(sums[code], std::ldexp(kE2m1[code], byte - 127)) << isa->name << " " << byte;
      }
    }
    Operand o(W4Weights::mxfp4, 64, 32, 16, 255);  // no zeros, of which an infinity makes NaN, too
    std::ranges::fill(o.codes, uint8_t{0x22});
    o.add_row(*isa, std::vector<uint16_t>(64, kOne));
    for (const float sum : o.sums(*isa, 0, 1)) EXPECT_TRUE(std::isnan(sum)) << isa->name;
  }
}

TEST(W4Exp, IsRightToTwoUnitsInTheLastPlace) {
  for (float x = -87; x < 88.37F; x += 0.0137F) {
    EXPECT_NEAR(exp_of(x) / std::exp(double{x}), 1, 2.4e-7) << x;
  }
  EXPECT_EQ(exp_of(0), 1);
  EXPECT_EQ(exp_of(1e30F), INFINITY);
  EXPECT_LT(exp_of(-INFINITY), 2e-38F);
  EXPECT_TRUE(std::isnan(exp_of(NAN)));
}

// Neither the number of rows of a panel nor what is in the others shows in a row's bits.
TEST(W4Isa, ARowDoesNotSeeTheOthers) {
  for (const Isa* isa : host::isas()) {
    for (const W4Weights weights : {W4Weights::mxfp4, W4Weights::int4}) {
      Operand o(weights, 96, 32, 30, weights == W4Weights::int4 ? 0x3f80 : 120);
      for (size_t i = 0; i < o.codes.size(); ++i) o.codes[i] = static_cast<uint8_t>(i * 151 >> 3);
      std::vector<uint16_t> row(96);
      for (size_t i = 0; i < row.size(); ++i) row[i] = static_cast<uint16_t>(0x3f00 + i * 11);
      const uint16_t spikes[] = {0x7fc0, 0x7f80, 0xff80, 0x7f7f, 0x8000, 0x0001};
      for (size_t i = 0; i < 8; ++i) {
        o.add_row(*isa, row);
        auto other = row;
        other[i * 7] = spikes[i % 6];
        o.add_row(*isa, other);
      }
      const auto alone = o.sums(*isa, 0, 1);
      for (int rows = 1; rows <= 15; ++rows) {
        const auto sums = o.sums(*isa, 0, rows);
        for (size_t i = 0; i < static_cast<size_t>(rows); i += 2) {
          for (size_t c = 0; c < 30; ++c) {
            EXPECT_EQ(sums[i * 30 + c], alone[c]) << isa->name << " " << i << " of " << rows;
          }
        }
        if (rows < 4) continue;
        EXPECT_TRUE(std::isnan(sums[30 + 7])) << isa->name;
        EXPECT_TRUE(std::isinf(sums[90 + 7])) << isa->name;
      }
    }
  }
}

}  // namespace
}  // namespace moegate::w4_moe
