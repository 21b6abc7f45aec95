// SPDX-License-Identifier: Apache-2.0
#include "kernels/qmoe/operands.h"

#include <cmath>

#include "harness/kernel/random_fill.h"

namespace moegate::qmoe {
namespace {

constexpr uint64_t kXStream = 201;  // of the counter-based generator

}  // namespace

std::vector<float> widened(DType dtype, const std::vector<uint16_t>& bits) {
  std::vector<float> values(bits.size());
  for (size_t i = 0; i < bits.size(); ++i) {
    values[i] = read_float(dtype, bits.data(), static_cast<int64_t>(i));
  }
  return values;
}

std::vector<uint16_t> narrowed(DType dtype, const std::vector<double>& values) {
  std::vector<uint16_t> bits(values.size());
  for (size_t i = 0; i < bits.size(); ++i) {
    write_float(dtype, bits.data(), static_cast<int64_t>(i), static_cast<float>(values[i]));
  }
  return bits;
}

std::vector<uint16_t> drawn_x(const QmoeShape& shape, uint64_t seed, int64_t first) {
  const auto size = static_cast<size_t>(shape.source_rows()) * static_cast<size_t>(shape.k);
  const auto skipped = static_cast<uint64_t>(first) * static_cast<uint64_t>(shape.k);
  std::vector<double> x;
  for (size_t i = 0; i < size; ++i) x.push_back(random_normal(seed, kXStream, skipped + i));
  if (shape.data == QmoeData::edges) {
    for (size_t i = 0; i < size; ++i) {
      const size_t of_all = skipped + i;
      if (of_all % 16 == 0) x[i] = of_all % 32 == 0 ? 0.0 : -0.0;
    }
  }
  return narrowed(shape.dtype, x);
}

void ExpertWeights::draw(uint64_t seed, const WeightStreams& streams) {
  codes_.fill_random({RandomFill::Kind::int4_normal, seed, streams.codes});
  // Weights of variance 1/K, as after training, keep outputs of unit size; the largest code of a
  // group, and with it the scale factor, varies by about a quarter.
  const float scale = 1 / (1.94f * std::sqrt(static_cast<float>(shape_.k)));
  scales_.fill_random({RandomFill::Kind::uniform, seed, streams.scales, shape_.dtype, 0.75f * scale,
                       1.25f * scale});
  if (bias_) {
    bias_->fill_random({RandomFill::Kind::uniform, seed, streams.bias, shape_.dtype, -0.5f, 0.5f});
  }
  if (shape_.data == QmoeData::edges) make_edges(seed, streams.edges);
}

/// Every fourth column (all of its scale factors zero) is left with its bias, which is at, next to
/// or far beyond a clamp boundary, or a zero; one group in eight elsewhere is zero too.
void ExpertWeights::make_edges(uint64_t seed, uint64_t stream) {
  const float limit = std::isfinite(shape_.limit) && shape_.swiglu ? shape_.limit : 7;
  const auto boundaries = narrowed(shape_.dtype, {limit, 8.0 * limit});
  const uint16_t at_limit = boundaries[0], far = boundaries[1];
  const auto beyond = static_cast<uint16_t>(at_limit + 1);  // the next larger magnitude
  constexpr uint16_t kSign = 0x8000;
  const std::vector<uint16_t> corners = {at_limit,
                                         beyond,
                                         far,
                                         uint16_t(at_limit | kSign),
                                         0,
                                         kSign,
                                         uint16_t(beyond | kSign),
                                         uint16_t(far | kSign)};
  auto scales = scales_.download<uint16_t>();
  const auto groups = static_cast<size_t>(shape_.groups());
  // Pairs of columns, because a gate and its up column meet in one output.
  const auto zero_column = [](size_t column) { return column / 2 % 4 == 0; };
  for (size_t i = 0; i < scales.size(); ++i) {
    const bool zero_group = groups > 1 && random_bits(seed, stream, i) % 8 == 0;
    if (zero_column(i / groups) || zero_group) scales[i] = 0;
  }
  scales_.upload(scales);
  if (!bias_) return;
  auto bias = bias_->download<uint16_t>();
  for (size_t column = 0; column < bias.size(); ++column) {
    const uint64_t pick = random_bits(seed, stream + 1, column);
    if (zero_column(column)) bias[column] = corners[pick % corners.size()];
  }
  bias_->upload(bias);
}

void ExpertWeights::put_into(QmoeArgs& args) const {
  args.weights = codes_.data<uint8_t>();
  args.scales = scales_.data<uint16_t>();
  args.bias = bias_ ? bias_->data<uint16_t>() : nullptr;
}

QmoeInputs::Expert ExpertWeights::of(Device& device, int32_t expert, bool transposed) const {
  const auto slice = [&](const Tensor& tensor, auto element) {
    std::vector<decltype(element)> values(static_cast<size_t>(tensor.size() / shape_.experts));
    const size_t bytes = values.size() * sizeof element;
    device.download(values.data(), tensor.data<char>() + static_cast<size_t>(expert) * bytes,
                    bytes);
    return values;
  };
  QmoeInputs::Expert e;
  e.codes = slice(codes_, uint8_t{});
  e.scales = widened(shape_.dtype, slice(scales_, uint16_t{}));
  if (bias_) e.bias = widened(shape_.dtype, slice(*bias_, uint16_t{}));
  if (!transposed) return e;
  const auto n = static_cast<size_t>(shape_.n), groups = static_cast<size_t>(shape_.groups());
  const auto right = e.scales;
  for (size_t column = 0; column < n; ++column) {
    for (size_t g = 0; g < groups; ++g) e.scales[column * groups + g] = right[g * n + column];
  }
  return e;
}

double ExpertWeights::bytes() const {
  return shape_.n * (shape_.k / 2.0 + 2.0 * shape_.groups() + (bias_ ? 2 : 0));
}

}  // namespace moegate::qmoe
