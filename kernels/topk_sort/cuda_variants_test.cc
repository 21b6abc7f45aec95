// SPDX-License-Identifier: Apache-2.0
// The CUDA variants against the truth on a real GPU, and the documented divergence of the faithful
// one.
#include <gtest/gtest.h>

#include "harness/worker/measure.h"
#include "kernels/topk_sort/topk_sort.h"
#include "kernels/topk_sort/topk_sort_testing.h"

namespace moegate::topk_sort {
namespace {

using CudaTopkSort = check::CudaVariants;

const Variant& variant(const std::string& name) {
  for (const Variant& v : all_variants()) {
    if (v.op == TopkSort::kOp && v.backend == Backend::cuda && v.name == name) return v;
  }
  throw Error(Exit::internal, "no CUDA variant " + name);
}

TEST_F(CudaTopkSort, VariantsAgreeWithTheTruth) {
  for (const char* tokens : {"1", "7", "64", "65", "129", "600"}) {
    for (const char* scoring : {"softmax", "noaux_tc"}) {
      for (const char* logits : {"normal", "ties"}) {
        Bench bench(*device_, topk_sort_case({{"tokens", tokens},
                                              {"experts", "160"},
                                              {"topk", "6"},
                                              {"hidden", "33"},
                                              {"unit", "16"},
                                              {"scoring", scoring},
                                              {"logits", logits},
                                              {"dtype", "fp16"}}));
        for (const Variant& v : all_variants()) {
          if (v.op != TopkSort::kOp || v.backend != Backend::cuda) continue;
          const Result result = bench.verify(v);
          EXPECT_TRUE(result.status == Status::ok || result.status == Status::unsupported)
              << tokens << " " << scoring << " " << logits << " " << v.name << ": " << result.why;
        }
      }
    }
  }
}

// With fewer than k finite logits the PR's scan picks expert 0 again and again, and
// the repeated slot overwrites the earlier one, so fewer rows come out than the truth has.
TEST_F(CudaTopkSort, FaithfulVariantDivergesOnTooFewFiniteLogits) {
  const Case c = topk_sort_case({{"tokens", "2"},
                                 {"experts", "16"},
                                 {"topk", "4"},
                                 {"hidden", "8"},
                                 {"unit", "4"},
                                 {"logits", "few_finite"}});
  const Variant& faithful = variant("fused_one_block");
  EXPECT_NE(faithful.unsupported(c, device_->facts()).find("divergence"), std::string::npos);
  Variant insisting = faithful;
  insisting.unsupported = nullptr;
  Bench bench(*device_, c);
  EXPECT_EQ(bench.verify(insisting).status, Status::wrong);
  EXPECT_EQ(bench.verify(variant("chain3")).status, Status::ok);
}

}  // namespace
}  // namespace moegate::topk_sort
