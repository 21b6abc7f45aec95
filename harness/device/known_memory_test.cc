// SPDX-License-Identifier: Apache-2.0
#include "harness/device/known_memory.h"

#include <gtest/gtest.h>

#include "harness/device/open.h"

namespace moegate::test {
namespace {

constexpr size_t kBytes = 512;

/// Words of a launch that uses two segments of a process's pool, as a list of places.
std::vector<std::pair<std::string, uintptr_t>> places(uintptr_t first, uintptr_t second) {
  const auto segment = [](uintptr_t at) {
    return PoolSegment{reinterpret_cast<std::byte*>(at), kBytes, 0};
  };
  // In the order of their addresses, as an allocator lists them.
  const uintptr_t unused = 0x9000;
  KnownMemory memory(
      {}, {segment(std::min(first, second)), segment(std::max(first, second)), segment(unused)});
  std::vector<std::pair<std::string, uintptr_t>> found;
  for (const uintptr_t word :
       {second + 8, first, second + kBytes - 1, first + kBytes, uintptr_t{7}}) {
    const auto place = memory.place_of(word);
    found.emplace_back(place ? place->name : "elsewhere", place ? place->offset : 0);
  }
  return found;
}

TEST(KnownMemory, ASegmentIsNamedByItsFirstUseWhereverItLies) {
  const auto one = places(0x1000, 0x5000);
  EXPECT_EQ(one, places(0x7000, 0x2000)) << "another process allocated them elsewhere";
  const std::vector<std::pair<std::string, uintptr_t>> expected = {
      {"pool 1", 8}, {"pool 2", 0}, {"pool 1", kBytes - 1}, {"elsewhere", 0}, {"elsewhere", 0}};
  EXPECT_EQ(one, expected);
}

TEST(KnownMemory, ATensorIsKnownWithItsGuardsAndNotWhatASegmentBeginsWith) {
  const auto device = open_host_device();
  Tensor tensor(*device, "out", Role::output, DType::f32, {4});
  const auto begin = reinterpret_cast<uintptr_t>(tensor.data());
  const uintptr_t end = begin + tensor.bytes() + Tensor::kGuardBytes;
  KnownMemory alone({&tensor}, {});
  for (const uintptr_t word : {begin - Tensor::kGuardBytes, begin, end}) {
    const auto place = alone.place_of(word);
    ASSERT_TRUE(place.has_value());
    EXPECT_EQ(place->name, "out");
    EXPECT_EQ(place->offset, word - begin);
    EXPECT_EQ(place->tensor, &tensor);
  }
  EXPECT_FALSE(alone.place_of(end + 1).has_value());
  EXPECT_FALSE(alone.place_of(begin - Tensor::kGuardBytes - 1).has_value());
  KnownMemory beside({&tensor}, {{reinterpret_cast<std::byte*>(end), kBytes, 0}});
  EXPECT_EQ(beside.place_of(end)->name, "pool 1");
}

}  // namespace
}  // namespace moegate::test
