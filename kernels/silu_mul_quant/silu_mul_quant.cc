// SPDX-License-Identifier: Apache-2.0
#include "kernels/silu_mul_quant/silu_mul_quant.h"

#include <algorithm>
#include <cmath>

#include "kernels/check/sampled_rows.h"

namespace moegate::silu_mul_quant {
namespace {

const std::vector<std::string> kValues = {"normal", "edges"};

enum Stream : uint64_t { kInputStream = 331 };  // of the counter-based generator

const Op<SiluMulQuant> op({
    .help = "silu(gate) * up per routed row, quantised to fp8 with a scale factor per 128",
    .params = {{"tokens", "", "T, 1 to 65536"},
               {"topk", "", "k, 1 to 16"},
               {"inter", "", "I, the layer's inner width (of one rank), a multiple of 128"},
               {"values", "normal",
                "normal, or edges: groups of zeros, of tiny, equal, far apart and huge values"}},
    .yardstick = "two_passes",
    .before = {.cuda = {{"two_kernels"}}},
});

/// Column i of a group whose values are of kind `kind`; `x` is uniform in (-3, 3).
float edge_value(uint64_t kind, uint64_t i, float x) {
  switch (kind) {
    case 0:  // the smallest scale factor there is
      return i % 2 == 0 ? 0.0f : -0.0f;
    case 1:  // products below the least amax, so that no code is large
      return x * 2e-6f;
    case 2:  // many codes are +-448: a quotient may come out beyond
      return i % 16 != 0 ? x / 3 : x < 0 ? -1.7f : 1.7f;
    case 3:  // one value far above the others, whose codes are subnormal or 0
      return i == 77 ? 300.0f : x;
    case 4:  // the sigmoid is 0 or 1, and e^-x overflows
      return 40 * x;
    default:
      return x;
  }
}

std::vector<uint16_t> edge_values(const SiluMulQuantShape& shape, uint64_t seed, int64_t first) {
  const size_t width = 2 * static_cast<size_t>(shape.inter);
  const size_t skipped = static_cast<size_t>(first) * width;
  std::vector<uint16_t> h(static_cast<size_t>(shape.rows) * width);
  for (size_t i = skipped; i < skipped + h.size(); ++i) {
    const auto x = static_cast<float>(6 * random_uniform(seed, kInputStream, i) - 3);
    // A group's gates and ups are of one kind.
    const size_t row = i / width;
    const size_t group = i % static_cast<size_t>(shape.inter) / kQuantGroup;
    const uint64_t kind = (row * static_cast<size_t>(shape.groups()) + group + seed) % 6;
    h[i - skipped] = float_to_bf16(edge_value(kind, i % kQuantGroup, x));
  }
  return h;
}

bool is_nonfinite_code(uint8_t code) {
  return (code & 0x7f) == 0x7f;
}
bool is_nonfinite_scale(float scale) {
  return !std::isfinite(scale);
}

}  // namespace

SiluMulQuantShape SiluMulQuantShape::of(const Case& c) {
  const auto tokens = static_cast<int>(c.get_int("tokens", 1, 1 << 16));
  const auto topk = static_cast<int>(c.get_int("topk", 1, 16));
  const auto inter = static_cast<int>(c.get_int("inter", 1, 1 << 16));
  if (inter % kQuantGroup != 0) {
    usage_error("{}: inter = {} is not a multiple of {}, the group of a scale factor", c.where(),
                inter, kQuantGroup);
  }
  return {tokens * topk, inter};
}

void SiluMulQuant::validate(const Case& c) {
  SiluMulQuantShape::of(c);
  c.get_choice("values", kValues);
}

SiluMulQuant::SiluMulQuant(Device& device, const Case& c, int64_t most_elements)
    : Problem(device),
      shape(SiluMulQuantShape::of(c)),
      topk_(static_cast<int>(c.get_int("topk", 1, 16))),
      h_(make_tensor("h", Role::activation, DType::bf16, {shape.rows, 2 * shape.inter})),
      q_(make_tensor("q", Role::output, DType::e4m3, {shape.rows, shape.inter})),
      scales_(make_tensor("scales", Role::output, DType::f32, {shape.rows, shape.groups()})) {
  const uint64_t seed = seed_of(c);
  if (c.get_choice("values", kValues) == 0) {
    h_.fill_random({RandomFill::Kind::uniform, seed, kInputStream, DType::bf16, -3, 3});
  } else {
    drawn_edges_.emplace(shape.rows, seed, [s = shape](uint64_t of, int64_t first) {
      return edge_values(s, of, first);
    });
    redraw(0);
  }
  const int64_t elements = int64_t{shape.rows} * shape.inter;
  rows_ =
      check::sampled_rows(shape.rows, elements <= most_elements ? shape.rows : kSampledRows, seed);
  if (c.truth) find_truth();
}

bool SiluMulQuant::redraw(uint64_t change) {
  truths_.turn(change, truth_);
  row_truths_.turn(change, row_truth_);
  if (!drawn_edges_) return false;
  h_.upload(drawn_edges_->of(change, first_token() * topk_));
  return true;
}

bool SiluMulQuant::find_truth() {
  if (truth_.empty()) truth_ = truth(rows_);
  return true;
}

QuantisedRows SiluMulQuant::truth(const std::vector<int64_t>& rows) const {
  return silu_mul_quant_truth(
      check::rows_of<uint16_t>(device(), h_, 2 * int64_t{shape.inter}, rows), shape.inter);
}

/// Of the whole output: where it has few groups, one code next to a tie is a larger share of it.
Tolerance SiluMulQuant::code_ceilings() const {
  Tolerance whole = kCodes;
  const double groups = static_cast<double>(shape.rows) * shape.groups();
  whole.rel_l2 = std::max(whole.rel_l2, whole.row / std::sqrt(groups));
  return ceilings(whole);
}

/// A variant that rounds the activations to bf16 says so by its tolerance.
Tolerance SiluMulQuant::scale_ceilings() const {
  return ceilings(kCodes).rtol > kCodes.rtol ? kScalesOfBf16 : kScales;
}

SiluMulQuantArgs SiluMulQuant::args() {
  return {.h = h_.data<uint16_t>(),
          .q = q_.data<uint8_t>(),
          .scales = scales_.data<float>(),
          .shape = shape};
}

Checked SiluMulQuant::check() const {
  const auto codes = q_.download<uint8_t>();
  const auto scales = scales_.download<float>();
  std::vector<float> code_values, scale_values;
  code_values.reserve(truth_.codes.size());
  for (const int64_t r : rows_) {
    for (int64_t i = r * shape.inter; i < (r + 1) * shape.inter; ++i) {
      code_values.push_back(e4m3_to_float(codes[static_cast<size_t>(i)]));
    }
    const auto first = scales.begin() + r * shape.groups();
    scale_values.insert(scale_values.end(), first, first + shape.groups());
  }
  Accuracy q = compare_floats(samples() ? "q (sample)" : "q", code_values, truth_.codes,
                              shape.inter, code_ceilings(), kE4m3, {.rows = rows_});
  Accuracy s = compare_floats(samples() ? "scales (sample)" : "scales", scale_values, truth_.scales,
                              shape.groups(), scale_ceilings(), kFp32, {.rows = rows_});
  check::reject_nonfinite(q, codes, is_nonfinite_code);
  check::reject_nonfinite(s, scales, is_nonfinite_scale);
  return {{q, s},
          hash_bytes(scales.data(), scales.size() * sizeof(float),
                     hash_bytes(codes.data(), codes.size()))};
}

std::vector<TokenRows> SiluMulQuant::rows_of(int64_t place) const {
  const auto rows = check::rows_of_token(place, topk_);
  return {{&q_, shape.inter, rows}, {&scales_, shape.groups(), rows}};
}

std::vector<SampledOutput> SiluMulQuant::sampled_outputs() const {
  if (!samples()) return {};
  return {{&q_, shape.rows, shape.inter, {}, ceilings(kCodes)},
          {&scales_, shape.rows, shape.groups(), {}, scale_ceilings()}};
}

std::vector<Accuracy> SiluMulQuant::check_rows(const std::vector<int64_t>& rows) {
  const auto& expected = row_truth_.of(rows, [&] { return truth(rows); });
  std::vector<float> codes;
  for (const uint8_t code : check::rows_of<uint8_t>(device(), q_, shape.inter, rows)) {
    codes.push_back(e4m3_to_float(code));
  }
  const auto scales = check::rows_of<float>(device(), scales_, shape.groups(), rows);
  return {compare_floats("q (rows)", codes, expected.codes, shape.inter, ceilings(kCodes).of_rows(),
                         kE4m3, {.rows = rows}),
          compare_floats("scales (rows)", scales, expected.scales, shape.groups(),
                         scale_ceilings().of_rows(), kFp32, {.rows = rows})};
}

Corruptions SiluMulQuant::corruptions() {
  return {.experts_swapped = Corruption([this] { swap_rows(); }),
          .token_dropped = Corruption([this] { drop_row(); }),
          .scales_transposed = Corruption([this] { transpose_scales(); })};
}

/// The codes of the first row change places with those of the last, another expert's.
void SiluMulQuant::swap_rows() {
  auto q = q_.download<uint8_t>();
  std::swap_ranges(q.begin(), q.begin() + shape.inter, q.end() - shape.inter);
  q_.upload(q);
}

/// Zeros, as of a row that was never computed.
void SiluMulQuant::drop_row() {
  auto q = q_.download<uint8_t>();
  std::fill_n(q.begin(), shape.inter, uint8_t{0});
  q_.upload(q);
}

/// Written as [I/128, R] where they are [R, I/128].
void SiluMulQuant::transpose_scales() {
  const auto right = scales_.download<float>();
  auto wrong = right;
  const auto rows = static_cast<size_t>(shape.rows), groups = static_cast<size_t>(shape.groups());
  for (size_t r = 0; r < rows; ++r) {
    for (size_t g = 0; g < groups; ++g) wrong[g * rows + r] = right[r * groups + g];
  }
  scales_.upload(wrong);
}

Cost SiluMulQuant::cost() const {
  // An exponential, a division, two products, a comparison, the quantisation: about ten a value.
  Cost cost;
  cost.flops = 10.0 * shape.rows * shape.inter;
  cost.read_bytes = static_cast<double>(h_.bytes());
  cost.write_bytes = static_cast<double>(q_.bytes() + scales_.bytes());
  return cost;
}

}  // namespace moegate::silu_mul_quant
