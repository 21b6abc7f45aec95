// SPDX-License-Identifier: Apache-2.0
#include "kernels/moe_sum/moe_sum.h"

#include <algorithm>

#include "kernels/check/sampled_rows.h"

namespace moegate::moe_sum {
namespace {

enum Stream : uint64_t { kInputStream = 341 };  // of the counter-based generator

const Op<MoeSum> op({
    .help = "the k rows of a token added up, in fp32, to one of bf16",
    .params = {{"tokens", "", "T, 1 to 65536"},
               {"topk", "", "k, 1 to 16"},
               {"hidden", "", "H"},
               {"scale", "1", "factor on the sum (DeepSeek-R1: 2.5)"}},
    .yardstick = "per_token",
    .before = {.cuda = {{"sum_per_token"}}},
});

/// Rows of y that belong to the tokens.
std::vector<int64_t> rows_of_tokens(const std::vector<int64_t>& tokens, int topk) {
  std::vector<int64_t> rows;
  for (const int64_t t : tokens) {
    for (int j = 0; j < topk; ++j) rows.push_back(t * topk + j);
  }
  return rows;
}

}  // namespace

/// Plain double code, written to be read next to the definition in moe_sum.h. No variant shares a
/// line with it.
std::vector<double> moe_sum_truth(const std::vector<uint16_t>& y, const MoeSumShape& shape) {
  const auto width = static_cast<size_t>(shape.hidden), topk = static_cast<size_t>(shape.topk);
  std::vector<double> out(y.size() / topk);
  for (size_t row = 0; row * width < y.size(); ++row) {
    for (size_t i = 0; i < width; ++i) {
      out[row / topk * width + i] += double{shape.scale} * bf16_to_float(y[row * width + i]);
    }
  }
  return out;
}

MoeSumShape MoeSumShape::of(const Case& c) {
  return {static_cast<int>(c.get_int("tokens", 1, 1 << 16)),
          static_cast<int>(c.get_int("topk", 1, 16)),
          static_cast<int>(c.get_int("hidden", 1, 1 << 16)),
          static_cast<float>(c.get_double("scale", 1e-3, 1e3))};
}

void MoeSum::validate(const Case& c) {
  MoeSumShape::of(c);
}

MoeSum::MoeSum(Device& device, const Case& c, int64_t most_elements)
    : Problem(device),
      shape(MoeSumShape::of(c)),
      y_(make_tensor("y", Role::activation, DType::bf16,
                     {int64_t{shape.tokens} * shape.topk, shape.hidden})),
      out_(make_tensor("out", Role::output, DType::bf16, {shape.tokens, shape.hidden})) {
  const uint64_t seed = seed_of(c);
  y_.fill_random({RandomFill::Kind::uniform, seed, kInputStream, DType::bf16, -1, 1});
  tokens_ = check::sampled_rows(shape.tokens,
                                y_.size() <= most_elements ? shape.tokens : kSampledTokens, seed);
  if (c.truth) find_truth();
}

bool MoeSum::redraw(uint64_t change) {
  truths_.turn(change, truth_);
  row_truths_.turn(change, row_truth_);
  return false;
}

bool MoeSum::find_truth() {
  if (truth_.empty()) truth_ = truth(tokens_);
  return true;
}

std::vector<double> MoeSum::truth(const std::vector<int64_t>& tokens) const {
  const auto rows = rows_of_tokens(tokens, shape.topk);
  return moe_sum_truth(check::rows_of<uint16_t>(device(), y_, shape.hidden, rows), shape);
}

MoeSumArgs MoeSum::args() {
  return {.y = y_.data<uint16_t>(), .out = out_.data<uint16_t>(), .shape = shape};
}

Checked MoeSum::check() const {
  return check::check_bf16_rows(out_, shape.hidden, tokens_, truth_, ceilings(kTolerance),
                                check::token_name);
}

std::vector<TokenRows> MoeSum::rows_of(int64_t place) const {
  return {{&out_, shape.hidden, {place}}};
}

std::vector<SampledOutput> MoeSum::sampled_outputs() const {
  if (static_cast<int>(tokens_.size()) == shape.tokens) return {};
  return {{&out_, shape.tokens, shape.hidden, {}, ceilings(kTolerance)}};
}

std::vector<Accuracy> MoeSum::check_rows(const std::vector<int64_t>& rows) {
  const auto& expected = row_truth_.of(rows, [&] { return truth(rows); });
  return {check::compare_bf16_rows(device(), out_, shape.hidden, rows, {}, expected,
                                   ceilings(kTolerance), check::token_name)};
}

Corruptions MoeSum::corruptions() {
  return {.experts_swapped = Corruption([this] { swap_slots(); }),
          .token_dropped = Corruption([this] { drop_slot(); }),
          .scales_transposed = Corruption::not_applicable("rows carry no scale factors")};
}

/// The first token has the last one's first row, and the reverse.
void MoeSum::swap_slots() {
  const int64_t last = shape.tokens - 1, width = shape.hidden;
  if (last == 0) return;
  const auto ours = check::rows_of<uint16_t>(device(), y_, width, {0});
  const auto theirs = check::rows_of<uint16_t>(device(), y_, width, {last * shape.topk});
  auto out = out_.download<uint16_t>();
  const auto add = [](uint16_t& to, float value) { to = float_to_bf16(bf16_to_float(to) + value); };
  for (size_t i = 0; i < ours.size(); ++i) {
    const float change = shape.scale * (bf16_to_float(theirs[i]) - bf16_to_float(ours[i]));
    add(out[i], change);
    add(out[static_cast<size_t>(last * width) + i], -change);
  }
  out_.upload(out);
}

/// The first token lacks its last row.
void MoeSum::drop_slot() {
  const auto row = check::rows_of<uint16_t>(device(), y_, shape.hidden, {shape.topk - 1});
  auto out = out_.download<uint16_t>();
  for (size_t i = 0; i < row.size(); ++i) {
    out[i] = float_to_bf16(bf16_to_float(out[i]) - shape.scale * bf16_to_float(row[i]));
  }
  out_.upload(out);
}

Cost MoeSum::cost() const {
  Cost cost;
  cost.flops = static_cast<double>(y_.size());
  cost.read_bytes = static_cast<double>(y_.bytes());
  cost.write_bytes = static_cast<double>(out_.bytes());
  return cost;
}

}  // namespace moegate::moe_sum
