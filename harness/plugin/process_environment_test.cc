// SPDX-License-Identifier: Apache-2.0
#include "harness/plugin/process_environment.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "harness/plugin/loaded_files.h"

namespace moegate::test {
namespace {

/// Of a name; one without a kind where there is none.
EnvironmentItem item_of(const EnvironmentItems& items, const std::string& name) {
  const auto found = std::ranges::find(items, name, &EnvironmentItem::name);
  return found == items.end() ? EnvironmentItem() : *found;
}

TEST(ToldVariables, AreThoseThatKernelsRead) {
  const EnvironmentItems told = told_variables(
      {{"VLLM_USE_DEEP_GEMM", "0"}, {"OMP_NUM_THREADS", "4"}, {"SHELL", "/bin/sh"}}, {});
  EXPECT_EQ(told.size(), 2u);
  EXPECT_EQ(item_of(told, "VLLM_USE_DEEP_GEMM").value, "0");
  EXPECT_TRUE(item_of(told, "OMP_NUM_THREADS").counts);
}

TEST(ToldVariables, WithFoldersAreToldAndDoNotCount) {
  const EnvironmentItems told = told_variables({{"LD_LIBRARY_PATH", "/a:/b"},
                                                {"TRITON_CACHE_DIR", "/c"},
                                                {"CUDA_VISIBLE_DEVICES", "3"},
                                                {"PYTHONPATH", "~/lib"}},
                                               {});
  EXPECT_EQ(told.size(), 4u);
  for (const EnvironmentItem& item : told) EXPECT_FALSE(item.counts) << item.name;
}

TEST(ToldVariables, ThatAreStatedCountWhateverTheyAre) {
  const EnvironmentItems told =
      told_variables({{"MY_SWITCH", "1"}, {"VLLM_TUNED_CONFIG_FOLDER", "/tuned"}},
                     {"MY_SWITCH", "VLLM_TUNED_CONFIG_FOLDER"});
  EXPECT_EQ(told.size(), 2u);
  for (const EnvironmentItem& item : told) EXPECT_TRUE(item.counts) << item.name;
}

TEST(ToldVariables, OfSecretsHaveNoText) {
  const auto told = [](const std::string& text) {
    return told_variables({{"VLLM_API_KEY", text}}, {}).at(0);
  };
  EXPECT_EQ(told("hunter2").value, "");
  EXPECT_EQ(told("hunter2").digest.size(), 16u);
  EXPECT_NE(told("hunter2").digest, told("hunter3").digest);
}

TEST(ProcessEnvironment, WhatIsReadToTellItIsOpenedByNobody) {
  watch_opens(true);
  ask_for_environment([] {
    std::fclose(std::fopen("/etc/hostname", "r"));
    return EnvironmentItems{{"package", "stub", "1.0", "d"}};
  });
  EXPECT_EQ(item_of(process_environment(), "stub").value, "1.0");
  EXPECT_EQ(std::ranges::count(opened_files(), "/etc/hostname"), 0);
  std::fclose(std::fopen("/etc/hostname", "r"));
  EXPECT_EQ(std::ranges::count(opened_files(), "/etc/hostname"), 1) << "it is watched again";
  watch_opens(false);
  ask_for_environment({});
}

}  // namespace
}  // namespace moegate::test
