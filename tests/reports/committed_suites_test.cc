// SPDX-License-Identifier: Apache-2.0
// Every suite of this repository loads, and its cases fit their operators. Without this a typing
// error in a nightly suite shows only at night.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "harness/base/test_fixture.h"
#include "harness/campaign/suite.h"
#include "harness/kernel/registry.h"

namespace moegate::test {
namespace {

std::vector<OpDescription> operators() {
  return describe_operators(own_registry(), Backend::host);
}

class CommittedSuites : public testing::Test {
 protected:
  const ScopedVariable home_{"MOEGATE_HOME", MOEGATE_SOURCE_DIR};
};

TEST_F(CommittedSuites, LoadAndFitTheirOperators) {
  const auto suites = list_suites();
  EXPECT_FALSE(suites.empty());
  for (const auto& [name, comment] : suites) {
    EXPECT_FALSE(comment.empty()) << name << " lacks a comment on its first line";
    for (const Case& c : load_suite(name, {}, operators())) {
      EXPECT_NO_THROW(find_op(c.op).validate(c)) << c.key();
    }
  }
}

TEST_F(CommittedSuites, StayWithinTheTimeTheyAreMadeFor) {
  // A suite that grew shows here before it shows as a job that no longer ends in time.
  const std::map<std::string, size_t> limits = {{"tiny", 422},
                                                {"smoke", 56},
                                                {"nightly", 125},
                                                {"deepseek-r1", 252},
                                                {"qwen3-30b-a3b", 173},
                                                {"qwen3-235b-a22b", 108},
                                                {"qwen3-next", 71},
                                                {"fp8-scales", 64},
                                                {"formats", 84},
                                                {"qmoe", 230},
                                                {"int4", 46},
                                                {"gpt-oss-tp", 36},
                                                {"moe-align", 146},
                                                {"pr-aiter-3526", 22},
                                                {"pr-onnxruntime-29167", 36},
                                                {"pr-aphrodite-1603", 90},
                                                {"pr-sglang-10567", 96},
                                                {"tma-down", 64},
                                                {"pr-tensorrt-llm-12686", 54}};
  for (const auto& [name, limit] : limits) {
    EXPECT_LE(load_suite(name, {}, operators()).size(), limit) << name;
  }
}

TEST_F(CommittedSuites, TheNightlyCoversEveryModelWithASuite) {
  std::set<std::string> sections;
  for (const Case& c : load_suite("nightly", {}, operators())) sections.insert(c.section);
  for (const std::string model :
       {"deepseek-r1", "qwen3-30b-a3b", "qwen3-235b-a22b", "gpt-oss-20b", "gpt-oss-120b"}) {
    EXPECT_EQ(sections.count(model), 1u) << model;
    std::set<std::string> keys;
    for (const Case& c : load_suite(model, {{"launch", {"graph"}}}, operators())) {
      if (c.op == "topk_sort") keys.insert(c.key());
    }
    EXPECT_EQ(keys.size(), 51u) << model;  // 17 token counts, 3 routings
  }
}

TEST_F(CommittedSuites, ModelSuitesTakeTheTunedBlock) {
  // `--axis block=tuned` replaces the block of every operator that has one, moe_align's as well.
  for (const std::string name : {"deepseek-r1", "qwen3-30b-a3b", "qwen3-235b-a22b", "qwen3-next"}) {
    for (const Case& c : load_suite(name, {{"block", {"tuned"}}}, operators())) {
      EXPECT_NO_THROW(find_op(c.op).validate(c)) << c.key();
    }
  }
}

TEST_F(CommittedSuites, TheNightlyRunsEveryOperatorAsAGraph) {
  std::set<std::string> left;
  for (const OpEntry& op : all_ops()) {
    if (op.file.starts_with("kernels/")) left.insert(op.name);  // the others are tests' own
  }
  EXPECT_FALSE(left.empty());
  for (const Case& c : load_suite("nightly", {}, operators())) {
    EXPECT_EQ(c.get("launch"), c.section == "gpt-oss-120b-eager" ? "stream" : "graph") << c.key();
    left.erase(c.op);
  }
  EXPECT_TRUE(left.empty()) << *left.begin() << " is in no nightly case";
}

}  // namespace
}  // namespace moegate::test
