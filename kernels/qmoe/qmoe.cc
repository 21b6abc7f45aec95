// SPDX-License-Identifier: Apache-2.0
#include "kernels/qmoe/qmoe.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "harness/kernel/check.h"
#include "harness/kernel/random_fill.h"
#include "harness/kernel/routing.h"

namespace moegate::qmoe {
namespace {

// Streams of the counter-based generator, one per tensor and use.
enum Stream : uint64_t { kXStream = 201, kCodeStream, kScaleStream, kBiasStream, kEdgeStream };

std::vector<float> widen(DType dtype, const std::vector<uint16_t>& bits) {
  std::vector<float> values(bits.size());
  for (size_t i = 0; i < bits.size(); ++i) {
    values[i] = read_float(dtype, bits.data(), static_cast<int64_t>(i));
  }
  return values;
}

std::vector<uint16_t> narrow(DType dtype, const std::vector<double>& values) {
  std::vector<uint16_t> bits(values.size());
  for (size_t i = 0; i < bits.size(); ++i) {
    write_float(dtype, bits.data(), static_cast<int64_t>(i), static_cast<float>(values[i]));
  }
  return bits;
}

/// At the edges a sixteenth are zeros of either sign.
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
  return narrow(shape.dtype, x);
}

/// Rows of every token sorted by expert, then by token.
struct Rows {
  std::vector<int32_t> slot, token, expert;  // slot: of all tokens' slots
};

Rows sorted_rows(const QmoeShape& shape, const std::vector<int32_t>& ids) {
  std::vector<int32_t> order(ids.size());
  std::iota(order.begin(), order.end(), 0);
  const auto expert = [&](int32_t i) { return ids[static_cast<size_t>(i)]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return expert(a) < expert(b); });
  Rows rows;
  for (const int32_t i : order) {
    rows.token.push_back(i / shape.topk);
    rows.expert.push_back(expert(i));
  }
  rows.slot = std::move(order);
  return rows;
}

/// Rows of `width`, row i being what was row order[i].
std::vector<uint16_t> in_order(const std::vector<uint16_t>& rows, const std::vector<int32_t>& order,
                               int width) {
  std::vector<uint16_t> sorted;
  sorted.reserve(rows.size());
  for (const int32_t row : order) {
    const auto from = rows.begin() + std::ptrdiff_t{row} * width;
    sorted.insert(sorted.end(), from, from + width);
  }
  return sorted;
}

}  // namespace

Qmoe::Qmoe(Device& device, const Case& c, const QmoeShape& s)
    : Problem(device),
      shape(s),
      x_(make_tensor("x", Role::activation, s.dtype, {s.source_rows(), s.k})),
      row_source_(make_tensor("row_source", Role::activation, DType::i32, {s.rows()})),
      row_expert_(make_tensor("row_expert", Role::activation, DType::i32, {s.rows()})),
      weights_(make_tensor("weights", Role::weight, DType::u8, {s.experts, s.n, s.k / 2})),
      scales_(make_tensor("scales", Role::weight, s.dtype, {s.experts, s.n, s.groups()})),
      bias_(s.has_bias ? &make_tensor("bias", Role::weight, s.dtype, {s.experts, s.n}) : nullptr),
      out_(make_tensor("out", Role::output, s.dtype, {s.rows(), s.outputs()})),
      drawn_experts_(s.tokens, seed_of(c),
                     [s, routing = c.get("routing")](uint64_t seed, int64_t first) {
                       return routed_experts(routing, {s.tokens, s.experts, s.topk, first}, seed);
                     }),
      drawn_x_(s.source_rows(), seed_of(c),
               [s](uint64_t seed, int64_t first) { return drawn_x(s, seed, first); }) {
  const uint64_t seed = seed_of(c);
  redraw(0);
  weights_.fill_random({RandomFill::Kind::int4_normal, seed, kCodeStream});
  // Weights of variance 1/K, as after training, keep outputs of unit size; the largest code of a
  // group, and with it the scale factor, varies by about a quarter.
  const float scale = 1 / (1.94f * std::sqrt(static_cast<float>(shape.k)));
  scales_.fill_random(
      {RandomFill::Kind::uniform, seed, kScaleStream, shape.dtype, 0.75f * scale, 1.25f * scale});
  if (bias_) {
    bias_->fill_random({RandomFill::Kind::uniform, seed, kBiasStream, shape.dtype, -0.5f, 0.5f});
  }
  if (shape.data == QmoeData::edges) make_edges(seed);
  if (c.truth) find_truth();
}

bool Qmoe::redraw(uint64_t change) {
  const Rows rows = sorted_rows(shape, drawn_experts_.of(change, first_token()));
  experts_ = rows.expert;
  tokens_ = rows.token;
  sources_ = rows.token;
  if (!shape.swiglu) std::iota(sources_.begin(), sources_.end(), 0);
  row_source_.upload(sources_);
  row_expert_.upload(experts_);
  const int64_t rows_before = first_token() * shape.source_rows() / shape.tokens;
  std::vector<uint16_t> x = drawn_x_.of(change, rows_before);
  // Where a batch moves, a row goes with its token to where the token's expert is.
  if (!shape.swiglu && first_token() != 0) x = in_order(x, rows.slot, shape.k);
  x_.upload(x);
  truths_.turn(change, truth_);
  return true;
}

bool Qmoe::find_truth() {
  if (truth_.empty()) truth_ = qmoe_truth(shape, inputs());
  return true;
}

/// Its rows ascend by expert.
std::vector<TokenRows> Qmoe::rows_of(int64_t place) const {
  std::vector<int64_t> rows;
  for (size_t row = 0; row < tokens_.size(); ++row) {
    if (tokens_[row] == place) rows.push_back(static_cast<int64_t>(row));
  }
  return {{&out_, shape.outputs(), rows}};
}

/// Every fourth column (all of its scale factors zero) is left with its bias, which is at, next to
/// or far beyond a clamp boundary, or a zero; one group in eight elsewhere is zero too.
void Qmoe::make_edges(uint64_t seed) {
  const float limit = std::isfinite(shape.limit) && shape.swiglu ? shape.limit : 7;
  const auto boundaries = narrow(shape.dtype, {limit, 8.0 * limit});
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
  const auto groups = static_cast<size_t>(shape.groups());
  // Pairs of columns, because a gate and its up column meet in one output.
  const auto zero_column = [](size_t column) { return column / 2 % 4 == 0; };
  for (size_t i = 0; i < scales.size(); ++i) {
    const bool zero_group = groups > 1 && random_bits(seed, kEdgeStream, i) % 8 == 0;
    if (zero_column(i / groups) || zero_group) scales[i] = 0;
  }
  scales_.upload(scales);
  if (!bias_) return;
  auto bias = bias_->download<uint16_t>();
  for (size_t column = 0; column < bias.size(); ++column) {
    const uint64_t pick = random_bits(seed, kEdgeStream + 1, column);
    if (zero_column(column)) bias[column] = corners[pick % corners.size()];
  }
  bias_->upload(bias);
}

QmoeArgs Qmoe::args() {
  return {.x = x_.data<uint16_t>(),
          .row_source = row_source_.data<int32_t>(),
          .row_expert = row_expert_.data<int32_t>(),
          .weights = weights_.data<uint8_t>(),
          .scales = scales_.data<uint16_t>(),
          .bias = bias_ ? bias_->data<uint16_t>() : nullptr,
          .out = out_.data<uint16_t>(),
          .shape = shape};
}

QmoeInputs Qmoe::inputs() const {
  QmoeInputs in{widen(shape.dtype, x_.download<uint16_t>()), sources_, experts_, {}};
  const auto slice = [&](const Tensor& tensor, int32_t expert, auto element) {
    std::vector<decltype(element)> values(static_cast<size_t>(tensor.size() / shape.experts));
    const size_t bytes = values.size() * sizeof element;
    device().download(values.data(), tensor.data<char>() + static_cast<size_t>(expert) * bytes,
                      bytes);
    return values;
  };
  for (const int32_t e : experts_) {
    if (in.experts.contains(e)) continue;
    QmoeInputs::Expert& expert = in.experts[e];
    expert.codes = slice(weights_, e, uint8_t{});
    expert.scales = widen(shape.dtype, slice(scales_, e, uint16_t{}));
    if (bias_) expert.bias = widen(shape.dtype, slice(*bias_, e, uint16_t{}));
  }
  return in;
}

Checked Qmoe::check() const {
  const auto bits = out_.download<uint16_t>();
  const auto& tolerance = shape.dtype == DType::f16 ? kTolerance16 : kToleranceBf16;
  const auto name = [this](int64_t row) {
    const auto r = static_cast<size_t>(row);
    return shape.swiglu ? fmt::format("token {}, expert {}", sources_[r], experts_[r])
                        : fmt::format("expert {}", experts_[r]);
  };
  return {{compare_floats("out", widen(shape.dtype, bits), truth_, shape.outputs(),
                          ceilings(tolerance), float_type(shape.dtype), {.name = name})},
          hash_bytes(bits.data(), bits.size() * sizeof(uint16_t))};
}

Corruptions Qmoe::corruptions() {
  return {.experts_swapped = Corruption([this] { swap_experts(); }),
          .token_dropped = Corruption([this] { drop_first_token(); }),
          .scales_transposed = Corruption([this] { transpose_scales(); })};
}

/// The first row changes places with the last, which another expert made unless one has all.
void Qmoe::swap_experts() {
  if (experts_.front() == experts_.back()) return;
  auto out = out_.download<uint16_t>();
  std::swap_ranges(out.begin(), out.begin() + shape.outputs(), out.end() - shape.outputs());
  out_.upload(out);
}

/// One row of it is zero, as where an expert's part of a token was never computed.
void Qmoe::drop_first_token() {
  auto out = out_.download<uint16_t>();
  std::fill_n(out.begin(), shape.outputs(), uint16_t{0});
  out_.upload(out);
}

/// The output of scale factors read as [K/b, N] where they are [N, K/b].
void Qmoe::transpose_scales() {
  if (shape.groups() == 1) return;
  QmoeInputs wrong = inputs();
  const auto n = static_cast<size_t>(shape.n), groups = static_cast<size_t>(shape.groups());
  for (auto& [e, expert] : wrong.experts) {
    const auto right = expert.scales;
    for (size_t column = 0; column < n; ++column) {
      for (size_t g = 0; g < groups; ++g) {
        expert.scales[column * groups + g] = right[g * n + column];
      }
    }
  }
  out_.upload(narrow(shape.dtype, qmoe_truth(shape, wrong)));
}

Cost Qmoe::cost() const {
  // Weights of the experts that have rows, once each.
  const double experts = skew_of(experts_, shape.experts).active_experts;
  const double columns = experts * shape.n, rows = shape.rows();
  Cost cost;
  cost.flops = 2.0 * rows * shape.n * shape.k;
  cost.read_bytes = columns * (shape.k / 2.0 + 2.0 * shape.groups() + (shape.has_bias ? 2 : 0)) +
                    static_cast<double>(x_.bytes()) + 8 * rows;
  cost.write_bytes = static_cast<double>(out_.bytes());
  return cost;
}

std::vector<Fact> Qmoe::facts() const {
  const Skew skew = skew_of(experts_, shape.experts);
  return {{"active_experts", static_cast<double>(skew.active_experts)},
          {"max_over_mean", skew.max_over_mean}};
}

}  // namespace moegate::qmoe
