// SPDX-License-Identifier: Apache-2.0
#include "harness/values/occupancy.h"

#include <gtest/gtest.h>

namespace moegate {
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
  EXPECT_EQ(arch_of_class("nvidia-a100"), 0);
  EXPECT_FALSE(sm_limits(80).has_value());
}

TEST(Occupancy, OfAStoredLaunch) {
  KernelRow kernel;
  kernel.name = "memset";
  EXPECT_EQ(blocks_per_sm(kernel, "nvidia-h200"), std::nullopt);
  kernel = {.block = "128x2x1", .registers = 128, .static_shared = 512, .dynamic_shared = 73728};
  EXPECT_EQ(blocks_per_sm(kernel, "nvidia-h200"), 2);
  EXPECT_EQ(blocks_per_sm(kernel, "nvidia-a100"), std::nullopt);
}

TEST(Occupancy, Extents) {
  EXPECT_EQ(extent_size("128x2x3"), 768);
  EXPECT_EQ(extent_size("7"), 7);
  for (const char* none : {"", "x", "128x", "x1", "1x-2", "4294967295x4294967295x4294967295"}) {
    EXPECT_EQ(extent_size(none), 0) << none;
  }
}

}  // namespace
}  // namespace moegate
