// SPDX-License-Identifier: Apache-2.0
// What outputs' own rounding does not explain, of the real operators on the host: no honest variant
// may look less precise on other seeds, and a slip in one operand must.
#include "harness/judge/ratchet.h"

#include "harness/kernel/dtype.h"
#include "kernels/check/testing.h"

namespace moegate::check {
namespace {

struct Operator {
  const char* name;
  Params params;
};
const Operator kOperators[] = {
    {"moe_sum", {{"tokens", "33"}, {"topk", "8"}, {"hidden", "520"}}},
    {"router_gemm",
     {{"tokens", "33"}, {"experts", "40"}, {"topk", "4"}, {"hidden", "520"}, {"out", "bf16"}}},
    {"moe_gate_up",
     {{"tokens", "33"}, {"experts", "8"}, {"topk", "2"}, {"hidden", "384"}, {"inter", "128"}}},
    {"moe_down",
     {{"tokens", "33"}, {"experts", "8"}, {"topk", "4"}, {"hidden", "520"}, {"inter", "384"}}},
    {"silu_mul_quant", {{"tokens", "33"}, {"topk", "3"}, {"inter", "512"}}},
    {"fused_moe",
     {{"tokens", "33"}, {"experts", "8"}, {"topk", "2"}, {"hidden", "384"}, {"inter", "256"}}},
    {"dense_fc2",
     {{"tokens", "33"}, {"experts", "8"}, {"topk", "3"}, {"inter", "256"}, {"hidden", "392"}}},
    {"qmoe_fc1_swiglu",
     {{"tokens", "9"}, {"experts", "8"}, {"topk", "3"}, {"hidden", "384"}, {"inter", "96"}}},
    {"qmoe_fc2",
     {{"tokens", "9"}, {"experts", "8"}, {"topk", "3"}, {"hidden", "192"}, {"inter", "384"}}},
    {"qmoe_layer",
     {{"tokens", "33"}, {"experts", "8"}, {"topk", "3"}, {"hidden", "384"}, {"inter", "128"}}},
    {"w4_layer",
     {{"tokens", "33"}, {"experts", "8"}, {"topk", "3"}, {"hidden", "384"}, {"inter", "128"}}},
};

const Operator& find(const std::string& name) {
  return *std::ranges::find(kOperators, name, &Operator::name);
}

std::vector<const Variant*> host_variants(const std::string& op) {
  std::vector<const Variant*> variants;
  for (const Variant& v : all_variants()) {
    if (v.op == op && v.backend == Backend::host && v.file.starts_with("kernels/") &&
        !is_another_name(v)) {
      variants.push_back(&v);
    }
  }
  return variants;
}

class Precision : public ::testing::Test {
 protected:
  using Spoil = std::function<void(Problem&)>;

  BeyondRounding graded(const Operator& op, const Variant& variant, int64_t seed,
                        const Spoil& spoil = {}) {
    Params params = op.params;
    params["seed"] = std::to_string(seed);
    Case c = resolved(case_of(op.name, params), device_->facts());
    const auto problem = find_op(op.name).make(*device_, c);
    if (spoil) spoil(*problem);
    const Launch launch{nullptr, device_->facts()};
    if (variant.workspace) problem->reserve_workspace(variant.workspace(c, device_->facts()));
    if (variant.prepare) variant.prepare(*problem, launch);
    problem->poison();
    variant.launch(*problem, launch);
    BeyondRounding all;
    for (const Accuracy& a : problem->check_with(variant.leeway).accuracy) {
      EXPECT_TRUE(a.ok || spoil) << variant.name << ": " << a.why;
      take_worst(all, a.rounding);
    }
    return all;
  }
  /// Of two problem sets, the fewest that a process has.
  BeyondRounding of_sets(const Operator& op, const Variant& variant, int64_t seed,
                         const Spoil& spoil = {}) {
    return mean_of(
        std::vector{graded(op, variant, seed, spoil), graded(op, variant, seed + 1000003, spoil)});
  }

  std::unique_ptr<Device> device_ = open_host_device();
};

std::string text_of(const BeyondRounding& b) {
  return fmt::format(
      "graded {}, misrounded {:.2g} {:.2g} {:.2g}, excess {:.2g}, rows {:.2g} {:.2g}, "
      "columns {:.2g} {:.2g}",
      b.graded, b.misrounded, b.row_misrounded, b.column_misrounded, b.excess, b.row_scale,
      b.row_scale_most, b.column_scale, b.column_scale_most);
}

class HonestVariants : public Precision, public ::testing::WithParamInterface<Operator> {};

// 40 pairs of runs with other seeds, each the other's base.
TEST_P(HonestVariants, AreNotLessPreciseOnOtherSeeds) {
  constexpr int kSides = 21;
  for (const Variant* variant : host_variants(GetParam().name)) {
    BeyondRounding before = of_sets(GetParam(), *variant, 1);
    SCOPED_TRACE(variant->name + ": " + text_of(before));
    for (int64_t seed = 2; seed <= kSides; ++seed) {
      const BeyondRounding now = of_sets(GetParam(), *variant, seed);
      EXPECT_EQ(less_precise(before, now), "") << text_of(now);
      EXPECT_EQ(less_precise(now, before), "") << text_of(now);
      before = now;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, HonestVariants, ::testing::ValuesIn(kOperators),
                         [](const auto& info) { return std::string(info.param.name); });

// Variants that state no factor sum in fp32 in other orders.
TEST_F(Precision, OtherOrdersOfSumsAreAsPrecise) {
  for (const Operator& op : kOperators) {
    std::optional<BeyondRounding> first;
    int64_t seed = 1;
    for (const Variant* variant : host_variants(op.name)) {
      if (variant->leeway.factor != 1) continue;
      const BeyondRounding now = of_sets(op, *variant, ++seed);
      if (!first) first = now;
      EXPECT_EQ(less_precise(*first, now), "") << op.name << " " << variant->name << text_of(now);
    }
  }
}

/// A slip in one operand, which the truth does not have.
struct OperandSlip {
  const char* name;
  const char* op;
  const char* tensor;
  std::function<void(std::span<float>, int64_t last)> apply;  // of its last extent
  const char* seen_as;
};

void to_bf16(std::span<float> values, int64_t) {
  for (float& v : values) v = bf16_to_float(float_to_bf16(v));
}

const OperandSlip kOperandSlips[] = {
    {"RoutingWeightInBf16", "moe_down", "routing_weights", to_bf16, "each row is off by its own"},
    {"ScaleOfTokensInBf16", "moe_gate_up", "x_scales", to_bf16, ""},
    {"LastGroupOfK", "moe_down", "weight_scales",
     [](std::span<float> values, int64_t last) {
       for (size_t i = 0; i < values.size(); ++i) {
         if (static_cast<int64_t>(i) % last == last - 1) values[i] *= 0.99F;
       }
     },
     ""},
    {"OneRow", "moe_down", "routing_weights",
     [](std::span<float> values, int64_t) { values[37] *= 1.001F; }, "row 37"},
    {"AllRows", "moe_down", "routing_weights",
     [](std::span<float> values, int64_t) {
       for (float& v : values) v *= 1.0005F;
     },
     "the whole output is off by one factor (0.05"},
};

class OperandSlips : public Precision, public ::testing::WithParamInterface<OperandSlip> {};

TEST_P(OperandSlips, AreSeenOnOtherSeeds) {
  const OperandSlip& slip = GetParam();
  const Operator& op = find(slip.op);
  const Variant& variant = find_variant(slip.op, Backend::host, find_op(slip.op).yardstick);
  const BeyondRounding base = of_sets(op, variant, 1);
  const BeyondRounding head = of_sets(op, variant, 500, [&](Problem& problem) {
    for (Tensor* t : problem.tensors()) {
      if (t->name() != slip.tensor) continue;
      slip.apply({t->data<float>(), static_cast<size_t>(t->size())}, t->shape().back());
    }
  });
  const std::string why = less_precise(base, head);
  EXPECT_NE(why, "") << text_of(head);
  EXPECT_NE(why.find(slip.seen_as), std::string::npos) << why << "\n" << text_of(head);
}

INSTANTIATE_TEST_SUITE_P(Precision, OperandSlips, ::testing::ValuesIn(kOperandSlips),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace moegate::check
