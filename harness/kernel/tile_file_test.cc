// SPDX-License-Identifier: Apache-2.0
#include "harness/kernel/tile_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "harness/base/error.h"
#include "harness/base/test_fixture.h"

namespace moegate::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kGood = R"(# where from
[moe_gate_up.32]
kernel = swap_ab
block = 32

[moe_gate_up.8]
kernel = swap_ab_split_k
block = 16
splits = 4
us = 44.1

[moe_down.8]
kernel = gather
block = 16
)";

TEST(TileFile, IsReadAndWrittenAlike) {
  const auto tiles = parse_tiles("t.ini", kGood);
  ASSERT_EQ(tiles.size(), 3u);
  EXPECT_EQ(tiles[0].op, "moe_gate_up");
  EXPECT_EQ(tiles[0].us, 0);
  EXPECT_EQ(tiles[1].tokens, 8);
  EXPECT_EQ(tiles[1].config, (TileConfig{"swap_ab_split_k", 16, {{"splits", 4}}}));
  EXPECT_EQ(tiles[1].us, 44.1);
  const auto again = parse_tiles("t.ini", format_tiles({"a # b", "c"}, tiles));
  ASSERT_EQ(again.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(again[i].op, tiles[i].op);
    EXPECT_EQ(again[i].tokens, tiles[i].tokens);
    EXPECT_EQ(again[i].config, tiles[i].config);
    EXPECT_EQ(again[i].us, tiles[i].us);
  }
}

TEST(TileFile, ATimeTooShortToShowIsLeftOut) {
  const std::string text = "[op.8]\nkernel = k\nblock = 16\nus = ";
  auto tiles = parse_tiles("t.ini", text + "0.001\n");
  EXPECT_EQ(parse_tiles("t.ini", format_tiles({}, tiles)).at(0).us, 0);
  tiles = parse_tiles("t.ini", text + "0.01\n");
  EXPECT_EQ(parse_tiles("t.ini", format_tiles({}, tiles)).at(0).us, 0.01);
  EXPECT_THROW(parse_tiles("t.ini", text + "inf\n"), Error);
}

TEST(TileFile, AConfigurationHasATextAndAVariant) {
  const TileConfig config = {"swap_ab_split_k", 16, {{"splits", 4}, {"columns", 64}}};
  EXPECT_EQ(config.text(), "swap_ab_split_k/block=16/columns=64/splits=4");
  EXPECT_EQ(config.variant(), "tile/swap_ab_split_k/columns=64/splits=4");
  EXPECT_EQ(config_of_variant(config.variant(), 16), config);
  EXPECT_EQ(config_of_variant("tile/gather", 64), (TileConfig{"gather", 64, {}}));
  EXPECT_TRUE(is_tile_variant("tile/gather"));
  EXPECT_FALSE(is_tile_variant("gather"));
  for (const char* other : {"gather", "tile/gather/splits", "tile/gather/splits=four"}) {
    EXPECT_THROW(config_of_variant(other, 16), Error) << other;
  }
}

TEST(TileFile, NearestTokenCountAndOfTwoTheSmaller) {
  const auto tiles = parse_tiles("t.ini", kGood);
  const auto tokens = [&](const char* op, int t) { return nearest_tile(tiles, op, t)->tokens; };
  EXPECT_EQ(tokens("moe_gate_up", 1), 8);
  EXPECT_EQ(tokens("moe_gate_up", 19), 8);
  EXPECT_EQ(tokens("moe_gate_up", 20), 8);  // 12 from both
  EXPECT_EQ(tokens("moe_gate_up", 21), 32);
  EXPECT_EQ(tokens("moe_gate_up", 5000), 32);
  EXPECT_EQ(tokens("moe_down", 5000), 8);
  EXPECT_EQ(nearest_tile(tiles, "moe_sum", 8), nullptr);
}

void expect_refused(const std::string& text, const std::vector<std::string>& parts) {
  const std::string message = refusal_of([&] { parse_tiles("t.ini", text); });
  EXPECT_NE(message.find("t.ini"), std::string::npos) << message;
  for (const std::string& part : parts) {
    EXPECT_NE(message.find(part), std::string::npos) << "'" << part << "' in: " << message;
  }
}

TEST(TileFile, RefusesWhatItCannotRead) {
  const std::string body = "kernel = gather\nblock = 16\n";
  expect_refused("[moe_gate_up]\n" + body, {":1", "[moe_gate_up]", "operator.tokens"});
  expect_refused("[moe_gate_up.many]\n" + body, {"[moe_gate_up.many]", "operator.tokens"});
  expect_refused("[moe_gate_up.0]\n" + body, {"[moe_gate_up.0]", "operator.tokens"});
  expect_refused("[a.1]\n" + body + "[a.1]\n" + body, {"[a.1]", "repeated"});
  expect_refused("[a.1]\n" + body + "block = 32\n", {"block", "repeated"});
  expect_refused("[a.1]\nblock = 16\n", {"[a.1]", "lacks 'kernel'"});
  expect_refused("[a.1]\nkernel = gather\nblock = big\n", {"[a.1]", "block = big"});
  expect_refused("[a.1]\nkernel = gather\nblock = 512\n", {"[a.1]", "block = 512", "256"});
  expect_refused("[a.1]\n" + body + "splits = two\n", {"[a.1]", "splits = two"});
  expect_refused("[a.1]\n" + body + "us = soon\n", {"[a.1]", "us = soon"});
  expect_refused("[a.1]\nkernel = gather, swap_ab\nblock = 16\n", {"kernel is a list"});
  expect_refused("kernel = gather\n[a.1]\n" + body, {":1", "'kernel'", "before"});
  expect_refused("# empty\n", {"section"});
}

TEST(TileFile, IsNamedForTheShapeAndTheDevice) {
  const TileShape shape = {256, 8, 7168, 512, "fp8"};
  EXPECT_EQ(tile_path("tiles", "nvidia-h200", shape.name()),
            "tiles/nvidia-h200/E=256,topk=8,H=7168,N=512,dtype=fp8.ini");
  EXPECT_EQ(read_tiles("/nowhere/at/all.ini"), std::nullopt);
}

TEST(TileFile, ARoutingsEntryWinsWhereItIsAsNear) {
  const ScratchFolder folder;
  const ScopedVariable named("MOEGATE_TILES", folder.path());
  fs::create_directories(folder / "gpu");
  const auto write = [&](const std::string& shape, const std::string& text) {
    std::ofstream(folder / "gpu" / (shape + ".ini")) << text;
  };
  write("E=8", "[a.8]\nkernel = any8\n[a.64]\nkernel = any64\n");
  write("E=8,routing=replay:x_y", "[a.8]\nkernel = routed8\n[a.1024]\nkernel = routed1024\n");
  const auto kernel = [&](const std::string& routing, int tokens) {
    const TunedTile* tile = tuned_entry({"gpu", "E=8", routing}, "a", tokens, [](const auto&) {});
    return tile ? tile->config.kernel : "none";
  };
  EXPECT_EQ(kernel("", 8), "any8");
  EXPECT_EQ(kernel("uniform", 8), "any8");
  EXPECT_EQ(kernel("replay:x/y", 9), "routed8");
  EXPECT_EQ(kernel("replay:x/y", 60), "any64");
  EXPECT_EQ(kernel("replay:x/y", 900), "routed1024");
  EXPECT_EQ(tuned_entry({"gpu", "E=9", "uniform"}, "a", 8, [](const auto&) {}), nullptr);
  // An entry that does not fit is refused each time it is asked for.
  write("E=7", "[a.8]\nkernel = odd\n");
  const auto refuse = [](const TunedTile& tile) { usage_error("{}", tile.where); };
  EXPECT_THROW(tuned_entry({"gpu", "E=7", ""}, "a", 8, refuse), Error);
  EXPECT_THROW(tuned_entry({"gpu", "E=7", ""}, "a", 8, refuse), Error);
}

TEST(TileFile, ANamedFolderMustBeThere) {
  {
    const ScopedVariable folder("MOEGATE_TILES", "/nowhere/tiles");
    const std::string why = refusal_of([&] { tile_folder(); });
    EXPECT_NE(why.find("'/nowhere/tiles'"), std::string::npos) << why;
    EXPECT_NE(why.find("MOEGATE_TILES"), std::string::npos) << why;
    // When a worker starts, not at the first row with tiles.
    EXPECT_EQ(refusal_of([&] { use_tile_folder(""); }), why);
  }
  {
    const ScopedVariable folder("MOEGATE_TILES", testing::TempDir());
    EXPECT_EQ(tile_folder(), testing::TempDir());
  }
  EXPECT_EQ(tile_folder().filename(), "tiles");
}

}  // namespace
}  // namespace moegate::test
