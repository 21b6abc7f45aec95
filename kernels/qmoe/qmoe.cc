// SPDX-License-Identifier: Apache-2.0
#include "kernels/qmoe/qmoe.h"

#include <algorithm>
#include <numeric>

#include "harness/kernel/check.h"
#include "harness/kernel/routing.h"

namespace moegate::qmoe {
namespace {

constexpr WeightStreams kStreams{.codes = 202, .scales = 203, .bias = 204, .edges = 205};

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
      weights_{
          s, make_tensor("weights", Role::weight, DType::u8, {s.experts, s.n, s.k / 2}),
          make_tensor("scales", Role::weight, s.dtype, {s.experts, s.n, s.groups()}),
          s.has_bias ? &make_tensor("bias", Role::weight, s.dtype, {s.experts, s.n}) : nullptr},
      out_(make_tensor("out", Role::output, s.dtype, {s.rows(), s.outputs()})),
      drawn_experts_(s.tokens, seed_of(c),
                     [s, routing = c.get("routing")](uint64_t seed, int64_t first) {
                       return routed_experts(routing, {s.tokens, s.experts, s.topk, first}, seed);
                     }),
      drawn_x_(s.source_rows(), seed_of(c),
               [s](uint64_t seed, int64_t first) { return drawn_x(s, seed, first); }) {
  redraw(0);
  weights_.draw(seed_of(c), kStreams);
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

QmoeArgs Qmoe::args() {
  QmoeArgs args{};
  args.x = x_.data<uint16_t>();
  args.row_source = row_source_.data<int32_t>();
  args.row_expert = row_expert_.data<int32_t>();
  weights_.put_into(args);
  args.out = out_.data<uint16_t>();
  args.shape = shape;
  return args;
}

QmoeInputs Qmoe::inputs(bool transposed) const {
  QmoeInputs in{widened(shape.dtype, x_.download<uint16_t>()), sources_, experts_, {}};
  for (const int32_t e : experts_) {
    if (!in.experts.contains(e)) in.experts[e] = weights_.of(device(), e, transposed);
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
  return {{compare_floats("out", widened(shape.dtype, bits), truth_, shape.outputs(),
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
  out_.upload(narrowed(shape.dtype, qmoe_truth(shape, inputs(true))));
}

Cost Qmoe::cost() const {
  // Weights of the experts that have rows, once each.
  const double experts = skew_of(experts_, shape.experts).active_experts;
  const double rows = shape.rows();
  Cost cost;
  cost.flops = 2.0 * rows * shape.n * shape.k;
  cost.read_bytes = experts * weights_.bytes() + static_cast<double>(x_.bytes()) + 8 * rows;
  cost.write_bytes = static_cast<double>(out_.bytes());
  return cost;
}

std::vector<Fact> Qmoe::facts() const {
  const Skew skew = skew_of(experts_, shape.experts);
  return {{"active_experts", static_cast<double>(skew.active_experts)},
          {"max_over_mean", skew.max_over_mean}};
}

}  // namespace moegate::qmoe
