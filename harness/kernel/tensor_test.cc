// SPDX-License-Identifier: Apache-2.0
#include "harness/kernel/tensor.h"

#include <gtest/gtest.h>

#include "harness/base/rng.h"
#include "harness/base/test_fixture.h"
#include "harness/device/open.h"
#include "harness/kernel/kernel.h"

namespace moegate::test {
namespace {

TEST(Tensor, RoundTripsAndGuards) {
  const auto device = open_host_device();
  Tensor tensor(*device, "x", Role::output, DType::f32, {3, 5});
  EXPECT_EQ(tensor.size(), 15);
  std::vector<float> values(15, 2.5f);
  tensor.upload(values);
  EXPECT_EQ(tensor.download<float>(), values);
  EXPECT_TRUE(tensor.guards_intact());
  tensor.data<char>()[tensor.bytes()] ^= 1;
  EXPECT_FALSE(tensor.guards_intact());
  tensor.data<char>()[tensor.bytes()] ^= 1;
  tensor.data<char>()[-1] ^= 1;
  EXPECT_FALSE(tensor.guards_intact());
}

TEST(Tensor, RefusesAWrongHostSize) {
  const auto device = open_host_device();
  Tensor tensor(*device, "x", Role::output, DType::f32, {4});
  EXPECT_THROW(tensor.upload(std::vector<float>(3)), Error);
  EXPECT_THROW(tensor.download<uint16_t>(), Error);
}

TEST(Tensor, WholeNumbersAreNotDrawnInPlace) {
  const auto device = open_host_device();
  const auto refusal = [&](DType of_tensor, DType of_fill) {
    Tensor tensor(*device, "ids", Role::activation, of_tensor, {4});
    const RandomFill fill{.kind = RandomFill::Kind::uniform,
                          .seed = 1,
                          .stream = 1,
                          .dtype = of_fill,
                          .low = 0,
                          .high = 9};
    return refusal_of([&] { tensor.fill_random(fill); }, Exit::internal);
  };
  EXPECT_EQ(refusal(DType::f32, DType::f32), "accepted");
  EXPECT_NE(
      refusal(DType::i32, DType::i32).find("tensor ids: no fill draws whole numbers of int32"),
      std::string::npos);
  EXPECT_NE(refusal(DType::i32, DType::u8).find("a fill's dtype is the tensor's"),
            std::string::npos);
}

TEST(Hash, EveryByteCounts) {
  std::vector<unsigned char> bytes(37, 1);
  const uint64_t before = hash_bytes(bytes.data(), bytes.size());
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] ^= 128;
    EXPECT_NE(hash_bytes(bytes.data(), bytes.size()), before) << i;
    bytes[i] ^= 128;
  }
  EXPECT_EQ(hash_bytes(bytes.data(), bytes.size()), before);
  EXPECT_NE(hash_bytes(bytes.data(), bytes.size() - 1), before);
}

TEST(Rng, IsAFunctionOfItsThreeArguments) {
  EXPECT_EQ(random_bits(1, 2, 3), random_bits(1, 2, 3));
  EXPECT_NE(random_bits(1, 2, 3), random_bits(1, 2, 4));
  EXPECT_NE(random_bits(1, 2, 3), random_bits(1, 3, 3));
  EXPECT_NE(random_bits(1, 2, 3), random_bits(2, 2, 3));
  double sum = 0;
  for (uint64_t i = 0; i < 100000; ++i) sum += random_uniform(5, 6, i);
  EXPECT_NEAR(sum / 100000, 0.5, 0.005);
}

}  // namespace
}  // namespace moegate::test
