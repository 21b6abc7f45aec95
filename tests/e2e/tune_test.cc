// SPDX-License-Identifier: Apache-2.0
// Tuning end to end on the host: it writes a file, variant `tuned` reads it, what fails is not
// picked, and what is interrupted is kept.
#include <chrono>
#include <csignal>
#include <thread>

#include "harness/kernel/tile_file.h"
#include "tests/e2e/program.h"

namespace moegate::test {
namespace {

namespace fs = std::filesystem;

class TuneTest : public ProgramTest {
 protected:
  TuneTest() {
    write("layer.suite",
          "tokens = 2, 9\nexperts = 8\ntopk = 2\nhidden = 128\ninter = 128\n"
          "[up]\nop = moe_gate_up\n[down]\nop = moe_down\n");
  }
  static std::string tune(const std::string& more = "") {
    return "tune --suite ./layer.suite --device host --axis block=8,16 --min-samples 10 "
           "--max-samples 20 " +
           more;
  }
  /// The files below a folder.
  std::vector<fs::path> files(const char* folder) const {
    std::vector<fs::path> files;
    if (!fs::exists(folder_ / folder)) return files;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / folder)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
    return files;
  }
};

TEST_F(TuneTest, TunedRunsWhatTuningFound) {
  const Outcome tuned = moegate(tune("--rounds 2"));
  EXPECT_EQ(tuned.exit, 0) << tuned.err;
  EXPECT_NE(tuned.out.find("second best"), std::string::npos) << tuned.out;
  // 3 kernels at 2 blocks, of 2 operators at 2 token counts.
  EXPECT_EQ(query("out/tune.sqlite",
                  "SELECT count(*) FROM result JOIN process USING (process_id) WHERE round = 0"),
            "24");
  EXPECT_FALSE(fs::exists(folder_ / "results.sqlite"));
  const auto written = files("out/tiles");
  ASSERT_EQ(written.size(), 1u);
  EXPECT_EQ(written[0].filename(), "E=8,topk=2,H=128,N=128,dtype=fp8.ini");
  const auto tiles = read_tiles(written[0]).value();
  ASSERT_EQ(tiles.size(), 4u);
  for (const TunedTile& tile : tiles) EXPECT_GT(tile.us, 0) << tile.where;
  EXPECT_EQ(tiles[0].op, "moe_down");
  EXPECT_EQ(tiles[2].op, "moe_gate_up");
  EXPECT_EQ(tiles[0].config.block, tiles[2].config.block);  // one for both operators
  EXPECT_EQ(tiles[1].config.block, tiles[3].config.block);

  const Outcome run = moegate(
      "run --suite ./layer.suite --device host --axis block=tuned --axis tokens=3 --variant tuned "
      "--filter moe_gate_up --tiles out/tiles --rounds 1 --min-samples 10 --max-samples 20");
  EXPECT_EQ(run.exit, 0) << run.err;
  EXPECT_EQ(query("results.sqlite", "SELECT path FROM result"),
            "tuned: " + tiles[2].config.text() + " for 2 tokens");
  EXPECT_NE(query("results.sqlite", "SELECT key FROM bench_case").find("block=tuned"),
            std::string::npos);
}

// Operators without tile configurations choose one of their variants.
TEST_F(TuneTest, TunedRunsTheVariantThatTuningFound) {
  write("layer.suite",
        "op = dense_fc2\ntokens = 2, 9\nexperts = 8\ntopk = 2\nhidden = 128\ninter = 128\n[fc2]\n");
  const std::string quick = " --min-samples 10 --max-samples 20 ";
  const Outcome tuned =
      moegate("tune --suite ./layer.suite --device host --rounds 2 --axis tokens=2,9" + quick);
  EXPECT_EQ(tuned.exit, 0) << tuned.err;
  EXPECT_EQ(query("out/tune.sqlite", "SELECT group_concat(DISTINCT variant) FROM result"),
            "tile/alpha_per_expert,tile/alpha_per_k_tile,tile/sparse_rows");
  const auto written = files("out/tiles");
  ASSERT_EQ(written.size(), 1u);
  EXPECT_EQ(written[0].filename(), "dense_fc2,E=8,topk=2,H=128,N=128,scales=tensor,k_tile=128.ini");
  const auto tiles = read_tiles(written[0]).value();
  ASSERT_EQ(tiles.size(), 2u);
  EXPECT_EQ(tiles[0].config, (TileConfig{tiles[0].config.kernel, 0, {}}));

  const std::string run =
      "run --suite ./layer.suite --device host --axis tokens=3 --variant '^tuned$' --rounds 1" +
      quick;
  ASSERT_EQ(moegate(run + "--tiles out/tiles").exit, 0);
  const auto path_begins = [&](const char* store, const std::string& with) {
    const std::string path = query(store, "SELECT path FROM result");
    EXPECT_TRUE(path.starts_with(with)) << path;
  };
  path_begins("results.sqlite", "tuned: " + tiles[0].config.kernel + " for 2 tokens");
  ASSERT_EQ(moegate(run + "--db other.sqlite").exit, 0);
  path_begins("other.sqlite", "default: sparse_rows");

  const std::string file = fs::relative(written[0], folder_);
  for (const auto& [entry, says] :
       {std::pair("[dense_fc2.2]\nkernel = alpha\n",
                  "kernel = alpha is no variant that tuned launches; there are alpha_per_expert"),
        std::pair("[moe_sum.2]\nkernel = sparse_rows\n", "in the file of operator dense_fc2"),
        std::pair("[dense_fc2.2]\nkernel = sparse_rows\nblock = 16\n",
                  "more than kernel and us")}) {
    write(file, entry);
    const Outcome refused = moegate(run + "--tiles out/tiles");
    EXPECT_NE(refused.exit, 0) << refused.out;
    EXPECT_NE((refused.out + refused.err).find(says), std::string::npos)
        << refused.out << refused.err;
  }
}

TEST_F(TuneTest, TakesKernelsAsListNamesThemOrWithoutPrefix) {
  for (const char* kernel : {"^tile/sorted_rows", "tile/sorted_rows|tile/no_such", "sorted_rows"}) {
    const Outcome tuned = moegate(
        tune(fmt::format("--rounds 1 --axis tokens=2 --op moe_down --variant '{}'", kernel)));
    EXPECT_EQ(tuned.exit, 0) << kernel << ": " << tuned.err;
    EXPECT_EQ(query("out/tune.sqlite", "SELECT DISTINCT variant FROM result"), "tile/sorted_rows");
  }
}

TEST_F(TuneTest, TuningAgainKeepsOtherEntries) {
  ASSERT_EQ(moegate(tune("--rounds 1 --axis tokens=2,9")).exit, 0);
  const fs::path file = files("out/tiles").at(0);
  const auto before = read_tiles(file).value();
  const Outcome again = moegate(tune("--rounds 1 --axis tokens=4,9 --op moe_down"));
  EXPECT_EQ(again.exit, 0) << again.err;
  EXPECT_NE(again.out.find(".ini (entries: 1 replaced, 1 new, 3 kept)\n"), std::string::npos)
      << again.out;
  const auto after = read_tiles(file).value();
  ASSERT_EQ(after.size(), 5u);
  EXPECT_EQ(after[0].config, before[0].config);
  EXPECT_EQ(after[0].us, before[0].us);
  EXPECT_EQ(after[1].tokens, 4);
  EXPECT_EQ(after[2].tokens, 9);
  for (const size_t i : {2u, 3u}) {
    EXPECT_EQ(after[i + 1].op, before[i].op);
    EXPECT_EQ(after[i + 1].us, before[i].us);
  }
}

TEST_F(TuneTest, AFileThatCannotBeTunedAgainIsRefusedBeforeAnythingIsMeasured) {
  ASSERT_EQ(moegate(tune("--rounds 1 --op moe_down")).exit, 0);
  const std::string file = fs::relative(files("out/tiles").at(0), folder_);
  const std::string good = read(file), named = "# Device class: host";
  ASSERT_NE(good.find(named), std::string::npos) << good;
  std::string foreign = good;
  foreign.replace(foreign.find(named), named.size(), "# Device class: ghost");
  for (const auto& [text, says] :
       {std::pair(foreign, ".ini: its comment says '# Device class: ghost"),
        std::pair(good + "splits", "malformed line 'splits'")}) {
    write(file, text);
    const Outcome refused = moegate(tune("--rounds 1 --db again.sqlite"));
    EXPECT_EQ(refused.exit, 2) << refused.out;
    EXPECT_NE(refused.err.find(says), std::string::npos) << refused.err;
    EXPECT_NE(refused.err.find("another --out"), std::string::npos) << refused.err;
    EXPECT_FALSE(fs::exists(folder_ / "again.sqlite"));
    EXPECT_EQ(read(file), text);
  }
}

TEST_F(TuneTest, ConfigurationsRunOnlyWhereTheyAreNamed) {
  const std::string list = "list cases --suite ./layer.suite --device host --filter tokens=2 ";
  EXPECT_EQ(moegate(list).out.find("tile/"), std::string::npos);
  EXPECT_EQ(moegate("list kernels").out.find("tile/"), std::string::npos);
  EXPECT_NE(moegate(list + "--variant tile/gather").out.find("tile/gather"), std::string::npos);
}

TEST_F(TuneTest, WithoutAFileTunedTakesTheDefault) {
  EXPECT_EQ(moegate("run --suite ./layer.suite --device host --axis block=tuned --variant tuned "
                    "--rounds 1 --min-samples 10 --max-samples 20")
                .exit,
            0);
  EXPECT_EQ(query("results.sqlite", "SELECT group_concat(DISTINCT path) FROM result"),
            "default: gather/block=16");
}

TEST_F(TuneTest, AWrongCandidateIsReportedAndNotPicked) {
  const Outcome outcome = saboteur("none", tune("--rounds 1 --op moe_down"));
  EXPECT_EQ(outcome.exit, 11) << outcome.err;
  EXPECT_NE(outcome.err.find("wrong moe_down"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.out.find("unwritten"), std::string::npos) << outcome.out;
  ASSERT_EQ(files("out/tiles").size(), 1u);
  EXPECT_EQ(read_tiles(files("out/tiles")[0]).value().size(), 2u);
  EXPECT_EQ(query("out/tune.sqlite", "SELECT count(*) FROM bench_case WHERE op <> 'moe_down'"),
            "0");
  const Outcome none = saboteur("none", tune("--rounds 1 --variant unwritten --out none"));
  EXPECT_EQ(none.exit, 11) << none.err;
  EXPECT_NE(none.err.find("no configuration for moe_gate_up at 9 tokens"), std::string::npos)
      << none.err;
  EXPECT_TRUE(files("none").empty());
}

TEST_F(TuneTest, AnInterruptedTuningWritesNothingAndIsResumed) {
  Outcome outcome;
  std::thread running(
      [&] { outcome = shell("echo $$ >pid; exec " + program() + " " + tune("--rounds 2")); });
  const auto rows = [&] { return number("out/tune.sqlite", "SELECT count(*) FROM result"); };
  while (rows() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  kill(std::stoi(read("pid")), SIGINT);
  running.join();
  EXPECT_EQ(outcome.exit, 130) << outcome.err;
  EXPECT_GT(rows(), 0);
  EXPECT_TRUE(files("out/tiles").empty());
  const Outcome resumed = moegate("tune --resume latest");
  EXPECT_EQ(resumed.exit, 0) << resumed.err;
  EXPECT_EQ(files("out/tiles").size(), 1u);
  EXPECT_EQ(query("out/tune.sqlite", "SELECT count(*) FROM run"), "1");
}

TEST_F(TuneTest, BadInputIsOneLine) {
  const auto refused = [&](const std::string& arguments, int exit, const std::string& says) {
    const Outcome outcome = moegate(arguments);
    EXPECT_EQ(outcome.exit, exit) << arguments << outcome.out;
    EXPECT_NE(outcome.err.find(says), std::string::npos) << outcome.err;
  };
  refused("tune", 2, "--suite");
  refused(tune("--op topk_sort"), 2, "--op topk_sort: this operator has nothing to tune");
  refused(tune("--filter '('"), 2, "--filter '('");
  refused(tune("--routing uniform --axis routing=balanced"), 2, "--routing and --axis routing");
  refused(tune("--rounds 0"), 2, "--rounds 0");
  refused(tune("--out /proc/tiles"), 2, "--out /proc/tiles");
  EXPECT_FALSE(fs::exists(folder_ / "out/tune.sqlite"));
  refused("verify --suite ./layer.suite --device host --axis block=tuned --tiles nowhere", 2,
          "'nowhere'");
  refused("run --suite ./layer.suite --device host --db r.sqlite --tiles nowhere", 2, "'nowhere'");
  EXPECT_FALSE(fs::exists(folder_ / "r.sqlite")) << "found before there is a store";
  refused(tune("--variant nothing"), 13, "nothing to run");
  EXPECT_EQ(moegate("tune --help").exit, 0);
}

TEST_F(TuneTest, ABadFileIsRefusedBeforeARunBegins) {
  ASSERT_EQ(moegate(tune("--rounds 1")).exit, 0);
  const fs::path file = fs::relative(files("out/tiles").at(0), folder_);
  write(file.string(), "[moe_gate_up.8]\nkernel = frobnicate\nblock = 16\n");
  const Outcome outcome = moegate(
      "run --suite ./layer.suite --device host --axis block=tuned --variant tuned "
      "--tiles out/tiles");
  EXPECT_EQ(outcome.exit, 2) << outcome.out;
  for (const char* word : {".ini:1", "[moe_gate_up.8]", "kernel = frobnicate", "gather"}) {
    EXPECT_NE(outcome.err.find(word), std::string::npos) << outcome.err;
  }
  EXPECT_FALSE(fs::exists(folder_ / "results.sqlite")) << "found before there is a store";
}

}  // namespace
}  // namespace moegate::test
