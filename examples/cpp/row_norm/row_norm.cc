// SPDX-License-Identifier: Apache-2.0
#include "row_norm.h"

#include <cmath>

#include "harness/kernel/check.h"

namespace row_norm {
namespace {

using namespace moegate;

// Measured: 3e-7, worst row 4e-7: fp32 sums in any order.
constexpr Tolerance kTolerance{
    .rtol = 1e-4, .atol = 1e-5, .rel_l2 = 1e-5, .row = 3e-5, .scale = 1e-5};
constexpr int64_t kMost = int64_t{1} << 16;

const Op<RowNorm> op({
    .help = "RMS normalisation of every row",
    .params = {{"tokens", "", "rows, 1 to 65536"}, {"hidden", "", "elements of a row, 1 to 65536"}},
    .yardstick = "plain",
});

/// Plain double code that shares no line with a variant.
std::vector<double> truth_of(const std::vector<float>& x, const std::vector<float>& weight) {
  const size_t hidden = weight.size();
  std::vector<double> out(x.size());
  for (size_t row = 0; row < x.size(); row += hidden) {
    double squares = 0;
    for (size_t i = 0; i < hidden; ++i) squares += double{x[row + i]} * double{x[row + i]};
    const double factor = 1 / std::sqrt(squares / static_cast<double>(hidden) + double{kEpsilon});
    for (size_t i = 0; i < hidden; ++i) {
      out[row + i] = double{x[row + i]} * factor * double{weight[i]};
    }
  }
  return out;
}

}  // namespace

void RowNorm::validate(const Case& c) {
  c.get_int("tokens", 1, kMost);
  c.get_int("hidden", 1, kMost);
}

RowNorm::RowNorm(Device& device, const Case& c)
    : Problem(device),
      tokens_(c.get_int("tokens", 1, kMost)),
      hidden_(c.get_int("hidden", 1, kMost)),
      x_(make_tensor("x", Role::activation, DType::f32, {tokens_, hidden_})),
      weight_(make_tensor("weight", Role::weight, DType::f32, {hidden_})),
      out_(make_tensor("out", Role::output, DType::f32, {tokens_, hidden_})) {
  const uint64_t seed = seed_of(c);
  x_.fill_random({RandomFill::Kind::uniform, seed, 1, DType::f32, -1, 1});
  weight_.fill_random({RandomFill::Kind::uniform, seed, 2, DType::f32, 0.5, 1.5});
  find_truth();
}

bool RowNorm::redraw(uint64_t change) {
  truths_.turn(change, truth_);
  return false;
}

bool RowNorm::find_truth() {
  if (truth_.empty()) truth_ = truth_of(x_.download<float>(), weight_.download<float>());
  return true;
}

Args RowNorm::args() {
  return {.x = x_.data<float>(),
          .weight = weight_.data<float>(),
          .out = out_.data<float>(),
          .tokens = tokens_,
          .hidden = hidden_};
}

Checked RowNorm::check() const {
  const auto out = out_.download<float>();
  return {{compare_floats("out", out, truth_, hidden_, ceilings(kTolerance), kFp32)},
          hash_bytes(out.data(), out_.bytes())};
}

Corruptions RowNorm::corruptions() {
  const std::string none = "a row norm has no experts";
  return {.experts_swapped = Corruption::not_applicable(none),
          .token_dropped = Corruption([this] {
            auto out = out_.download<float>();
            std::fill_n(out.begin(), hidden_, 0.0F);
            out_.upload(out);
          }),
          .scales_transposed = Corruption::not_applicable(none)};
}

Cost RowNorm::cost() const {
  return {.flops = 4.0 * static_cast<double>(x_.size()),
          .read_bytes = static_cast<double>(x_.bytes() + weight_.bytes()),
          .write_bytes = static_cast<double>(out_.bytes())};
}

}  // namespace row_norm
