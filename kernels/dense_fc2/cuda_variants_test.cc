// SPDX-License-Identifier: Apache-2.0
// The CUDA variants of dense_fc2 against the truth on a real GPU; which cases they take, wherever
// they are built.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "kernels/dense_fc2/dense_fc2_testing.h"

namespace moegate::dense_fc2 {
namespace {

/// A case in both forms of scale factors and all steps of K that divide I; a quarter of its rows
/// have no alpha, and check() wants them to be 0 to the bit.
std::vector<Case> forms(Params params, int inter) {
  params["inter"] = std::to_string(inter);
  params["alphas"] = "edges";
  std::vector<Case> cases;
  for (const char* scales : {"tensor", "block"}) {
    for (const int k_tile : {128, 256}) {
      if (inter % k_tile != 0) continue;
      params["scales"] = scales;
      params["k_tile"] = std::to_string(k_tile);
      cases.push_back(dense_fc2_case(params));
    }
  }
  return cases;
}

class CudaDenseFc2 : public check::CudaVariants {
 protected:
  void expect_forms_right(const Params& params, int inter) {
    for (const Case& c : forms(params, inter)) expect_right(c);
  }

  Checked checked(DenseFc2& problem, const Case& c, const std::string& variant) {
    problem.poison();
    find_variant(c.op, Backend::cuda, variant)
        .launch(problem, {device_->stream(), device_->facts()});
    device_->synchronize();
    return problem.check();
  }

  /// The output is right, twice to the bit, and to the bit the same of all `variants`.
  void expect_same_bits(DenseFc2& problem, const Case& c,
                        const std::vector<std::string>& variants) {
    const uint64_t hash = checked(problem, c, variants.front()).hash;
    for (const std::string& variant : variants) {
      const Checked result = checked(problem, c, variant);
      EXPECT_TRUE(result.accuracy[0].ok) << c.key() << " " << variant << result.accuracy[0].why;
      EXPECT_EQ(result.hash, hash) << c.key() << " " << variant;
      EXPECT_EQ(problem.broken_guard(), "") << c.key() << " " << variant;
    }
  }
};

constexpr double kAlwaysWhole = 1e12;  // products up to which the truth is the whole output
const std::vector<std::string> kPerKTile = {"alpha_per_k_tile", "alpha_per_k_tile_n64",
                                            "alpha_from_global"};
const std::vector<std::string> kPerExpert = {"alpha_per_expert", "alpha_per_expert_n64",
                                             "alpha_per_expert_n64_acc3",
                                             "alpha_per_expert_cluster2", "alpha_ring_per_expert"};

// Rows: one, within a warp's, a warpgroup's, a block's and a cluster's, all of these and one more.
TEST_F(CudaDenseFc2, VariantsAgreeAtAllRows) {
  for (const int tokens : {1, 7, 63, 64, 65, 127, 128, 129, 256, 300}) {
    const Params params = {
        {"tokens", std::to_string(tokens)}, {"experts", "3"}, {"topk", "2"}, {"hidden", "136"}};
    expect_forms_right(params, 256);
  }
}

// Columns: below a tile, within one of 64, more than one of 128 by 8, several; the second half of
// the weights' tile, that another block of a cluster loads, is empty.
TEST_F(CudaDenseFc2, VariantsAgreeAtAllColumns) {
  for (const int hidden : {8, 64, 72, 128, 136, 264, 520}) {
    const Params params = {
        {"tokens", "130"}, {"experts", "3"}, {"topk", "2"}, {"hidden", std::to_string(hidden)}};
    expect_forms_right(params, 256);
  }
}

// Fewer steps of K than stages, and several times around the rings; odd and even numbers of steps
// of an expert, of experts, and of steps of the whole.
TEST_F(CudaDenseFc2, VariantsAgreeAtAllDepths) {
  for (const int experts : {1, 2, 3, 40}) {
    for (const int inter : {128, 256, 384, 1024}) {
      if (experts == 40 && inter == 1024) continue;  // K of 15360 is long enough
      const Params params = {{"tokens", "65"},
                             {"experts", std::to_string(experts)},
                             {"topk", std::to_string(std::min(experts, 3))}};
      expect_forms_right(params, inter);
    }
  }
}

// More tiles than blocks take in one round, and not a whole number of rounds: rings, that a tile
// does not go around a whole number of times, continue from one tile to the next.
TEST_F(CudaDenseFc2, PersistentBlocksAgreeOverManyRounds) {
  const Params params = {{"tokens", "300"}, {"experts", "5"}, {"topk", "1"}, {"hidden", "7176"}};
  for (const int inter : {128, 256}) {
    for (const Case& c : forms(params, inter)) {
      DenseFc2 problem(*device_, c, kAlwaysWhole);
      expect_same_bits(problem, c, kPerKTile);
      expect_same_bits(problem, c, kPerExpert);
    }
  }
}

// Where an expert is one step of K, or every 128 of K has scale factors, before and after differ
// only in how alpha comes.
TEST_F(CudaDenseFc2, AStepPerExpertMakesBeforeAndAfterTheSame) {
  std::vector<std::string> all = kPerKTile;
  all.insert(all.end(), kPerExpert.begin(), kPerExpert.end());
  const Params params = {{"tokens", "200"}, {"experts", "24"}, {"hidden", "264"}};
  for (const Case& c : forms(params, 256)) {
    if (c.get("scales") == "tensor" && c.get("k_tile") == "128") continue;
    DenseFc2 problem(*device_, c);
    expect_same_bits(problem, c, all);
  }
}

// Experts that some, one or no tokens need, more experts than a batch of lists has and than the
// ring of batches: one token, a word of tokens and one more, as many as there can be.
TEST_F(CudaDenseFc2, VariantsAgreeWhereManyExpertsHaveNoRows) {
  const std::vector<std::array<const char*, 3>> sizes = {
      {"1", "1000", "8"}, {"1", "3", "1"},    {"2", "129", "1"}, {"32", "600", "2"},
      {"33", "300", "2"}, {"65", "270", "1"}, {"512", "46", "1"}};
  for (const auto& [tokens, experts, topk] : sizes) {
    const Params params = {{"tokens", tokens}, {"experts", experts}, {"topk", topk}};
    expect_forms_right(params, 128);
    expect_forms_right(params, 256);
  }
}

// All rows are one expert's, in more chunks than stages; spans of K that follow each other.
TEST_F(CudaDenseFc2, VariantsAgreeWhereOneExpertHasAllRows) {
  for (const int tokens : {15, 16, 17, 100, 512}) {
    for (const int inter : {128, 256, 384, 512, 1024}) {
      const Params params = {{"tokens", std::to_string(tokens)},
                             {"experts", "4"},
                             {"topk", "1"},
                             {"routing", "hot:1:1"}};
      expect_forms_right(params, inter);
    }
  }
}

// Runs of 8, 16, 24, 56 and 64 columns on 132 SMs; last ones that are shorter, and blocks in more
// than one wave; runs in two groups of 128 columns.
TEST_F(CudaDenseFc2, SparseRowsAgreesAtAllColumns) {
  for (const int hidden : {8, 1056, 1064, 2120, 7176, 8456}) {
    for (const char* routing : {"uniform", "hot:1:1"}) {
      const Params params = {{"tokens", "70"},
                             {"experts", "5"},
                             {"topk", "1"},
                             {"hidden", std::to_string(hidden)},
                             {"routing", routing}};
      for (const Case& c : forms(params, 256)) {
        DenseFc2 problem(*device_, c, kAlwaysWhole);
        expect_same_bits(problem, c, {"sparse_rows"});
      }
    }
  }
}

// The sums of all tokens that there can be leave room for the fewest stages.
TEST_F(CudaDenseFc2, SparseRowsAgreesWithTheMostTokens) {
  for (const int hidden : {7168, 8456}) {
    const Params params = {
        {"tokens", "512"}, {"experts", "40"}, {"topk", "4"}, {"hidden", std::to_string(hidden)}};
    for (const Case& c : forms(params, 256)) {
      DenseFc2 problem(*device_, c);
      expect_same_bits(problem, c, {"sparse_rows"});
    }
  }
}

// Shares of K are dealt to all SMs, also where a row of tiles needs no cluster.
TEST_F(CudaDenseFc2, StreamKLeavesNoSmWithoutWork) {
  for (const char* tokens : {"1", "128"}) {
    const Case c = dense_fc2_case({{"tokens", tokens}, {"experts", "40"}, {"hidden", "7168"}});
    const std::string path =
        find_variant(c.op, Backend::cuda, "stream_k").path(c, device_->facts());
    const std::string all = fmt::format("{} x 1 clusters of 1", device_->facts().processors);
    EXPECT_NE(path.find(all), std::string::npos) << c.key() << ": " << path;
  }
}

/// What an H200 has.
DeviceFacts h200() {
  DeviceFacts facts;
  facts.backend = Backend::cuda;
  facts.processors = 132;
  facts.shared_per_block = 227 << 10;
  return facts;
}

/// Why a variant refuses a case; needs no GPU, only a program built with CUDA.
std::string refusal(const std::string& variant, const Params& params) {
  const Case c = dense_fc2_case(params);
  return find_variant(c.op, Backend::cuda, variant).unsupported(c, h200());
}

TEST(DenseFc2Eligibility, NamesWhatDoesNotFit) {
#ifndef MOEGATE_HAS_CUDA
  GTEST_SKIP() << "built without CUDA";
#endif
  for (const auto& names : {kPerKTile, kPerExpert, {"sparse_rows"}}) {
    for (const std::string& name : names) {
      EXPECT_EQ(refusal(name, {{"hidden", "8"}}), "") << name;
      EXPECT_NE(refusal(name, {{"hidden", "27"}}).find("H = 27"), std::string::npos) << name;
    }
  }
  EXPECT_EQ(refusal("sparse_rows", {{"tokens", "512"}, {"hidden", "7168"}}), "");
  EXPECT_EQ(refusal("sparse_rows", {{"tokens", "513"}}),
            "M = 513 is more than the 512 tokens whose sums fit in shared memory");
}

}  // namespace
}  // namespace moegate::dense_fc2
