// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/row_command.h"

#include <gtest/gtest.h>

namespace moegate {
namespace {

RunOptions one_row() {
  RunOptions options;
  options.suites = {"./my suite.suite"};
  options.axes = {{"tokens", {"1", "8"}}};
  options.filter = "^moe_sum/tokens=8$";
  options.kernel = "^it's$";
  options.worker.device = "cuda";
  return options;
}

TEST(RowCommand, ARunStatesWhatShapesTheMeasurement) {
  RunOptions options = one_row();
  options.rounds = 5;
  options.worker.flush = Flush::write;
  options.worker.sampling = {
      .min_samples = 10, .max_samples = 20, .precision = 0.01, .budget_s = 0.25};
  EXPECT_EQ(
      run_command(options),
      "moegate run --suite './my suite.suite' --axis tokens=1,8 --filter '^moe_sum/tokens=8$' "
      "--kernel '^it'\\''s$' --device cuda --timer auto --flush write --flush-factor 2 "
      "--rounds 5 --min-samples 10 --max-samples 20 --precision 1 --budget 0.25s "
      "--db results.sqlite");
}

TEST(RowCommand, AShardIsRunLikeTheOthers) {
  EXPECT_EQ(
      shard_command("moegate run --suite a --shard slurm --campaign c --db 'my files/1.db'", 3, 8),
      "moegate run --suite a --shard 3/8 --campaign c --db FILE");
  EXPECT_EQ(shard_command("moegate run --shard=1/8 --suite a", 3, 8),
            "moegate run --shard 3/8 --suite a --db FILE");
}

TEST(RowCommand, OptionsThatAreUnsetAreNotNamed) {
  RunOptions options;
  options.suites = {"a", "b"};
  EXPECT_EQ(nsys_command(options, "r"),
            "nsys profile --trace=cuda,nvtx --sample=none --cpuctxsw=none --force-overwrite=true "
            "--output=r moegate run --suite a --suite b --device auto --profile");
}

TEST(RowCommand, NsightComputeSeesTheLaunchesAlone) {
  const std::string command = ncu_command(one_row(), Cache::cold, "row 17");
  EXPECT_EQ(command.rfind("ncu --target-processes all --nvtx --nvtx-include moegate/ ", 0), 0u)
      << command;
  EXPECT_NE(command.find(" --clock-control none --cache-control all "), std::string::npos);
  EXPECT_NE(command.find(" --export 'row 17' moegate run --suite "), std::string::npos) << command;
  EXPECT_TRUE(command.ends_with(" --profile")) << command;
  EXPECT_EQ(command.find("--db"), std::string::npos) << "it stores nothing";
}

TEST(RowCommand, AWarmCaseKeepsItsCaches) {
  EXPECT_NE(ncu_command(one_row(), Cache::warm, "r").find(" --cache-control none "),
            std::string::npos);
}

}  // namespace
}  // namespace moegate
