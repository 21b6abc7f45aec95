// SPDX-License-Identifier: Apache-2.0
#include "harness/values/resources.h"

#include <gtest/gtest.h>

namespace moegate {
namespace {

TEST(Resources, NamesForPeople) {
  EXPECT_EQ(short_kernel_name("moegate::topk_sort::(anonymous namespace)::zero_kernel("
                              "moegate::topk_sort::TopkSortArgs)"),
            "zero_kernel");
  EXPECT_EQ(
      short_kernel_name("void moegate::moe_gemm::gather::(anonymous namespace)::gather_kernel<128, "
                        "(moegate::DType)3, 1>(moegate::moe_gemm::fp8::Operands, int)"),
      "gather_kernel<128, (DType)3, 1>");
  EXPECT_EQ(short_kernel_name("void moegate::a::k<moegate::a::Config<64, true> >(int)"),
            "k<a::Config<64, true> >");
  EXPECT_EQ(short_kernel_name("plain"), "plain");
  EXPECT_EQ(short_kernel_name("(lambda)"), "(lambda)");
  EXPECT_EQ(short_kernel_name(""), "");
}

}  // namespace
}  // namespace moegate
