// SPDX-License-Identifier: Apache-2.0
#include "harness/values/kernel_name.h"

#include <gtest/gtest.h>

namespace moegate {
namespace {

TEST(KernelName, IsShortForPeople) {
  const auto whole = [](const std::string& demangled) { return kernel_name(demangled).whole(); };
  EXPECT_EQ(whole("moegate::topk_sort::(anonymous namespace)::zero_kernel("
                  "moegate::topk_sort::TopkSortArgs)"),
            "zero_kernel");
  EXPECT_EQ(whole("void moegate::moe_gemm::gather::(anonymous namespace)::gather_kernel<128, "
                  "(moegate::DType)3, 1>(moegate::moe_gemm::fp8::Operands, int)"),
            "gather_kernel<128, (DType)3, 1>");
  EXPECT_EQ(whole("void moegate::a::k<moegate::a::Config<64, true> >(int)"),
            "k<a::Config<64, true> >");
  EXPECT_EQ(whole("void <unnamed>::k<1>(int)"), "k<1>");
  EXPECT_EQ(whole("plain"), "plain");
  EXPECT_EQ(whole("(lambda)"), "(lambda)");
  EXPECT_EQ(whole(""), "");
}

TEST(KernelName, TellsTheTemplateFromItsInstance) {
  const KernelName plain = kernel_name("moe::scatter(Args)");
  EXPECT_EQ(plain.name, "scatter");
  EXPECT_EQ(plain.instance, "");
  const KernelName of_namesake = kernel_name("void gather::gather<128, 64>(gather::Args<1>)");
  EXPECT_EQ(of_namesake.name, "gather");
  EXPECT_EQ(of_namesake.instance, "<128, 64>");
  const KernelName in_template = kernel_name("void moe::Tiles<64>::gather<2>(int)");
  EXPECT_EQ(in_template.name, "gather");
  EXPECT_EQ(in_template.instance, "<2>");
}

}  // namespace
}  // namespace moegate
