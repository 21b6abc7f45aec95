// SPDX-License-Identifier: Apache-2.0
// Which tile configuration a shape gets, what a bad file is told, and variant `tuned` with it.
#include "kernels/moe_gemm/tiles/tile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "harness/base/environment.h"
#include "harness/base/test_fixture.h"
#include "harness/device/open.h"
#include "kernels/moe_gemm/moe_gemm_testing.h"

namespace moegate::moe_gemm::tiles {
namespace {
namespace fs = std::filesystem;

/// A folder of tile configurations that is MOEGATE_TILES for the test; files of the cases that
/// moe_gemm_case() makes. A process reads a file once, so each test has its own folder.
class TileTest : public testing::Test {
 protected:
  TileTest() { setenv("MOEGATE_TILES", folder_.path().c_str(), 1); }
  ~TileTest() override { unsetenv("MOEGATE_TILES"); }

  void write(const std::string& text, const char* shape = kShape) const {
    fs::create_directories(folder_ / device_->facts().klass);
    std::ofstream(folder_ / device_->facts().klass / (std::string(shape) + ".ini")) << text;
  }
  TileChoice best(const Params& params) const {
    const Case c = moe_gemm_case<MoeGateUp>(params);
    return best_tile(MoeGateUp::shape_of(c), c, device_->facts());
  }
  void expect_refused(const std::string& text, const std::vector<std::string>& parts) const {
    write(text);
    const std::string message = test::refusal_of([&] { best({}); });
    EXPECT_NE(message.find(kShape), std::string::npos) << message;
    for (const std::string& part : parts) {
      EXPECT_NE(message.find(part), std::string::npos) << "'" << part << "' in: " << message;
    }
  }

  static constexpr const char* kShape = "E=8,topk=3,H=256,N=128,dtype=fp8";
  std::unique_ptr<Device> device_ = open_host_device();
  test::ScratchFolder folder_;
};

constexpr const char* kBoth = R"([moe_gate_up.8]
kernel = sorted_rows
block = 5
[moe_gate_up.100]
kernel = split_k2_fp32
block = 64
[moe_down.8]
kernel = gather
block = 5
)";

TEST_F(TileTest, TheFilesNearestTokenCountDecides) {
  write(kBoth);
  EXPECT_EQ(best({}).path, "tuned: sorted_rows/block=5 for 8 tokens");
  EXPECT_EQ(best({{"tokens", "99"}}).path, "tuned: split_k2_fp32/block=64 for 100 tokens");
  EXPECT_EQ(best({{"topk", "2"}}).path, "default: gather/block=16");  // another shape, no file
  const Case down = moe_gemm_case<MoeDown>({});
  EXPECT_EQ(best_tile(MoeDown::shape_of(down), down, device_->facts()).path,
            "tuned: gather/block=5 for 8 tokens");
}

TEST_F(TileTest, ARankHasTheTilesOfItsEvenShare) {
  write(
      "[moe_gate_up.8]\nkernel = sorted_rows\nblock = 5\n[moe_gate_up.80]\nkernel = gather\n"
      "block = 7\n",
      "E=4,topk=1,H=256,N=128,dtype=fp8");
  const auto path = [&](const char* rank, const char* tokens) {
    return best({{"rank", rank}, {"tokens", tokens}, {"topk", "3"}, {"experts", "12"}}).path;
  };
  EXPECT_EQ(path("1/3", "8"), "tuned: sorted_rows/block=5 for 8 tokens");
  EXPECT_EQ(path("busiest/3", "79"), "tuned: gather/block=7 for 80 tokens");
  EXPECT_EQ(path("0/1", "8"), "default: gather/block=16");
  const auto c = moe_gemm_case<MoeGateUp>({{"rank", "1/2"}, {"tokens", "8"}, {"topk", "4"}});
  EXPECT_EQ(tile_shape(c).name(), "E=4,topk=2,H=256,N=128,dtype=fp8");
}

TEST_F(TileTest, OtherScaleFactorsHaveFilesOfTheirOwn) {
  const Params channel = {{"scaling", "channel"}}, tensor = {{"scaling", "tensor"}};
  const std::string name = tile_shape(moe_gemm_case<MoeGateUp>(channel)).name();
  EXPECT_TRUE(name.ends_with(",dtype=fp8-channel")) << name;
  write("[moe_gate_up.8]\nkernel = sorted_rows\nblock = 5\n");
  write("[moe_gate_up.8]\nkernel = split_k2_fp32\nblock = 7\n", name.c_str());
  EXPECT_EQ(best({}).path, "tuned: sorted_rows/block=5 for 8 tokens");
  EXPECT_EQ(best(channel).path, "tuned: split_k2_fp32/block=7 for 8 tokens");
  EXPECT_EQ(best(tensor).path, "default: gather/block=16");
  const Params int8 = {{"dtype", "int8"}, {"scaling", "channel"}};
  const std::string int8_name = tile_shape(moe_gemm_case<MoeGateUp>(int8)).name();
  EXPECT_TRUE(int8_name.ends_with(",dtype=int8-channel")) << int8_name;
  write("[moe_gate_up.8]\nkernel = gather\nblock = 9\n", int8_name.c_str());
  EXPECT_EQ(best(int8).path, "tuned: gather/block=9 for 8 tokens");
  EXPECT_EQ(best({{"dtype", "int8"}, {"scaling", "tensor"}}).path, "default: gather/block=16");
}

TEST_F(TileTest, ProductsWithABiasHaveFilesOfTheirOwn) {
  const Params bias = {{"scaling", "channel"}, {"bias", "1"}};
  const std::string name = tile_shape(moe_gemm_case<MoeGateUp>(bias)).name();
  EXPECT_TRUE(name.ends_with(",dtype=fp8-channel-bias")) << name;
  write("[moe_gate_up.8]\nkernel = split_k2_fp32\nblock = 7\n", name.c_str());
  EXPECT_EQ(best(bias).path, "tuned: split_k2_fp32/block=7 for 8 tokens");
  EXPECT_EQ(best({{"scaling", "channel"}}).path, "default: gather/block=16");
  EXPECT_EQ(best({{"dtype", "bf16"}, {"bias", "1"}}).path, "default: gather/block=16");
}

TEST_F(TileTest, TheDefaultBlockOfARankIsByItsRows) {
  const auto block = [&](const char* rank) {
    return best({{"tokens", "128"}, {"topk", "1"}, {"routing", "hot:1:1"}, {"rank", rank}})
        .config.block;
  };
  EXPECT_EQ(block("busiest/8"), 128) << "one expert has all rows";
  EXPECT_EQ(best({{"tokens", "64"}, {"topk", "1"}, {"routing", "balanced"}, {"rank", "1/8"}})
                .config.block,
            16);
}

TEST_F(TileTest, AnOperatorThatTheFileLacksGetsTheDefault) {
  write("[moe_gate_up.8]\nkernel = sorted_rows\nblock = 5\n");
  const Case down = moe_gemm_case<MoeDown>({});
  EXPECT_EQ(best_tile(MoeDown::shape_of(down), down, device_->facts()).path,
            "default: gather/block=16");
}

TEST(UsualBlock, IsTheSmallestThatTakesMostExpertsRowsInOnePass) {
  using Rows = std::vector<double>;
  const auto block = [](const Rows& rows, MoeGemmShape shape = {.dtype = DType::e4m3}) {
    return usual_block(shape, rows);
  };
  EXPECT_EQ(block(Rows(8, 1)), 16);
  EXPECT_EQ(block(Rows(8, 16)), 16);
  EXPECT_EQ(block(Rows(8, 17)), 32);
  Rows one_in_two_hundred(200, 1);
  one_in_two_hundred[7] = 17;
  EXPECT_EQ(block(one_in_two_hundred), 16) << "which may pass twice";
  EXPECT_EQ(block({1, 17}), 32);
  EXPECT_EQ(block(Rows(8, 4000)), 128);
  EXPECT_EQ(block({0, 0, 0, 65}), 128) << "an expert without rows has no block";
  EXPECT_EQ(block({}), 16);
}

TEST(UsualBlock, OfAHundredAndTwentyEightRowsIsForPrefillsTile) {
  const std::vector<double> rows(8, 40);
  EXPECT_EQ(usual_block({.k = 7168, .dtype = DType::e4m3}, rows), 128);
  EXPECT_EQ(usual_block({.k = 128, .down = true, .dtype = DType::e4m3}, rows), 64)
      << "which one slice of K is too short for";
  EXPECT_EQ(usual_block({.k = 7168, .dtype = DType::bf16}, rows), 64) << "which has none";
}

TEST_F(TileTest, TheDefaultBlockIsByTheRowsThatARoutingGives) {
  const auto block = [&](const char* tokens, const char* routing) {
    return best({{"tokens", tokens}, {"topk", "1"}, {"routing", routing}}).config.block;
  };
  EXPECT_EQ(block("128", "balanced"), 16) << "16 rows each over 8 experts";
  EXPECT_EQ(block("128", "uniform"), 32) << "half of them get more";
  EXPECT_EQ(block("128", "hot:1:1"), 128) << "one gets all";
  EXPECT_EQ(block("8192", "balanced"), 128);
}

TEST_F(TileTest, BlockTunedBecomesTheFilesBlock) {
  write(kBoth);
  const Case c = moe_gemm_case<MoeGateUp>({{"block", "tuned"}});
  EXPECT_NO_THROW(MoeGateUp::validate(c));
  EXPECT_EQ(resolved(c, device_->facts()).get("block"), "5");
  EXPECT_EQ(resolved(moe_gemm_case<MoeDown>({{"block", "32"}}), device_->facts()).get("block"),
            "32");
}

TEST_F(TileTest, TunedLaunchesWhatTheFileSays) {
  write(kBoth);
  const Variant& tuned = find_variant("moe_gate_up", Backend::host, "tuned");
  for (const char* tokens : {"7", "90"}) {
    Bench bench(*device_, moe_gemm_case<MoeGateUp>({{"block", "tuned"}, {"tokens", tokens}}));
    const Result result = bench.verify(tuned);
    EXPECT_EQ(result.status, Status::ok) << result.why;
    EXPECT_EQ(result.path.find("tuned: "), 0u) << result.path;
  }
  MoeGateUp problem(*device_, moe_gemm_case<MoeGateUp>({{"block", "5"}}));
  tuned.prepare(problem, {nullptr, device_->facts()});
  EXPECT_EQ(problem.tile->config.kernel, "sorted_rows");
}

TEST_F(TileTest, AnotherBlockThanTheFilesIsUnsupported) {
  write(kBoth);
  Bench bench(*device_, moe_gemm_case<MoeGateUp>({{"block", "16"}}));
  const Result result = bench.verify(find_variant("moe_gate_up", Backend::host, "tuned"));
  EXPECT_EQ(result.status, Status::unsupported);
  EXPECT_NE(result.why.find("block=5 for 8 tokens"), std::string::npos) << result.why;
  EXPECT_NE(result.why.find("block = tuned"), std::string::npos) << result.why;
}

TEST_F(TileTest, RefusesWhatThisProgramHasNot) {
  expect_refused("[moe_gate_up.8]\nkernel = swap_abc\nblock = 16\n",
                 {"[moe_gate_up.8]", "swap_abc", "there are gather, sorted_rows, split_k2_fp32"});
  expect_refused("[moe_gate_up.8]\nkernel = gather\nblock = 16\nsplts = 2\n",
                 {"[moe_gate_up.8]", "splts = 2", "kernel, block, us"});
  expect_refused("[moe_sum.8]\nkernel = gather\nblock = 16\n",
                 {"[moe_sum.8]", "moe_sum", "moe_gate_up and moe_down"});
  expect_refused("[moe_gate_up.8]\nkernel = gather\nblock = big\n", {"block = big"});
  // Another token count's entry counts, too.
  expect_refused("[moe_gate_up.8]\nkernel = gather\nblock = 16\n[moe_down.4]\nkernel = x\nblock=1",
                 {"[moe_down.4]", "kernel = x"});
}

/// Of a file's name, in fp8 with factors of blocks.
MoeGemmShape fp8_shape(const TileShape& file) {
  MoeGemmShape s{};
  s.experts = file.experts;
  s.topk = file.topk;
  s.k = file.hidden;
  s.n = 2 * file.inter;
  s.dtype = DType::e4m3;
  return s;
}

TEST(CommittedTiles, FitThisProgram) {
  std::error_code none;
  for (const auto& entry : fs::recursive_directory_iterator(home() / "suites" / "tiles", none)) {
    const std::string name = entry.path().stem().string();
    if (entry.path().extension() != ".ini" || !name.starts_with("E=")) continue;
    TileShape shape{};
    ASSERT_EQ(std::sscanf(name.c_str(), "E=%d,topk=%d,H=%d,N=%d,dtype=fp8", &shape.experts,
                          &shape.topk, &shape.hidden, &shape.inter),
              4)
        << name;
    shape.dtype = "fp8";
    EXPECT_EQ(shape.name(), name) << "a format that this test does not know";
    const bool host = entry.path().parent_path().filename().string().starts_with("host-");
    const auto tiles = read_tiles(entry.path());
#ifndef MOEGATE_HAS_CUDA
    if (!host) continue;
#endif
    for (const TunedTile& tile : *tiles) {
      EXPECT_EQ(fault_of(tile, fp8_shape(shape), host ? Backend::host : Backend::cuda), "")
          << tile.where;
    }
  }
}

TEST(CommittedTiles, NameVariantsThatTunedMayLaunch) {
  std::error_code none;
  for (const auto& entry : fs::recursive_directory_iterator(home() / "suites" / "tiles", none)) {
    const std::string name = entry.path().stem().string();
    if (entry.path().extension() != ".ini" || name.starts_with("E=")) continue;
#ifndef MOEGATE_HAS_CUDA
    if (!entry.path().parent_path().filename().string().starts_with("host-")) continue;
#endif
    const auto tiles = read_tiles(entry.path());
    for (const TunedTile& tile : *tiles) {
      EXPECT_EQ(tile.op, name.substr(0, name.find(','))) << tile.where;
      EXPECT_TRUE(std::ranges::any_of(all_variants(), [&](const Variant& v) {
        return v.op == tile.op && v.name == tile.config.variant();
      })) << tile.where;
      EXPECT_EQ(tile.config.block, 0) << tile.where;
    }
  }
}

/// An entry for CUDA, of a shape like DeepSeek-R1's on one of eight GPUs.
std::string cuda_fault(const std::string& text) {
  return fault_of(parse_tiles("t.ini", text).at(0), fp8_shape({256, 8, 7168, 256, "fp8"}),
                  Backend::cuda);
}

TEST(CudaTiles, KnobsAndBlocksAreThoseCompiled) {
#ifndef MOEGATE_HAS_CUDA
  GTEST_SKIP() << "built without CUDA";
#endif
  const auto fault = [](const std::string& op, int block, int splits, int columns) {
    return cuda_fault(
        fmt::format("[{}.8]\nkernel = swap_ab\nblock = {}\nsplits = {}\ncolumns = {}\n", op, block,
                    splits, columns));
  };
  EXPECT_EQ(fault("moe_gate_up", 16, 4, 64), "");
  EXPECT_NE(fault("moe_down", 128, 1, 64).find("columns=64/splits=1 does not fit block = 128"),
            std::string::npos);
  EXPECT_NE(fault("moe_gate_up", 16, 3, 128).find("splits=3 is not compiled"), std::string::npos);
  EXPECT_NE(fault("moe_gate_up", 64, 2, 128).find("block = 64"), std::string::npos);
  EXPECT_NE(fault("moe_down", 16, 8, 128).find("K = 256"), std::string::npos);
  EXPECT_NE(fault("moe_down", 48, 1, 128).find("block = 48"), std::string::npos);
  EXPECT_NE(cuda_fault("[moe_down.8]\nkernel = swap_ab\nblock = 16\nsplits = 2\n")
                .find("lacks 'columns'"),
            std::string::npos);
  EXPECT_EQ(cuda_fault("[moe_down.8]\nkernel = resident_rows\nblock = 16\n"), "");
  EXPECT_EQ(cuda_fault("[moe_down.8]\nkernel = wide_tiles\nblock = 64\n"), "");
  EXPECT_EQ(cuda_fault("[moe_down.8]\nkernel = prefill\nblock = 128\ncluster = 2\n"), "");
  EXPECT_NE(cuda_fault("[moe_down.8]\nkernel = prefill\nblock = 64\ncluster = 1\n")
                .find("block = 64 is not 128"),
            std::string::npos);
  EXPECT_NE(cuda_fault("[moe_down.8]\nkernel = prefill\nblock = 128\ncluster = 4\n")
                .find("cluster=4 is not compiled"),
            std::string::npos);
}

/// On the GPU at hand, without files.
class CudaTileDefaults : public check::CudaVariants {
 protected:
  template <class P = MoeGateUp>
  TileConfig choice(const char* tokens, const char* dtype, const char* inter = "256") const {
    DeviceFacts device = device_->facts();
    device.klass = "of-a-test";
    const Case c = moe_gemm_case<P>({{"tokens", tokens},
                                     {"experts", "256"},
                                     {"topk", "8"},
                                     {"hidden", "7168"},
                                     {"inter", inter},
                                     {"dtype", dtype}});
    return best_tile(P::shape_of(c), c, device).config;
  }
};

TEST_F(CudaTileDefaults, ByRowsPerExpertElseGather) {
  EXPECT_EQ(choice("1", "fp8").kernel, "swap_ab");
  EXPECT_GT(choice("1", "fp8").knobs.at("splits"), 1);
  EXPECT_EQ(choice("512", "fp8").kernel, "swap_ab");
  EXPECT_EQ(choice("1024", "fp8"), (TileConfig{"prefill", 128, {{"cluster", 1}}}));
  EXPECT_EQ(choice("1024", "bf16"), (TileConfig{"wide_tiles", 64, {}}));
  EXPECT_EQ(choice("4096", "fp8"), (TileConfig{"prefill", 128, {{"cluster", 2}}}));
  EXPECT_EQ(choice<MoeDown>("4096", "fp8"), (TileConfig{"prefill", 128, {{"cluster", 2}}}));
  EXPECT_EQ(choice<MoeDown>("4096", "fp8", "768"), (TileConfig{"prefill", 128, {{"cluster", 1}}}));
}

TEST_F(CudaTileDefaults, RowsStayResidentFromARowPerExpertOn) {
  EXPECT_EQ(choice<MoeDown>("31", "fp8").kernel, "swap_ab");
  EXPECT_EQ(choice<MoeDown>("32", "fp8").kernel, "resident_rows");
  EXPECT_EQ(choice<MoeDown>("32", "fp8", "768").kernel, "swap_ab") << "a K of six groups";
}

}  // namespace
}  // namespace moegate::moe_gemm::tiles
