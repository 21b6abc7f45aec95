// SPDX-License-Identifier: Apache-2.0
// The CUDA variants against the truth on a real GPU.
#include <gtest/gtest.h>

#include "kernels/qmoe_layer/qmoe_layer_testing.h"

namespace moegate::qmoe_layer {
namespace {

using CudaQmoeLayer = check::CudaVariants;

// K of FC1: below one iteration of the GEMV kernels, one and a tail, two and a tail; K of FC2: one
// part of stream_imma and several.
TEST_F(CudaQmoeLayer, VariantsAgreeWithTheTruth) {
  for (const char* hidden : {"192", "1088", "2880"}) {
    for (const char* inter : {"64", "704"}) {
      for (const char* block : {"0", "32", "64"}) {
        for (const char* dtype : {"fp16", "bf16"}) {
          for (const char* values : {"normal", "edges"}) {
            expect_right(qmoe_layer_case({{"tokens", "1"},
                                          {"bias", "1"},
                                          {"hidden", hidden},
                                          {"inter", inter},
                                          {"scale-block", block},
                                          {"dtype", dtype},
                                          {"values", values}}));
          }
        }
      }
    }
  }
}

// Every number of rows that one block sorts: few, a warp's and a row more, all there may be; tokens
// of several rows, and one row each, of more tokens than a block has warps; 4, 8 and 16 scores per
// lane.
TEST_F(CudaQmoeLayer, VariantsAgreeOnManyRows) {
  const std::pair<const char*, const char*> sizes[] = {{"2", "2"},  {"11", "3"}, {"8", "8"},
                                                       {"16", "4"}, {"64", "1"}, {"4", "16"}};
  for (const auto& [tokens, topk] : sizes) {
    for (const char* experts : {"16", "200", "500"}) {
      for (const char* routing : {"uniform", "zipf:1.2", "hot:1:1"}) {
        expect_right(qmoe_layer_case({{"tokens", tokens},
                                      {"topk", topk},
                                      {"experts", experts},
                                      {"routing", routing},
                                      {"hidden", "576"},
                                      {"inter", "512"}}));
      }
    }
  }
}

// Ties decide which experts compute, and whole columns are their bias.
TEST_F(CudaQmoeLayer, VariantsAgreeOnTies) {
  for (const char* dtype : {"fp16", "bf16"}) {
    for (const char* tokens : {"1", "16"}) {
      expect_right(qmoe_layer_case({{"tokens", tokens},
                                    {"topk", "4"},
                                    {"experts", "60"},
                                    {"hidden", "1152"},
                                    {"inter", "640"},
                                    {"bias", "1"},
                                    {"scale-block", "128"},
                                    {"dtype", dtype},
                                    {"values", "edges"}}));
    }
  }
}

}  // namespace
}  // namespace moegate::qmoe_layer
