// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/tile_merge.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "harness/base/files.h"
#include "harness/base/test_fixture.h"

namespace moegate::test {
namespace {

TunedTile tile(const std::string& op, int tokens, int block) {
  return {op, tokens, {"new", block, {}}, 5, ""};
}

constexpr const char* kFile = R"(# Title
# Device class: nvidia-h200
# by hand

# down: few tokens
[moe_down.1]
kernel = old  # why
block = 16
us = 7.1

[moe_down.8]
kernel = old
block = 16

# up
# and more
[moe_gate_up.8]
kernel = old
block = 16

)";

MergedTiles merged(const std::vector<TunedTile>& tuned) {
  return merge_tiles(read_tile_text("t.ini", kFile, "nvidia-h200"), {"Title", "anew"}, tuned);
}

TEST(TileMerge, WithoutAFileAllIsNew) {
  const std::vector<TunedTile> tiles = {tile("moe_down", 1, 16), tile("moe_down", 8, 16),
                                        tile("moe_gate_up", 1, 16)};
  const MergedTiles all = merge_tiles({}, {"Title"}, tiles);
  EXPECT_EQ(all.text, format_tiles({"Title"}, tiles));
  EXPECT_EQ(all.added, 3u);
  EXPECT_EQ(all.replaced + all.kept, 0u);
}

TEST(TileMerge, WhatWasTunedIsReplacedAndTheRestStaysAsItIsWritten) {
  const MergedTiles some =
      merged({tile("moe_down", 4, 32), tile("moe_down", 8, 16), tile("moe_gate_up", 64, 16)});
  EXPECT_EQ(some.text, R"(# Title
# Device class: nvidia-h200
# by hand

# down: few tokens
# anew

[moe_down.1]
kernel = old  # why
block = 16
us = 7.1

[moe_down.4]
kernel = new
block = 32
us = 5.00

[moe_down.8]
kernel = new
block = 16
us = 5.00

# up
# and more
[moe_gate_up.8]
kernel = old
block = 16

[moe_gate_up.64]
kernel = new
block = 16
us = 5.00
)");
  EXPECT_EQ(some.replaced, 1u);
  EXPECT_EQ(some.added, 2u);
  EXPECT_EQ(some.kept, 2u);
  EXPECT_TRUE(some.apart.empty());
}

TEST(TileMerge, CommittedFilesStayByteForByte) {
  const std::filesystem::path folder = std::filesystem::path(MOEGATE_SOURCE_DIR) / "suites/tiles";
  int files = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder)) {
    if (file.path().extension() != ".ini") continue;
    ++files;
    const std::string text = read_file(file.path()), path = file.path().string();
    const std::string klass = file.path().parent_path().filename();
    EXPECT_EQ(merge_tiles(read_tile_text(path, text, klass), {}, {}).text, text) << path;
  }
  EXPECT_GE(files, 4);
}

TEST(TileMerge, AnotherOperatorComesLast) {
  const std::string text = merged({tile("moe_sum", 1, 16), tile("moe_sum", 8, 16)}).text;
  EXPECT_LT(text.find("[moe_gate_up.8]"), text.find("[moe_sum.1]"));
  EXPECT_LT(text.find("[moe_sum.1]"), text.find("[moe_sum.8]"));
}

TEST(TileMerge, WhereNothingIsKeptNothingIsToldOfIt) {
  const MergedTiles none =
      merged({tile("moe_down", 1, 16), tile("moe_down", 8, 16), tile("moe_gate_up", 8, 16)});
  EXPECT_EQ(none.replaced, 3u);
  EXPECT_EQ(none.kept, 0u);
  EXPECT_TRUE(none.text.starts_with("# Title\n# anew\n\n[moe_down.1]\n")) << none.text;
}

TEST(TileMerge, WhatWasMergedIsMergedAgainToTheSame) {
  const std::vector<TunedTile> tuned = {tile("moe_down", 4, 32)};
  const std::string once = merged(tuned).text;
  const MergedTiles twice =
      merge_tiles(read_tile_text("t.ini", once, "nvidia-h200"), {"Title", "anew"}, tuned);
  EXPECT_EQ(twice.text, once);
  EXPECT_EQ(twice.replaced, 1u);
}

TEST(TileMerge, NamesWhatIsKeptWithAnotherBlockThanItsLayers) {
  const std::vector<TunedTile> apart =
      merged({tile("moe_gate_up", 8, 64), tile("moe_gate_up", 1, 16)}).apart;
  ASSERT_EQ(apart.size(), 1u);
  EXPECT_EQ(apart[0].op, "moe_down");
  EXPECT_EQ(apart[0].tokens, 8);
  EXPECT_TRUE(merged({tile("moe_gate_up", 8, 64), tile("moe_down", 8, 64)}).apart.empty());
}

TEST(TileMerge, ADamagedOrForeignFileIsRefusedWithARemedy) {
  const auto refused = [](const std::string& text, const std::string& klass) {
    return refusal_of([&] { read_tile_text("t.ini", text, klass); });
  };
  EXPECT_EQ(refused(kFile, "nvidia-h200"), "accepted");
  EXPECT_EQ(refused("[op.1]\nkernel = k\nblock = 16\n", "nvidia-b200"), "accepted")
      << "of no class";
  for (const std::string text : {"", "# only this\n", "{\"1\": 2}\n", "[op.1]\nblock = 16\n"}) {
    EXPECT_NE(refused(text, "nvidia-h200").find("t.ini:"), std::string::npos) << text;
    EXPECT_NE(refused(text, "nvidia-h200").find("another --out"), std::string::npos) << text;
  }
  EXPECT_EQ(
      refused(kFile, "nvidia-h200-nvl"),
      "t.ini: its comment says '# Device class: nvidia-h200', and the class of this device is "
      "nvidia-h200-nvl; remove the file, or name another --out");
}

}  // namespace
}  // namespace moegate::test
