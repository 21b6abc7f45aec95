// SPDX-License-Identifier: Apache-2.0
#include "harness/values/resources.h"

#include <gtest/gtest.h>

namespace moegate::test {
namespace {

int on_hopper(const BlockNeeds& block) {
  return blocks_per_sm(block, *sm_limits(90));
}

TEST(Occupancy, EachLimitDecides) {
  EXPECT_EQ(on_hopper({.threads = 32, .registers = 32}), 32) << "blocks";
  EXPECT_EQ(on_hopper({.threads = 1024, .registers = 32}), 2) << "warps";
  EXPECT_EQ(on_hopper({.threads = 768, .registers = 32}), 2) << "warps, with some left over";
  EXPECT_EQ(on_hopper({.threads = 256, .registers = 128}), 2) << "registers";
  EXPECT_EQ(on_hopper({.threads = 256, .registers = 128, .shared = 128 << 10}), 1) << "shared";
  EXPECT_EQ(on_hopper({.threads = 64, .registers = 32, .barriers = 16}), 4) << "barriers";
}

TEST(Occupancy, RegistersAreGivenToWarpsInUnitsOf256) {
  EXPECT_EQ(on_hopper({.threads = 128, .registers = 64}), 8);
  EXPECT_EQ(on_hopper({.threads = 128, .registers = 65}), 7);
  EXPECT_EQ(on_hopper({.threads = 128, .registers = 72}), 7);
  // Three warps of 168 registers find room in each quarter, of 169 only two.
  EXPECT_EQ(on_hopper({.threads = 384, .registers = 168}), 1);
  EXPECT_EQ(on_hopper({.threads = 384, .registers = 169}), 0);
}

TEST(Occupancy, EveryBlockTakesAKibibyteOfSharedMemoryMore) {
  EXPECT_EQ(on_hopper({.threads = 128, .registers = 32, .shared = 113 << 10}), 2);
  EXPECT_EQ(on_hopper({.threads = 128, .registers = 32, .shared = (113 << 10) + 1}), 1);
  EXPECT_EQ(on_hopper({.threads = 128, .registers = 32, .shared = 227 << 10}), 1);
  EXPECT_EQ(on_hopper({.threads = 128, .registers = 32, .shared = (227 << 10) + 1}), 0);
}

TEST(Occupancy, ImpossibleBlocksFitNowhere) {
  EXPECT_EQ(on_hopper({.threads = 0, .registers = 32}), 0);
  EXPECT_EQ(on_hopper({.threads = 1025, .registers = 32}), 0);
  EXPECT_EQ(on_hopper({.threads = 32, .registers = 256}), 0);
}

TEST(Occupancy, ClassesOfDevices) {
  EXPECT_EQ(arch_of_class("nvidia-h200"), 90);
  EXPECT_EQ(arch_of_class("nvidia-h100-80gb-hbm3"), 90);
  EXPECT_EQ(arch_of_class("nvidia-h2000"), 0);
  EXPECT_EQ(arch_of_class("nvidia-a100-sxm4-80gb"), 80);
  EXPECT_EQ(arch_of_class("nvidia-a10"), 86);
  EXPECT_EQ(arch_of_class("nvidia-l40s"), 89);
  EXPECT_EQ(arch_of_class("nvidia-rtx-pro-6000-blackwell-server-edition"), 120);
  EXPECT_EQ(arch_of_class("nvidia"), 0);
  EXPECT_EQ(arch_of_class(""), 0);
  EXPECT_FALSE(sm_limits(70).has_value());
}

TEST(Occupancy, OfAStoredLaunch) {
  KernelRow kernel;
  kernel.name = "memset";
  EXPECT_EQ(blocks_per_sm(kernel, "nvidia-h200"), std::nullopt);
  kernel = {.block = "128x2x1", .registers = 128, .static_shared = 512, .dynamic_shared = 73728};
  EXPECT_EQ(blocks_per_sm(kernel, "nvidia-h200"), 2);
  EXPECT_EQ(blocks_per_sm(kernel, "nvidia-l4"), 1);
  EXPECT_EQ(blocks_per_sm(kernel, "nvidia-v100"), std::nullopt);
}

TEST(Occupancy, Extents) {
  EXPECT_EQ(extent_size("128x2x3"), 768);
  EXPECT_EQ(extent_size("7"), 7);
  for (const char* none : {"", "x", "128x", "x1", "1x-2", "4294967295x4294967295x4294967295"}) {
    EXPECT_EQ(extent_size(none), 0) << none;
  }
}

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
}  // namespace moegate::test
