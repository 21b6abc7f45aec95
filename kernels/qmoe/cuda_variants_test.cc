// SPDX-License-Identifier: Apache-2.0
// The CUDA variants against the truth on a real GPU; which cases they take, anywhere.
#include <gtest/gtest.h>

#include <map>

#include "harness/worker/measure.h"
#include "kernels/check/testing.h"
#include "kernels/qmoe/eligibility.h"

namespace moegate::qmoe {
namespace {

/// Two tokens of one expert among the rows; K = hidden in fc1, inter in fc2.
template <class P>
Case product_case(std::map<std::string, std::string> params, const char* k, const char* n) {
  const bool fc1 = std::is_same_v<P, QmoeFc1>;
  params[fc1 ? "hidden" : "inter"] = k;
  params[fc1 ? "inter" : "hidden"] = n;
  params.try_emplace("experts", "3");
  params.try_emplace("topk", "2");
  return check::case_of(P::kOp, params);
}

using CudaQmoe = check::CudaVariants;

// K: below one iteration, one and a tail, one whole, two whole, two and a tail as gpt-oss has, and
// more than three splits take at once.
TEST_F(CudaQmoe, VariantsAgreeWithTheTruth) {
  for (const char* k : {"192", "1024", "1088", "2048", "2880", "4224"}) {
    for (const char* block : {"0", "32", "64"}) {
      for (const char* dtype : {"fp16", "bf16"}) {
        for (const char* values : {"normal", "edges"}) {
          const std::map<std::string, std::string> params = {{"tokens", "2"},
                                                             {"bias", "1"},
                                                             {"scale-block", block},
                                                             {"dtype", dtype},
                                                             {"values", values}};
          expect_right(product_case<QmoeFc1>(params, k, "48"));
          expect_right(product_case<QmoeFc2>(params, k, "96"));
        }
      }
    }
  }
}

TEST_F(CudaQmoe, VariantsAgreeWithTheTruthOnManyRows) {
  for (const char* tokens : {"7", "32"}) {
    for (const char* bias : {"0", "1"}) {
      const std::map<std::string, std::string> params = {
          {"tokens", tokens}, {"bias", bias}, {"scale-block", "128"}, {"routing", "zipf:1.2"}};
      expect_right(product_case<QmoeFc1>(params, "1152", "288"));
      expect_right(product_case<QmoeFc2>(params, "2048", "544"));
    }
  }
}

TEST(QmoeEligibility, GemvNamesWhatDoesNotFit) {
  const auto why = [](const std::map<std::string, std::string>& params, Accumulator accumulator,
                      const char* k = "1024", const char* n = "512") {
    return qmoe::gemv_unsupported(QmoeFc1::shape_of(product_case<QmoeFc1>(params, k, n)),
                                  accumulator);
  };
  EXPECT_EQ(why({{"tokens", "1"}}, Accumulator::fp16), "");
  EXPECT_EQ(why({{"tokens", "32"}}, Accumulator::fp16), "");
  EXPECT_EQ(why({{"tokens", "2"}}, Accumulator::fp32, "192", "48"), "");
  EXPECT_NE(why({{"tokens", "33"}}, Accumulator::fp16).find("66 rows exceed 64"),
            std::string::npos);
  EXPECT_NE(why({{"tokens", "3"}}, Accumulator::fp16, "192").find("K = 192"), std::string::npos);
  EXPECT_NE(why({{"tokens", "3"}}, Accumulator::fp16, "1024", "48").find("N = 96"),
            std::string::npos);
  EXPECT_NE(why({{"tokens", "1"}}, Accumulator::fp16, "1056").find("K = 1056"), std::string::npos);
  EXPECT_NE(why({{"tokens", "1"}}, Accumulator::fp16, "1024", "40").find("N = 80"),
            std::string::npos);
  EXPECT_NE(why({{"tokens", "1"}, {"dtype", "bf16"}}, Accumulator::fp16).find("bf16"),
            std::string::npos);
  EXPECT_EQ(why({{"tokens", "1"}, {"dtype", "bf16"}}, Accumulator::fp32), "");
}

TEST(QmoeEligibility, SplitKWantsHalfActivations) {
  const auto why = [](const char* dtype) {
    const Case c = product_case<QmoeFc1>({{"tokens", "1"}, {"dtype", dtype}}, "2880", "64");
    return qmoe::split_unsupported(QmoeFc1::shape_of(c), Accumulator::fp32);
  };
  EXPECT_EQ(why("fp16"), "");
  EXPECT_NE(why("bf16").find("bf16"), std::string::npos);
}

TEST(QmoeEligibility, AnIterationIsThousandAndTwentyFourOfK) {
  const auto iterations = [](const char* k) {
    return qmoe::k_iterations(QmoeFc1::shape_of(product_case<QmoeFc1>({{"tokens", "1"}}, k, "64")));
  };
  EXPECT_EQ(iterations("192"), 1);
  EXPECT_EQ(iterations("1024"), 1);
  EXPECT_EQ(iterations("1088"), 2);
  EXPECT_EQ(iterations("2048"), 2);
  EXPECT_EQ(iterations("2880"), 3);
}

}  // namespace
}  // namespace moegate::qmoe
