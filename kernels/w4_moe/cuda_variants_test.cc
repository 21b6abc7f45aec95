// SPDX-License-Identifier: Apache-2.0
// The CUDA variants against the truth on a real GPU.
#include <gtest/gtest.h>

#include "kernels/w4_moe/w4_moe_testing.h"

namespace moegate::w4_moe {
namespace {

class CudaW4Moe : public check::CudaVariants {
 protected:
  void expect_both_right(const Params& params, int k, int n) {
    expect_right(product_case<W4GateUp>(params, k, n));
    expect_right(product_case<W4Down>(params, k, n));
  }
};

// K: half a unit (one part without any), one and a half, eleven and a half, 16, 45. N: a
// panel and a rest, panels, a tile and a half, gpt-oss's.
TEST_F(CudaW4Moe, VariantsAgreeWithTheTruth) {
  for (const char* block : {"8", "16", "32", "64", "128"}) {
    for (const int k : {32, 96, 736, 1024, 2880}) {
      for (const int n : {38, 64, 192, 2880}) {
        expect_both_right({{"tokens", "7"}, {"block", block}}, k, n);
      }
    }
  }
}

// K: one group, three (of 32: no whole number of units), many.
TEST_F(CudaW4Moe, VariantsAgreeWithTheTruthOfInt4) {
  for (const char* block : {"8", "16", "32", "64", "128"}) {
    for (const int group : {32, 64, 128}) {
      for (const int groups : {1, 3, 23}) {
        for (const char* bias : {"0", "1"}) {
          const Params params = {{"tokens", "7"},
                                 {"block", block},
                                 {"weights", "int4"},
                                 {"group", std::to_string(group)},
                                 {"bias", bias}};
          for (const int n : {70, 192}) expect_both_right(params, group * groups, n);
        }
      }
    }
  }
}

TEST_F(CudaW4Moe, VariantsAgreeWhereBlocksFill) {
  for (const int block : {8, 16, 32, 64, 128}) {
    for (const int tokens : {1, block - 1, block, block + 1, 257}) {
      const Params params = {{"tokens", std::to_string(tokens)}, {"block", std::to_string(block)}};
      expect_both_right(params, 288, 208);
      Params one_expert = params;
      one_expert.insert({{"routing", "hot:1:1"}, {"topk", "1"}});
      expect_both_right(one_expert, 288, 208);
      one_expert.insert({{"weights", "int4"}, {"group", "64"}});
      expect_both_right(one_expert, 320, 208);
    }
  }
}

// Rows of two row blocks that do not fit in shared memory beside each other.
TEST_F(CudaW4Moe, VariantsAgreeWhereRowsAreLong) {
  expect_both_right({{"tokens", "257"}, {"block", "8"}, {"topk", "1"}, {"routing", "hot:1:1"}},
                    7168, 208);
}

TEST_F(CudaW4Moe, VariantsAgreeAtTheEdges) {
  for (const char* block : {"8", "16", "32", "64", "128"}) {
    for (const char* limit : {"7", "0"}) {
      const Params params = {{"tokens", "9"}, {"block", block}, {"values", "edges"}};
      Params gate_up = params;
      gate_up.insert({"limit", limit});
      expect_right(product_case<W4GateUp>(gate_up, 736, 192));
      expect_right(product_case<W4Down>(params, 736, 192));
      gate_up.insert({"weights", "int4"});
      expect_right(product_case<W4GateUp>(gate_up, 736, 192));
      Params down = params;
      down.insert({"weights", "int4"});
      expect_right(product_case<W4Down>(down, 736, 192));
    }
  }
}

}  // namespace
}  // namespace moegate::w4_moe
