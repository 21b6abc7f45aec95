// SPDX-License-Identifier: Apache-2.0
#include "harness/kernel/device.h"

#include <gtest/gtest.h>

#include <limits>

#include "harness/device/open.h"
#include "harness/kernel/tensor.h"

namespace moegate::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// [rows, width] of f32 on a device, each compared with a row of the other at its place.
std::vector<RowDistance> distances(Device& device, const std::vector<float>& out,
                                   const std::vector<float>& reference, int64_t width,
                                   const std::vector<int32_t>& out_places = {}) {
  const auto count = static_cast<int64_t>(reference.size());
  Tensor a(device, "a", Role::output, DType::f32, {static_cast<int64_t>(out.size())});
  Tensor b(device, "b", Role::output, DType::f32, {count});
  a.upload(out);
  b.upload(reference);
  return device.row_distances({.out = a.data(),
                               .reference = b.data(),
                               .out_places = out_places.empty() ? nullptr : out_places.data(),
                               .reference_places = nullptr,
                               .rows = count / width,
                               .width = width,
                               .dtype = DType::f32,
                               .atol = 0.5,
                               .rtol = 0.1});
}

TEST(RowDistance, SumsSquaresOfEveryRow) {
  const auto device = open_host_device();
  const auto rows = distances(*device, {1, 2, 3, 4}, {1, 2, 3, 8}, 2);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].error, 0);
  EXPECT_EQ(rows[0].size, 5);
  EXPECT_EQ(rows[1].error, 16);
  EXPECT_EQ(rows[1].size, 73);
  EXPECT_EQ(rows[1].outside, 1) << "4 is more than 0.5 + 0.8";
}

TEST(RowDistance, FindsRowsAtTheirPlaces) {
  const auto device = open_host_device();
  for (const auto& row : distances(*device, {0, 0, 3, 4, 1, 2}, {1, 2, 3, 4}, 2, {2, 1})) {
    EXPECT_EQ(row.error, 0);
  }
}

TEST(RowDistance, CountsWhatIsFiniteOnOneSideAlone) {
  const auto device = open_host_device();
  const auto rows = distances(*device, {kNan, 1, kInfinity, -kInfinity, kNan, kInfinity},
                              {1, kNan, kInfinity, kInfinity, kNan, 5}, 6);
  EXPECT_EQ(rows[0].nonfinite, 4);
  EXPECT_EQ(rows[0].error, 0);
}

TEST(RowDistance, IsTheSameOnAGpu) {
  std::string why;
  if (cuda_devices(&why).empty()) GTEST_SKIP() << "no CUDA device: " << why;
  const auto host = open_host_device(), gpu = open_cuda_device(0);
  constexpr int64_t kRows = 301, kWidth = 77;
  for (const DType dtype : {DType::bf16, DType::f16, DType::e4m3, DType::f32}) {
    std::vector<std::vector<RowDistance>> found;
    std::vector<int32_t> places;
    for (int32_t r = 0; r < kRows; ++r) places.push_back((r * 11) % kRows);
    for (Device* device : {host.get(), gpu.get()}) {
      Tensor a(*device, "a", Role::output, dtype, {kRows, kWidth});
      Tensor b(*device, "b", Role::output, dtype, {kRows, kWidth});
      a.fill_random({RandomFill::Kind::uniform, 1, 1, dtype, -2, 2});
      b.fill_random({RandomFill::Kind::uniform, 2, 1, dtype, -2, 2});
      found.push_back(device->row_distances({.out = a.data(),
                                             .reference = b.data(),
                                             .out_places = places.data(),
                                             .reference_places = nullptr,
                                             .rows = kRows,
                                             .width = kWidth,
                                             .dtype = dtype,
                                             .atol = 0.5,
                                             .rtol = 0.1}));
    }
    for (size_t r = 0; r < kRows; ++r) {
      EXPECT_NEAR(found[0][r].error, found[1][r].error, 1e-9 * found[0][r].error);
      EXPECT_NEAR(found[0][r].size, found[1][r].size, 1e-9 * found[0][r].size);
      EXPECT_EQ(found[0][r].outside, found[1][r].outside);
    }
  }
}

}  // namespace
}  // namespace moegate::test
