// SPDX-License-Identifier: Apache-2.0
#include "harness/values/trace_case.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

namespace moegate {
namespace {

TEST(TraceCase, NamesWhatStaysAndLeavesTokensToTheWorkload) {
  const TraceCase traced =
      trace_case("topk_sort/experts=256,routing=zipf:0.67,scale=2.5,seed=7,tokens=8,topk=4");
  EXPECT_EQ(traced.definition,
            "moegate.topk_sort,experts=256,routing=zipf%3A0.67,scale=2.5,topk=4");
  EXPECT_EQ(traced.axes, (std::map<std::string, int64_t>{
                             {"experts", 256}, {"seed", 7}, {"tokens", 8}, {"topk", 4}}));
  EXPECT_EQ(traced.scalars, (std::map<std::string, double>{{"scale", 2.5}}));
}

TEST(TraceCase, ComesBackAsItWas) {
  for (const char* key :
       {"topk_sort/experts=256,routing=zipf:0.67,scale=2.5,seed=7,tokens=8,topk=4",
        "moe_gate_up/block=tuned,cache=cold-weights,dtype=bf16,launch=graph,tokens=16384",
        "moe_align/routing=replay:suites/data/a b%=\xc3\xa4.npy,tokens=08", "op-1.x/limit=-3",
        "no_params"}) {
    const TraceCase traced = trace_case(key);
    const auto back = case_of_trace(traced.definition, traced.axes);
    ASSERT_TRUE(back) << traced.definition;
    std::string again = back->op;
    char separator = '/';
    for (const auto& [name, value] : back->params) {
      again += fmt::format("{}{}={}", separator, name, value);
      separator = ',';
    }
    EXPECT_EQ(again, key) << traced.definition;
  }
}

TEST(TraceCase, RefusesNamesOfOthersAndContradictions) {
  const std::map<std::string, int64_t> none;
  EXPECT_TRUE(case_of_trace("moegate.op,a=1", none));
  for (const char* name : {"rmsnorm_h4096", "moegate.", "moegate.op,a", "moegate.op,a=%4",
                           "moegate.op,a=%zz", "moegate.op,a=b c", "moegate.op,a=1,a=1"}) {
    EXPECT_FALSE(case_of_trace(name, none)) << name;
  }
  EXPECT_TRUE(case_of_trace("moegate.op,a=1", {{"a", 1}, {"tokens", 3}}));
  EXPECT_FALSE(case_of_trace("moegate.op,a=1", {{"a", 2}}));
  EXPECT_FALSE(case_of_trace("moegate.op,a=1", {{"b", 2}}));
  EXPECT_FALSE(case_of_trace("moegate.op,tokens=many", {{"tokens", 2}}));
}

}  // namespace
}  // namespace moegate
