// SPDX-License-Identifier: Apache-2.0
// Replays the committed corpora: in every build, without libFuzzer.
#include <gtest/gtest.h>

#include "harness/base/files.h"
#include "tests/fuzz/fuzz.h"

namespace moegate::fuzz {
namespace {

namespace fs = std::filesystem;

class FuzzCorpus : public ::testing::TestWithParam<NamedTarget> {};

TEST_P(FuzzCorpus, HoldsNoFinding) {
  const auto& [name, run] = GetParam();
  const fs::path folder = fs::path(MOEGATE_SOURCE_DIR) / "tests" / "fuzz" / "corpus" / name;
  int inputs = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string bytes = read_file(entry.path());
    EXPECT_NO_THROW(run(bytes)) << entry.path();
    ++inputs;
  }
  EXPECT_GT(inputs, 1) << folder;
  EXPECT_NO_THROW(run("")) << "nothing at all";
}

INSTANTIATE_TEST_SUITE_P(, FuzzCorpus, ::testing::ValuesIn(kTargets),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace moegate::fuzz
