// SPDX-License-Identifier: Apache-2.0
// A run's options as the store keeps them.
#include "harness/campaign/run_options.h"

#include <gtest/gtest.h>

#include <map>

#include "harness/base/error.h"
#include "harness/base/test_fixture.h"
#include "harness/campaign/campaign_fixture.h"
#include "harness/campaign/plan.h"
#include "harness/campaign/runner.h"

namespace moegate::test {
namespace {

class RunOptionsTest : public CampaignTest {};

TEST_F(RunOptionsTest, OptionsThatNoRunHasAreADamagedStore) {
  const auto refused = [&](const std::string& field, const std::string& value) {
    std::string text = options_.to_json();
    const size_t at = text.find("\"" + field + "\":") + field.size() + 3;
    text.replace(at, text.find_first_of(",}", at) - at, value);
    try {
      RunOptions().from_json(text);
    } catch (const Error& e) {
      return e.code() == Exit::store;
    }
    return false;
  };
  EXPECT_FALSE(refused("rounds", "3"));
  EXPECT_TRUE(refused("shards", "0")) << "what is divided by";
  EXPECT_TRUE(refused("shard", "-1"));
  EXPECT_TRUE(refused("rounds", "1e300"));
  EXPECT_TRUE(refused("rounds", "4294967297"));
  EXPECT_TRUE(refused("min_samples", "0"));
  EXPECT_TRUE(refused("order_seed", "-1"));
  EXPECT_TRUE(refused("flush", "1"));
  EXPECT_TRUE(refused("flush", "\"splash\""));
  EXPECT_FALSE(refused("flush", "\"write\""));
}

TEST_F(RunOptionsTest, KernelsThatAStoreNamesAreTakenFromTheUser) {
  options_.worker.modules = {"/home/me/evil.py", "b c.so"};
  const std::string text = options_.to_json();
  const auto named = [&](const std::vector<std::string>& files) {
    RunOptions stored;
    stored.from_json(text);
    use_named_kernels(stored, files, "run 3");
    return stored.worker.modules;
  };
  for (const std::vector<std::string>& files : {std::vector<std::string>{}, {"a.py"}}) {
    const std::string why = refusal_of([&] { named(files); });
    EXPECT_NE(why.find("run 3 was measured with --module"), std::string::npos) << why;
    EXPECT_NE(why.find(" --module /home/me/evil.py --module 'b c.so'"), std::string::npos) << why;
  }
  EXPECT_EQ(named({"a.py", "b.so"}), (std::vector<std::string>{"a.py", "b.so"}));
  RunOptions none;
  EXPECT_NO_THROW(use_named_kernels(none, {}, "run 3"));
  EXPECT_THROW(use_named_kernels(none, {"a.py"}, "run 3"), Error);
}

TEST_F(RunOptionsTest, AnyPathCanBeStored) {
  options_.worker.tiles = "\xff";  // a name of a folder need not be UTF-8
  RunOptions back;
  EXPECT_NO_THROW(back.from_json(options_.to_json()));
}

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
              "--shard '" + std::string(bad) + "': write K/N with 1 <= K <= N, or slurm");
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
  EXPECT_NE(said("slurm", task("x", "1", "8", "8")).find("='x' is not a number"),
            std::string::npos);
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

RunOptions one_row() {
  RunOptions options;
  options.suites = {"./my suite.suite"};
  options.axes = {{"tokens", {"1", "8"}}};
  options.filter = "^moe_sum/tokens=8$";
  options.variant = "^it's$";
  options.worker.device = "cuda";
  return options;
}

TEST(RowCommand, ARunStatesWhatShapesTheMeasurement) {
  RunOptions options = one_row();
  options.rounds = 5;
  options.worker.conditions.flush = Flush::write;
  options.worker.sampling = {
      .min_samples = 10, .max_samples = 20, .precision = 0.01, .budget_s = 0.25};
  EXPECT_EQ(run_command(options),
            "moegate run --suite './my suite.suite' --filter '^moe_sum/tokens=8$' "
            "--variant '^it'\\''s$' --axis tokens=1,8 --rounds 5 --device cuda --timer auto "
            "--flush write "
            "--flush-factor 2 --min-samples 10 --max-samples 20 --precision 1 --budget 0.25s "
            "--db results.sqlite");
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
    EXPECT_TRUE(text.starts_with("moegate run --suite 'smoke; evil' --rounds 3 --device auto "))
        << text;
    EXPECT_TRUE(text.ends_with(" --db 'my files/r.db'")) << text;
    EXPECT_EQ(text.find("--shard"), std::string::npos) << "a campaign is repeated as a whole";
  }
  for (const char* command : {"moegate run `evil`", "moegate run --shard slurm --campaign slurm"}) {
    run.command = command;
    const std::string text = absent_shard_command(run, 2);
    EXPECT_TRUE(text.starts_with("moegate run --suite 'smoke; evil' ")) << text;
    EXPECT_TRUE(text.ends_with(" --db FILE --shard 2/2 --campaign c")) << text;
  }
  options.case_timeout_s = 20;
  run.options = options.to_json();
  EXPECT_NE(absent_shard_command(run, 2).find(" --case-timeout 20s "), std::string::npos)
      << "merge takes shards with the same options alone";
  run.label = "two words";
  EXPECT_TRUE(absent_shard_command(run, 2).ends_with(" --campaign c --label 'two words'"));
  run.options = "of another program";
  EXPECT_EQ(absent_shard_command(run, 2), "");
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

TEST(RowTime, AFirstLaunchHasTenMinutesAndANightLess) {
  RunOptions options;
  EXPECT_EQ(options.row_time().row_s, 120);
  EXPECT_EQ(options.row_time().first_launch_s, 600);
  EXPECT_STREQ(options.row_time().flag, "--case-timeout");
  options.deadline = Deadline(300, [] { return 0.0; });
  EXPECT_EQ(options.row_time().first_launch_s, 300) << "what is left";
  options.row_share_s = 60;
  EXPECT_EQ(options.row_time().row_s, 60);
  EXPECT_EQ(options.row_time().first_launch_s, 180) << "whatever is left of a phase";
  EXPECT_STREQ(options.row_time().flag, "the night's --budget");
  options.row_share_s = 240;
  EXPECT_EQ(options.row_time().row_s, 120);
  EXPECT_EQ(options.row_time().first_launch_s, 600);
  EXPECT_STREQ(options.row_time().flag, "--case-timeout");
}

TEST(RowCommand, OptionsThatAreUnsetAreNotNamed) {
  RunOptions options;
  options.suites = {"a", "b"};
  options.case_timeout_s = 1;
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
}  // namespace moegate::test
