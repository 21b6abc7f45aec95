// SPDX-License-Identifier: Apache-2.0
#include "kernels/w4_moe/weights.h"

#include <algorithm>
#include <cmath>

#include "harness/kernel/random_fill.h"
#include "kernels/check/sampled_rows.h"

namespace moegate::w4_moe {
namespace {

// Streams of the counter-based generator, one per tensor and use.
enum Stream : uint64_t { kCodeStream = 402, kScaleStream, kBiasStream, kEdgeStream = 406 };

/// Rows of weights that edges leave with their bias. Pairs, because a gate and its up meet in one
/// output.
bool is_left(size_t row) {
  return row / 2 % 4 == 0;
}

/// A scale of 2^(byte - 127); byte 0: the least, of int4 a zero.
uint16_t power_of_two(const W4Shape& s, uint64_t byte) {
  return static_cast<uint16_t>(s.weights == W4Weights::int4 ? byte << 7 : byte);
}

void fill_uniform(Tensor& to, uint64_t seed, Stream stream, float low, float high) {
  to.fill_random({RandomFill::Kind::uniform, seed, stream, to.dtype(), low, high});
}

}  // namespace

WeightTensors::WeightTensors(const W4Shape& s, bool has_bias, const Make& make,
                             const std::string& prefix)
    : shape_(s),
      codes_(make(prefix + "codes", DType::u8, {s.experts, s.n, s.k / 2})),
      scales_(make(prefix + "scales", s.weights == W4Weights::int4 ? DType::bf16 : DType::u8,
                   {s.experts, s.n, s.groups()})),
      bias_(has_bias ? &make(prefix + "bias", DType::bf16, {s.experts, s.n}) : nullptr) {}

void WeightTensors::put_into(W4Args& args) const {
  args.codes = codes_.data<uint8_t>();
  args.scales = scales_.data();
  args.bias = bias_ ? bias_->data<uint16_t>() : nullptr;
}

double WeightTensors::bytes_of(double experts) const {
  const auto bytes =
      static_cast<double>(codes_.bytes() + scales_.bytes() + (bias_ ? bias_->bytes() : 0));
  return bytes / shape_.experts * experts;
}

float WeightTensors::draw(uint64_t seed, float size) const {
  codes_.fill_random({RandomFill::Kind::bits, seed, kCodeStream});
  const float bias = std::sqrt(3.0f);
  if (bias_) fill_uniform(*bias_, seed, kBiasStream, -bias, bias);
  return shape_.weights == W4Weights::int4 ? draw_int4(seed, size) : draw_mxfp4(seed, size);
}

/// Scales differ by up to 2^3 from their mean from group to group: one that is read a group late
/// shows.
float WeightTensors::draw_mxfp4(uint64_t seed, float size) const {
  constexpr int kSpread = 3;
  constexpr double kCodes = 68.5 / 8;          // mean square of all codes
  constexpr double kScales = 5461.0 / 64 / 7;  // of 2^-3 to 2^3
  const double unscaled = std::sqrt(shape_.k * kCodes * kScales);
  const double exponent = std::round(std::log2(size / unscaled));
  const auto middle = static_cast<float>(127 + exponent);
  scales_.fill_random(
      {RandomFill::Kind::bytes, seed, kScaleStream, DType::u8, middle - kSpread, middle + kSpread});
  return static_cast<float>(std::sqrt(3.0) * size / (unscaled * std::exp2(exponent)));
}

/// Likewise, with x of deviation 1 and scales from a quarter of their mean to seven.
float WeightTensors::draw_int4(uint64_t seed, float size) const {
  constexpr double kCodes = 21.5;           // mean square of q - 8
  constexpr double kScales = 1 + 0.75 / 4;  // of 0.25 to 1.75
  const auto mean = static_cast<float>(size / std::sqrt(shape_.k * kCodes * kScales));
  fill_uniform(scales_, seed, kScaleStream, 0.25f * mean, 1.75f * mean);
  return std::sqrt(3.0f);
}

/// Rows of `width` scales, as they are stored.
std::vector<uint16_t> WeightTensors::scales_of(Device& device, int64_t width,
                                               const std::vector<int64_t>& rows) const {
  if (shape_.weights == W4Weights::int4) {
    return check::rows_of<uint16_t>(device, scales_, width, rows);
  }
  const auto bytes = check::rows_of<uint8_t>(device, scales_, width, rows);
  return {bytes.begin(), bytes.end()};
}

void WeightTensors::upload_scales(const std::vector<uint16_t>& scales) const {
  if (shape_.weights == W4Weights::int4) return scales_.upload(scales);
  scales_.upload(std::vector<uint8_t>(scales.begin(), scales.end()));
}

/// Every fourth pair of rows has scales of 2^-127 and is left with its bias, which is at, next to
/// or far beyond a clamp, or a zero. Elsewhere one scale in 8 is 2^-127 or 2^-126. In int4 a zero
/// stands for 2^-127.
void WeightTensors::make_edges(Device& device, uint64_t seed) const {
  const bool clamps = !shape_.down && std::isfinite(shape_.limit);
  auto scales = scales_of(device, scales_.size(), {0});
  const auto of_row = static_cast<size_t>(shape_.groups());
  for (size_t i = 0; i < scales.size(); ++i) {
    const uint64_t random = random_bits(seed, kEdgeStream, i);
    if (is_left(i / of_row)) {
      scales[i] = 0;
    } else if (random % 8 == 0) {
      scales[i] = power_of_two(shape_, random >> 8 & 1);
    }
  }
  if (clamps) put_beyond(seed, scales);
  upload_scales(scales);
  if (!bias_) return;
  const uint16_t limit = float_to_bf16(clamps ? shape_.limit : 1);
  const auto next = static_cast<uint16_t>(limit + 1);
  const uint16_t far = float_to_bf16((clamps ? 8 : 2) * bf16_to_float(limit));
  constexpr uint16_t kSign = 0x8000;
  const uint16_t corners[] = {
      limit, next, far, 0, uint16_t(limit | kSign), uint16_t(next | kSign), uint16_t(far | kSign),
      kSign};
  auto bias = bias_->download<uint16_t>();
  for (size_t row = 0; row < bias.size(); ++row) {
    if (is_left(row)) bias[row] = corners[random_bits(seed, kEdgeStream + 1, row) % 8];
  }
  bias_->upload(bias);
}

/// One group of every third row has a scale of 2^33 and one code that is not zero: the row is far
/// beyond its clamp. Two terms of that size could cancel, which no sum in fp32 gets right. Without
/// clamps such rows would carry the output.
void WeightTensors::put_beyond(uint64_t seed, std::vector<uint16_t>& scales) const {
  const bool int4 = shape_.weights == W4Weights::int4;
  const auto bytes = static_cast<size_t>(shape_.group) / 2;  // of a group's codes
  const uint8_t none = int4 ? 0x88 : 0, three = int4 ? 0x8b : 0x05, minus = int4 ? 0x58 : 0xd0;
  auto codes = codes_.download<uint8_t>();
  const auto groups = static_cast<size_t>(shape_.groups());
  for (size_t row = 0; row * groups < scales.size(); ++row) {
    const uint64_t random = random_bits(seed, kEdgeStream + 2, row);
    if (is_left(row) || random % 3 != 0) continue;
    const size_t group = row * groups + (random >> 8) % groups;
    scales[group] = power_of_two(shape_, 160);
    uint8_t* of_group = codes.data() + group * bytes;
    std::fill_n(of_group, bytes, none);
    of_group[(random >> 40) % bytes] = random >> 60 & 1 ? three : minus;
  }
  codes_.upload(codes);
}

W4Product WeightTensors::product(Device& device, int32_t expert,
                                 const std::vector<int32_t>& columns, W4Slip slip) const {
  std::vector<int64_t> weight_rows;
  for (const int32_t c : columns) {
    const int64_t first = int64_t{expert} * shape_.n + (shape_.down ? c : 2 * c);
    weight_rows.push_back(first);
    if (!shape_.down) weight_rows.push_back(first + 1);
  }
  W4Product p;
  p.codes = check::rows_of<uint8_t>(device, codes_, shape_.k / 2, weight_rows);
  p.bias.resize(weight_rows.size());
  if (bias_) p.bias = check::from_bf16(check::rows_of<uint16_t>(device, *bias_, 1, weight_rows));
  if (slip == W4Slip::scales_of_expert_0) {
    for (int64_t& row : weight_rows) row %= shape_.n;
  }
  const int64_t groups = shape_.groups();
  if (slip != W4Slip::scales_transposed) {
    p.scales = scales_of(device, groups, weight_rows);
    return p;
  }
  const auto all = scales_of(device, shape_.n * groups, {expert});
  for (const int64_t row : weight_rows) {
    for (int64_t g = 0; g < groups; ++g) {
      p.scales.push_back(all[static_cast<size_t>(g * shape_.n + row % shape_.n)]);
    }
  }
  return p;
}

}  // namespace moegate::w4_moe
