// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/shard_flag.h"

#include <gtest/gtest.h>

#include <map>

#include "harness/base/error.h"

namespace moegate {
namespace {

using Variables = std::map<std::string, std::string>;

Environment of(const Variables& variables) {
  return [variables](const char* name) {
    const auto at = variables.find(name);
    return at == variables.end() ? "" : at->second;
  };
}

Variables task(const char* id, const char* first, const char* last, const char* count) {
  return {{"SLURM_ARRAY_TASK_ID", id},
          {"SLURM_ARRAY_TASK_MIN", first},
          {"SLURM_ARRAY_TASK_MAX", last},
          {"SLURM_ARRAY_TASK_COUNT", count}};
}

std::string said(const std::string& text, const Variables& variables) {
  try {
    const auto [index, count] = parse_shard(text, of(variables));
    return std::to_string(index) + " of " + std::to_string(count);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Exit::usage);
    return e.what();
  }
}

TEST(ShardFlag, KOfN) {
  EXPECT_EQ(said("1/1", {}), "0 of 1");
  EXPECT_EQ(said("3/8", {}), "2 of 8");
  for (const char* bad :
       {"", "3", "0/2", "3/2", "-1/2", "1/0", "1/2/3", "1/2x", " 1/2", "1/9999999", "/", "Slurm"}) {
    EXPECT_EQ(said(bad, {}),
              "--shard '" + std::string(bad) + "' is neither K/N with 1 <= K <= N nor slurm");
  }
}

TEST(ShardFlag, TheTasksOfAnArrayAreItsShards) {
  EXPECT_EQ(said("slurm", task("1", "1", "8", "8")), "0 of 8");
  EXPECT_EQ(said("slurm", task("8", "1", "8", "8")), "7 of 8");
  EXPECT_EQ(said("slurm", task("0", "0", "3", "4")), "0 of 4");
  Variables steps = task("15", "5", "15", "3");
  steps["SLURM_ARRAY_TASK_STEP"] = "5";
  EXPECT_EQ(said("slurm", steps), "2 of 3");
}

TEST(ShardFlag, OutsideOfAnArrayOrWithGapsItIsRefused) {
  EXPECT_NE(said("slurm", {}).find("SLURM_ARRAY_TASK_ID is not set"), std::string::npos);
  Variables half = task("1", "1", "8", "8");
  half.erase("SLURM_ARRAY_TASK_COUNT");
  EXPECT_NE(said("slurm", half).find("SLURM_ARRAY_TASK_COUNT is not set"), std::string::npos);
  EXPECT_NE(said("slurm", task("x", "1", "8", "8")).find("='x' is no number"), std::string::npos);
  EXPECT_NE(said("slurm", task("9", "1", "8", "8")).find("task 9"), std::string::npos);
  EXPECT_NE(said("slurm", task("5", "1", "5", "2")).find("gaps"), std::string::npos) << "1,5";
}

TEST(ShardFlag, CampaignsHaveOneNameForAllShards) {
  EXPECT_EQ(parse_campaign("01234567-89AB-cdef-0123-456789abcdef", of({})),
            "0123456789abcdef0123456789abcdef");
  const Variables job = {{"SLURM_ARRAY_JOB_ID", "17"}, {"SLURM_CLUSTER_NAME", "hopper"}};
  Variables other = job;
  other["SLURM_CLUSTER_NAME"] = "ada";
  EXPECT_EQ(parse_campaign("slurm", of(job)).size(), 32u);
  EXPECT_EQ(parse_campaign("slurm", of(job)), parse_campaign("slurm", of(job)));
  EXPECT_NE(parse_campaign("slurm", of(job)), parse_campaign("slurm", of(other)));
  for (const char* bad : {"", "nightly", "0123", "slurm"}) {
    EXPECT_THROW(parse_campaign(bad, of({})), Error) << bad;
  }
}

}  // namespace
}  // namespace moegate
