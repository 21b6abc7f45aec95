// SPDX-License-Identifier: Apache-2.0
// Every operator of this program has other activations, and knows their truth: else a variant could
// keep what it once computed.
#include <gtest/gtest.h>

#include <set>

#include "harness/worker/batch_invariance.h"
#include "kernels/check/testing.h"

namespace moegate::check {
namespace {

struct Small {
  const char* op;
  Params params;
};

/// Of every operator, with few tokens, which are drawn anew, and with more, which are rotated.
const std::vector<Small>& small_cases() {
  static const Params gemm = {{"experts", "8"}, {"topk", "2"}, {"hidden", "128"}, {"inter", "128"}};
  const auto with = [](Params params, const Params& more) {
    params.insert(more.begin(), more.end());
    return params;
  };
  static const Params few = {{"tokens", "5"}}, many = {{"tokens", "70"}};
  static const std::vector<Small> all = [&] {
    std::vector<Small> cases;
    for (const Params& tokens : {few, many}) {
      for (const char* op : {"moe_gate_up", "moe_down", "fused_moe", "dense_fc2", "qmoe_fc2",
                             "w4_gate_up", "w4_down", "w4_layer", "qmoe_layer"}) {
        cases.push_back({op, with(gemm, tokens)});
      }
      for (const char* op : {"moe_gate_up", "moe_down", "fused_moe"}) {
        cases.push_back({op, with(gemm, with(tokens, {{"rank", "1/2"}}))});
      }
      cases.push_back({"moe_down", with(gemm, with(tokens, {{"rank", "busiest/4"}}))});
      cases.push_back({"w4_gate_up", with(gemm, with(tokens, {{"weights", "int4"}}))});
      cases.push_back({"qmoe_fc1_swiglu", with(gemm, with(tokens, {{"data", "edges"}}))});
      const Params routed = with(tokens, {{"experts", "16"}, {"topk", "4"}});
      cases.push_back({"topk_sort", with(routed, {{"hidden", "64"}})});
      cases.push_back({"moe_align", with(routed, {{"block", "16"}})});
      cases.push_back({"moe_align", with(routed, {{"block", "16"}, {"routing", "balanced"}})});
      cases.push_back({"moe_align", with(routed, {{"block", "16"}, {"rank", "1/4"}})});
      cases.push_back({"router_gemm", with(routed, {{"hidden", "64"}})});
      const Params rows = with(tokens, {{"topk", "2"}});
      cases.push_back({"moe_sum", with(rows, {{"hidden", "64"}})});
      cases.push_back({"silu_mul_quant", with(rows, {{"inter", "128"}})});
      cases.push_back({"silu_mul_quant", with(rows, {{"inter", "128"}, {"values", "edges"}})});
    }
    return cases;
  }();
  return all;
}

TEST(Unseen, EveryOperatorOfThisProgramIsLookedAt) {
  for (const OpEntry& op : all_ops()) {
    EXPECT_TRUE(std::ranges::any_of(small_cases(), [&](const Small& s) { return s.op == op.name; }))
        << op.name << ": add a small case";
  }
}

std::map<std::string, uint64_t> activations_of(Problem& problem) {
  std::map<std::string, uint64_t> hashes;
  for (const Tensor* t : problem.tensors()) {
    if (t->role() == Role::activation)
      hashes[t->name()] = problem.device().hash(t->data(), t->bytes());
  }
  return hashes;
}

TEST(Unseen, ActivationsAreReplacedAndTheirTruthIsKnown) {
  const auto device = open_host_device();
  for (const Small& small : small_cases()) {
    const Case c = case_of(small.op, small.params);
    const OpEntry& op = find_op(small.op);
    const auto problem = op.make(*device, c);
    const Variant& yardstick = find_variant(small.op, Backend::host, op.yardstick);
    const auto first = activations_of(*problem);
    const auto is_right = [&] {
      if (yardstick.workspace) {
        problem->reserve_workspace(yardstick.workspace(c, device->facts()));
      }
      problem->poison();
      yardstick.launch(*problem, {nullptr, device->facts()});
      return std::ranges::all_of(problem->check_with(yardstick.leeway).accuracy, &Accuracy::ok);
    };
    EXPECT_TRUE(is_right()) << c.key();
    for (const uint64_t change : {5, 9, 5}) {
      EXPECT_TRUE(problem->replace_activations(change)) << c.key();
      for (const auto& [name, hash] : activations_of(*problem)) {
        // What follows from the ids may be the same for others.
        const bool follows = name == "num_tokens_post_padded" || name == "expert_ids";
        if (follows || name == "row_source") continue;
        EXPECT_NE(hash, first.at(name)) << c.key() << " leaves " << name;
      }
      EXPECT_TRUE(problem->find_truth()) << c.key();
      EXPECT_TRUE(is_right()) << c.key() << " change " << change;
    }
    problem->replace_activations(0);
    EXPECT_EQ(activations_of(*problem), first) << c.key();
    EXPECT_TRUE(is_right()) << c.key() << ": the first ones and their truth are back";
  }
}

TEST(Unseen, EveryHostVariantIsRightOnThemAndSaysHowMuchWasReplaced) {
  const auto device = open_host_device();
  for (const Small& small : small_cases()) {
    const Case c = case_of(small.op, small.params);
    Bench bench(*device, c);
    for (const Variant& v : all_variants()) {
      if (v.op != small.op || v.backend != Backend::host || is_another_name(v)) continue;
      Result result = bench.verify(v);
      if (result.status == Status::unsupported) continue;
      ASSERT_EQ(result.status, Status::ok) << c.key() << " " << v.name << ": " << result.why;
      bench.check_unseen(v, result);
      EXPECT_EQ(result.status, Status::ok) << c.key() << " " << v.name << ": " << result.why;
      EXPECT_EQ(result.metrics.back().name, kUnseenMetric);
      EXPECT_GT(result.metrics.back().value, 0.5) << c.key() << " " << v.name;
    }
  }
}

TEST(Unseen, ATokensValuesDependOnItsNumberAndNotOnItsBatch) {
  const std::set<std::string> of_the_batch = {"moe_align", "topk_sort"};
  const auto device = open_host_device();
  for (const Small& small : small_cases()) {
    const Case c = case_of(small.op, small.params);
    const Variant& yardstick = find_variant(small.op, Backend::host, find_op(small.op).yardstick);
    const auto found = ask_batch_invariance(yardstick, c, 70, own_registry(), *device);
    ASSERT_EQ(found.empty(), of_the_batch.contains(small.op)) << c.key();
    if (found.empty()) continue;
    EXPECT_EQ(found[0].value, 0) << c.key() << ": a token has other values in another batch";
    const auto problem = find_op(small.op).make(*device, c);
    const auto first = activations_of(*problem);
    problem->move_to(2, std::stoi(c.get("tokens")));
    EXPECT_NE(activations_of(*problem), first) << c.key() << " does not move";
  }
}

}  // namespace
}  // namespace moegate::check
