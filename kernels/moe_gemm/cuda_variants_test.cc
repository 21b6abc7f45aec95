// SPDX-License-Identifier: Apache-2.0
// The CUDA variants against the truth on a real GPU.
#include <gtest/gtest.h>

#include <set>

#include "harness/worker/measure.h"
#include "kernels/moe_gemm/moe_gemm_testing.h"
#include "kernels/moe_gemm/swap_ab/swap_ab.h"

namespace moegate::moe_gemm {
namespace {

std::vector<Params> all_formats() {
  std::vector<Params> formats = kScaledOnce;
  formats.push_back({});
  formats.push_back({{"dtype", "bf16"}});
  return formats;
}

class CudaMoeGemm : public check::CudaVariants {
 protected:
  void expect_both_right(const Params& params, int k, int n) {
    expect_right(product_case<MoeGateUp>(params, k, n));
    expect_right(product_case<MoeDown>(params, k, n));
  }
  /// Tails of K and of N at every block and number of tokens. Each of K meets each of N somewhere:
  /// all of them everywhere take minutes, of which the truth takes most.
  void expect_tails_right(const Params& format, std::initializer_list<int> depths) {
    constexpr int kColumns[] = {40, 136, 584};
    size_t turn = 0;
    for (const char* block : {"16", "32", "64", "128"}) {
      for (const char* tokens : {"7", "300"}) {
        Params params = format;
        params.insert({{"tokens", tokens}, {"block", block}});
        for (const int k : depths) expect_both_right(params, k, kColumns[turn++ % 3]);
        if (depths.size() % 3 == 0) ++turn;
      }
    }
  }
};

// K: fewer groups than stages and than splits, as many, and more of both. N: below a tile, one, one
// and eight columns, two and a half.
TEST_F(CudaMoeGemm, VariantsAgreeWithTheTruth) {
  for (const char* block : {"16", "32", "64", "128"}) {
    for (const int k : {128, 384, 1024, 2176}) {
      for (const int n : {48, 128, 136, 320}) {
        expect_both_right({{"tokens", "7"}, {"block", block}}, k, n);
      }
    }
  }
}

// Rows of an expert: one short of a block, a block, one more; every row in the blocks of one
// expert, the others empty.
TEST_F(CudaMoeGemm, VariantsAgreeWhereBlocksFill) {
  for (const int block : {16, 32, 64, 128}) {
    for (const int tokens : {1, block - 1, block, block + 1, 3 * block}) {
      const Params params = {{"tokens", std::to_string(tokens)}, {"block", std::to_string(block)}};
      expect_both_right(params, 256, 264);
      Params one_expert = params;
      one_expert.insert({{"routing", "hot:1:1"}, {"topk", "1"}});
      expect_both_right(one_expert, 256, 264);
    }
  }
}

TEST_F(CudaMoeGemm, VariantsAgreeOnManyExpertsInGroupsOfTiles) {
  for (const char* tokens : {"16", "17", "300"}) {
    const Params params = {{"tokens", tokens}, {"experts", "96"}, {"topk", "8"}};
    expect_both_right(params, 640, 520);
  }
}

// More tiles than persistent blocks take in one round, and not a whole number of rounds: stages,
// rows that stay and turns of warpgroups go around many times.
TEST_F(CudaMoeGemm, PersistentBlocksAgreeOverManyRounds) {
  std::vector<Params> formats = all_formats();
  for (const Params& biased : biased_formats()) formats.push_back(biased);
  for (const char* block : {"16", "32", "64", "128"}) {
    for (Params params : formats) {
      params.insert({{"tokens", "300"}, {"experts", "96"}, {"topk", "8"}, {"block", block}});
      for (const Case& c :
           {product_case<MoeGateUp>(params, 256, 6152), product_case<MoeDown>(params, 256, 6152)}) {
        Bench bench(*device_, c);
        for (const char* name : {"resident_rows", "wide_tiles", "swap_ab", "tile/prefill/cluster=1",
                                 "tile/prefill/cluster=2"}) {
          const Result result = bench.verify(find_variant(c.op, Backend::cuda, name));
          EXPECT_TRUE(result.status == Status::ok || result.status == Status::unsupported)
              << c.key() << " " << name << ": " << result.why;
        }
      }
    }
  }
}

// Clusters of two in bf16: experts with one, two and three blocks of 128, and so pairs of blocks
// and single ones, whose columns are an even and an odd number of tiles, and many rounds.
TEST_F(CudaMoeGemm, PairsOfBlocksAgreeInBf16) {
  for (const int n : {200, 512, 6152}) {
    for (const char* routing : {"uniform", "zipf:0.67"}) {
      expect_both_right({{"tokens", "1024"},
                         {"experts", "12"},
                         {"topk", "2"},
                         {"block", "128"},
                         {"routing", routing},
                         {"dtype", "bf16"}},
                        264, n);
    }
  }
}

// K: 16 bytes, a slice of 64 and 8 more, whole slices, a last one of 40. N: below a tile, its
// width, a tail of 64 as that of 2880.
TEST_F(CudaMoeGemm, VariantsAgreeInBf16) {
  for (const char* block : {"16", "32", "64", "128"}) {
    for (const int k : {8, 72, 512, 1000}) {
      for (const int n : {200, 256, 832}) {
        expect_both_right({{"tokens", "40"}, {"block", block}, {"dtype", "bf16"}}, k, n);
      }
    }
  }
}

// K: a piece, a slice of 128, one and a half, more slices than stages and a rest. N: below a tile,
// gates that end within eight columns, tiles that end within one. Rows: one block, several.
TEST_F(CudaMoeGemm, VariantsAgreeInScalesOfChannelsAndTensors) {
  for (const Params& format : kScaledOnce) expect_tails_right(format, {16, 128, 192, 1104});
}

TEST_F(CudaMoeGemm, VariantsAgreeWithABias) {
  for (const Params& biased : biased_formats()) expect_tails_right(biased, {16, 192, 1104});
}

#ifdef MOEGATE_HAS_CUDA

/// Every cut of swap_ab, whichever its rule prefers, twice: the order of sums is fixed.
class CudaSwapAb : public CudaMoeGemm {
 protected:
  template <class P>
  void expect_every_cut_right(const Params& params, int k, int n) {
    const Case c = product_case<P>(params, k, n);
    P problem(*device_, c);
    for (const swap_ab::SwapAbTile& tile : swap_ab::swap_ab_tiles(problem.shape)) {
      const std::string what = c.key() + " " + text(tile);
      const Checked first = checked(problem, tile);
      EXPECT_TRUE(first.accuracy[0].ok) << what << ": " << first.accuracy[0].why;
      EXPECT_EQ(problem.broken_guard(), "") << what;
      EXPECT_EQ(checked(problem, tile).hash, first.hash) << what;
    }
  }
  Checked checked(MoeGemm& problem, const swap_ab::SwapAbTile& tile) {
    problem.poison();
    swap_ab::launch_swap_ab(problem.args(), tile, {device_->stream(), device_->facts()});
    device_->synchronize();
    return problem.check();
  }
};

// As many slices of K as splits, one more, uneven shares, both orders of tiles; bf16 has twice as
// many.
TEST_F(CudaSwapAb, EveryCutAgreesWithTheTruth) {
  for (const Params& format : all_formats()) {
    for (const char* block : {"16", "32", "64", "128"}) {
      Params params = format;
      params.insert({{"tokens", "7"}, {"block", block}});
      for (const int k : {128, 256, 384, 1024, 1152, 2176}) {
        for (const int n : {48, 136, 320}) {
          expect_every_cut_right<MoeGateUp>(params, k, n);
          expect_every_cut_right<MoeDown>(params, k, n);
        }
      }
    }
  }
}

// One of a cluster's blocks adds the bias, whichever share of the columns it has.
TEST_F(CudaSwapAb, EveryCutAddsABiasOnce) {
  for (const Params& biased : biased_formats()) {
    for (const char* block : {"16", "32", "64", "128"}) {
      for (const char* tokens : {"7", "300"}) {
        Params params = biased;
        params.insert({{"tokens", tokens}, {"block", block}});
        for (const int n : {48, 136, 1800}) {
          expect_every_cut_right<MoeGateUp>(params, 1408, n);
          expect_every_cut_right<MoeDown>(params, 1168, n);
        }
      }
    }
  }
}

// Rows of a block: one, odd and even, none of the second eight, all; other blocks are empty.
TEST_F(CudaSwapAb, EveryCutAgreesWhereBlocksFill) {
  for (const char* block : {"16", "32"}) {
    for (const int tokens : {1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33}) {
      const Params params = {{"tokens", std::to_string(tokens)},
                             {"block", block},
                             {"routing", "hot:1:1"},
                             {"topk", "1"}};
      expect_every_cut_right<MoeGateUp>(params, 1408, 136);
      expect_every_cut_right<MoeDown>(params, 640, 264);
    }
  }
}

// Clusters have many tiles each, so that inboxes and stages go around several times, and not all
// the same number of tiles.
TEST_F(CudaSwapAb, EveryCutAgreesOverManyRounds) {
  for (const char* block : {"16", "32"}) {
    for (const int k : {640, 1408}) {
      const Params params = {{"tokens", "300"}, {"experts", "96"}, {"topk", "8"}, {"block", block}};
      expect_every_cut_right<MoeGateUp>(params, k, 1800);
      expect_every_cut_right<MoeDown>(params, k, 1800);
      Params bf16 = params, channel = params, tensor = params;
      bf16["dtype"] = "bf16";
      channel["scaling"] = "channel";
      tensor["scaling"] = "tensor";
      expect_every_cut_right<MoeDown>(bf16, k + 8, 1800);
      expect_every_cut_right<MoeDown>(channel, k + 16, 1800);
      expect_every_cut_right<MoeGateUp>(tensor, k, 1800);
      channel["dtype"] = tensor["dtype"] = "int8";
      expect_every_cut_right<MoeDown>(channel, k + 16, 1800);
      expect_every_cut_right<MoeGateUp>(tensor, k, 1800);
    }
  }
}

// Sums of int8 are exact in int32, larger ones than fp32 holds, too: no cut and no order shows.
TEST_F(CudaSwapAb, EveryCutHasTheSameBitsInInt8) {
  for (const char* block : {"16", "128"}) {
    const Case c = large_sums_case({{"block", block}});
    MoeDown problem(*device_, c);
    give_large_sums(*device_, problem);
    std::set<uint64_t> hashes;
    for (const swap_ab::SwapAbTile& tile : swap_ab::swap_ab_tiles(problem.shape)) {
      const Checked result = checked(problem, tile);
      EXPECT_TRUE(result.accuracy[0].ok) << text(tile) << ": " << result.accuracy[0].why;
      hashes.insert(result.hash);
    }
    EXPECT_EQ(hashes.size(), 1u) << c.key();
  }
}

#endif

/// What an after of SGLang PR 10567 changes is where rows lie, not what is computed: its output is
/// that of its before, bit by bit.
class CudaMoeGemmOrder : public CudaMoeGemm {
 protected:
  template <class P>
  void expect_same_bits(const std::string& before, const std::string& after, const Params& params,
                        int k, int n) {
    const Case c = product_case<P>(params, k, n);
    Bench bench(*device_, c);
    const auto hash = [&](const std::string& variant) {
      const Result result = bench.verify(find_variant(c.op, Backend::cuda, variant));
      EXPECT_EQ(result.status, Status::ok) << c.key() << " " << variant << ": " << result.why;
      return result.seeds.empty() ? 0 : result.seeds[0].hash;
    };
    EXPECT_EQ(hash(before), hash(after)) << c.key();
  }
};

// Fewer groups of K than stages, as many, and several times around the ring; blocks that are full,
// and ones with a single row.
TEST_F(CudaMoeGemmOrder, ChangesNoBits) {
  for (const char* block : {"16", "32", "64", "128"}) {
    for (const char* tokens : {"1", "7", "300"}) {
      const Params params = {{"tokens", tokens}, {"block", block}};
      for (const int k : {128, 512, 1152}) {
        expect_same_bits<MoeGateUp>("scalar_b_scale", "sorted_rows", params, k, 264);
        expect_same_bits<MoeDown>("scalar_b_scale", "tma_down", params, k, 264);
      }
    }
    const Params bf16 = {{"block", block}, {"dtype", "bf16"}};
    expect_same_bits<MoeGateUp>("gather", "sorted_rows", bf16, 200, 264);
    // A row shorter than a slice, with and without a rest, and several times around the ring.
    for (const int k : {8, 200, 512, 1152}) {
      expect_same_bits<MoeDown>("gather", "tma_down", bf16, k, 264);
    }
  }
}

// 256 columns are multiplied over 128 of K at a time and added up in fp32, as in wide_tiles: who
// copies and writes changes no bits, nor does the order of x or of the output. Rows of an expert:
// in one half of a block, in both; an odd number of blocks; one group of K, more than stages, and
// such that factors come for one, two and four; columns that no tile fills, and three tiles.
TEST_F(CudaMoeGemmOrder, PrefillHasTheBitsOfWideTiles) {
  for (const char* tokens : {"40", "300"}) {
    const Params params = {{"tokens", tokens}, {"block", "128"}};
    for (const int k : {128, 512, 1152, 1280}) {
      for (const int n : {136, 768}) {
        for (const char* cluster : {"tile/prefill/cluster=1", "tile/prefill/cluster=2"}) {
          expect_same_bits<MoeGateUp>("wide_tiles", cluster, params, k, n);
          expect_same_bits<MoeDown>("wide_tiles", cluster, params, k, n);
        }
        expect_same_bits<MoeDown>("wide_tiles", "prefill_sorted", params, k, n);
        expect_same_bits<MoeGateUp>("wide_tiles", "prefill_contiguous", params, k, n);
        expect_same_bits<MoeDown>("wide_tiles", "prefill_contiguous", params, k, n);
      }
    }
  }
}

// More tiles than go around at once, in strips of rows, with factors for two and four stages.
TEST_F(CudaMoeGemmOrder, PrefillHasTheBitsOfWideTilesOverManyRounds) {
  const Params params = {{"tokens", "300"}, {"experts", "96"}, {"topk", "8"}, {"block", "128"}};
  for (const int k : {512, 768}) {
    for (const char* variant : {"tile/prefill/cluster=1", "tile/prefill/cluster=2",
                                "prefill_sorted", "prefill_contiguous"}) {
      expect_same_bits<MoeDown>("wide_tiles", variant, params, k, 6152);
    }
  }
}

// Eight blocks times 20 columns: a round of 132 SMs and 28 tiles more, which are divided. Half of
// the blocks have no second half.
TEST_F(CudaMoeGemmOrder, PrefillHasTheBitsOfWideTilesWhereTilesAreDivided) {
  const Params params = {{"tokens", "300"}, {"experts", "4"}, {"topk", "2"}, {"block", "128"}};
  for (const char* variant : {"tile/prefill/cluster=1", "tile/prefill/cluster=2", "prefill_sorted",
                              "prefill_contiguous"}) {
    expect_same_bits<MoeDown>("wide_tiles", variant, params, 512, 5000);
  }
}

// Exact sums, and the same order of factors behind them.
TEST_F(CudaMoeGemmOrder, PrefillHasTheBitsOfSwapAbInInt8) {
  const Params params = {
      {"tokens", "300"}, {"block", "128"}, {"dtype", "int8"}, {"scaling", "channel"}};
  for (const int k : {48, 1168}) {
    for (const char* cluster : {"tile/prefill/cluster=1", "tile/prefill/cluster=2"}) {
      expect_same_bits<MoeGateUp>("swap_ab", cluster, params, k, 584);
      expect_same_bits<MoeDown>("swap_ab", cluster, params, k, 584);
    }
  }
}

}  // namespace
}  // namespace moegate::moe_gemm
