// SPDX-License-Identifier: Apache-2.0
// How the output of a grouped GEMM is judged: what of the operands comes to the host for the truth,
// the comparison, and the outputs spoilt on purpose.
#include <algorithm>
#include <map>

#include "kernels/check/sampled_rows.h"
#include "kernels/moe_gemm/moe_gemm.h"

namespace moegate::moe_gemm {

namespace {

/// Each value `times` times.
std::vector<float> repeated(const std::vector<float>& values, int64_t times) {
  std::vector<float> all;
  for (const float value : values) all.insert(all.end(), static_cast<size_t>(times), value);
  return all;
}

}  // namespace

/// `at`: rows of this expert.
ExpertProduct MoeGemm::product_of(int32_t expert, const MoeGemmSample& at, Slip slip) const {
  std::vector<int64_t> sources, columns;
  for (const int32_t r : at.rows) sources.push_back(shape.source(r));
  for (const int32_t c : at.columns) columns.push_back(int64_t{expert} * shape.n + c);
  const auto row_bytes = shape.k * static_cast<int64_t>(size_of(shape.dtype));
  ExpertProduct p{.k = shape.k, .dtype = shape.dtype};
  p.x = check::rows_of<uint8_t>(device(), x_, row_bytes, sources);
  p.weights = check::rows_of<uint8_t>(device(), weights_, row_bytes, columns);
  if (routing_weights_) {
    p.routing_weights =
        check::rows_of<float>(device(), *routing_weights_, 1, {at.rows.begin(), at.rows.end()});
  }
  if (shape.scaled_once()) {
    put_factors(p, expert, std::move(sources), at.columns, slip);
  } else if (shape.scaled()) {
    put_block_factors(p, expert, sources, at.columns, slip);
  }
  if (bias_ && slip != Slip::bias_dropped) put_bias(p, expert, at.columns, slip);
  return p;
}

void MoeGemm::put_block_factors(ExpertProduct& p, int32_t expert,
                                const std::vector<int64_t>& sources,
                                const std::vector<int32_t>& columns, Slip slip) const {
  const int64_t k_groups = shape.k_groups(), n_groups = shape.n_groups();
  p.x_scales = check::rows_of<float>(device(), *x_scales_, k_groups, sources);
  const auto scales =
      check::rows_of<float>(device(), *weight_scales_, n_groups * k_groups, {expert});
  for (const int32_t c : columns) {
    const int64_t group = c / kMoeGroup;
    for (int64_t g = 0; g < k_groups; ++g) {
      const int64_t i = slip == Slip::transposed ? g * n_groups + group : group * k_groups + g;
      p.weight_scales.push_back(scales[static_cast<size_t>(i)]);
    }
  }
}

/// Of a channel or a tensor: the same for every group of K.
void MoeGemm::put_factors(ExpertProduct& p, int32_t expert, std::vector<int64_t> sources,
                          const std::vector<int32_t>& columns, Slip slip) const {
  const bool by_channel = shape.scaled_by == ScaledBy::channel;
  for (int64_t& row : sources) {
    if (!by_channel) row = 0;
    if (by_channel && slip == Slip::neighbours && (row ^ 1) < shape.source_rows()) row ^= 1;
  }
  p.x_scales = repeated(check::rows_of<float>(device(), *x_scales_, 1, sources), shape.k_groups());
  if (slip == Slip::forgotten) return;
  const auto of_expert = check::rows_of<float>(device(), *weight_scales_, shape.weight_factors(),
                                               {slip == Slip::of_expert_0 ? 0 : expert});
  std::vector<float> scales;
  for (const int32_t c : columns) {
    const bool of_up = !shape.down && c >= shape.n / 2 && slip != Slip::gate_for_up;
    scales.push_back(of_expert[by_channel ? static_cast<size_t>(c) : of_up]);
  }
  p.weight_scales = repeated(scales, shape.k_groups());
}

/// The same for every row, but for slips. Behind the factors, which a slip puts on it.
void MoeGemm::put_bias(ExpertProduct& p, int32_t expert, const std::vector<int32_t>& columns,
                       Slip slip) const {
  const auto of_expert =
      check::rows_of<uint16_t>(device(), *bias_, shape.n, {slip == Slip::of_expert_0 ? 0 : expert});
  const auto groups = static_cast<size_t>(shape.k_groups());
  const size_t rows = p.x.size() / static_cast<size_t>(shape.row_bytes());
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < columns.size(); ++c) {
      double bias = bf16_to_float(of_expert[static_cast<size_t>(columns[c])]);
      if (slip == Slip::bias_twice) bias *= 2;
      if (slip == Slip::bias_scaled && shape.scaled()) {
        bias *= double{p.x_scales[r * groups]} * double{p.weight_scales[c * groups]};
      }
      if (slip == Slip::bias_unweighted && routing_weights_) bias /= p.routing_weights[r];
      p.bias.push_back(bias);
    }
  }
}

/// The expected output at a sample, expert by expert: no more of the weights than one expert's is
/// ever on the host.
std::vector<double> MoeGemm::truth(Slip slip, const MoeGemmSample& at) const {
  std::map<int32_t, std::vector<size_t>> places;  // in the sample, of an expert's rows
  for (size_t i = 0; i < at.rows.size(); ++i) {
    places[experts_[static_cast<size_t>(at.rows[i])]].push_back(i);
  }
  const size_t width = at.columns.size();
  std::vector<double> all(at.rows.size() * width);
  for (const auto& [expert, of_expert] : places) {
    MoeGemmSample mine{{}, at.columns};
    for (const size_t i : of_expert) mine.rows.push_back(at.rows[i]);
    const auto part = expert_truth(product_of(expert, mine, slip));
    for (size_t i = 0; i < of_expert.size(); ++i) {
      std::copy_n(part.begin() + static_cast<std::ptrdiff_t>(i * width), width,
                  all.begin() + static_cast<std::ptrdiff_t>(of_expert[i] * width));
    }
  }
  return all;
}

/// The output [R, N] in token order, whatever order it is in; zeros in rows of other ranks.
std::vector<uint16_t> MoeGemm::download_rows() const {
  auto out = this->out().download<uint16_t>();
  if (in_order()) return out;
  const auto at = places();
  const auto width = static_cast<std::ptrdiff_t>(shape.n);
  std::vector<uint16_t> rows(static_cast<size_t>(shape.rows() * width));
  for (size_t i = 0; i < rows_.size(); ++i) {
    std::copy_n(out.begin() + at[i] * width, width, rows.begin() + rows_[i] * width);
  }
  return rows;
}

/// The reverse; leaves what is no routed row as it is.
void MoeGemm::upload_rows(const std::vector<uint16_t>& rows) {
  if (in_order()) return out_.upload(rows);
  const auto at = places();
  auto out = this->out().download<uint16_t>();
  const auto width = static_cast<std::ptrdiff_t>(shape.n);
  for (size_t i = 0; i < rows_.size(); ++i) {
    std::copy_n(rows.begin() + rows_[i] * width, width, out.begin() + at[i] * width);
  }
  this->out().upload(out);
}

/// "token 12, expert 5", as the layer counts both
check::RowName MoeGemm::row_name() const {
  return [this](int64_t row) {
    return fmt::format("token {}, expert {}", row / shape.topk,
                       rank_.first() + experts_[static_cast<size_t>(row)]);
  };
}

Tolerance MoeGemm::own_ceilings() const {
  Tolerance tolerance = kTolerance;
  const bool on_tensor_cores = device().facts().backend == Backend::cuda;
  if (on_tensor_cores && shape.dtype == DType::e4m3) tolerance.between = check::kFp8TensorCores;
  return ceilings(tolerance);
}

Checked MoeGemm::check() const {
  const auto bits = download_rows();
  const Accuracy a = check::compare_bf16_at(out_.name(), bits, shape.n, sample_.rows,
                                            sample_.columns, truth_, own_ceilings(), row_name());
  return {{a}, hash_bytes(bits.data(), bits.size() * sizeof(uint16_t))};
}

std::vector<int32_t> MoeGemm::places() const {
  if (in_order()) return {};
  if (out_order_ == RowOrder::tokens) return rows_;
  const auto all = places(out_order_);
  std::vector<int32_t> places;
  for (const int32_t r : rows_) places.push_back(all[static_cast<size_t>(r)]);
  return places;
}

std::vector<TokenRows> MoeGemm::rows_of(int64_t place) const {
  std::vector<int64_t> rows = check::rows_of_token(place, shape.topk);
  if (in_order()) return {{&out(), shape.n, rows}};
  const auto all = places();
  std::vector<int64_t> own;
  for (const int64_t row : rows) {
    const auto at = std::ranges::lower_bound(rows_, row);
    if (at != rows_.end() && *at == row)
      own.push_back(all[static_cast<size_t>(at - rows_.begin())]);
  }
  return {{&out(), shape.n, own}};
}

std::vector<SampledOutput> MoeGemm::sampled_outputs() const {
  const auto rows = static_cast<int64_t>(rows_.size());
  if (static_cast<int64_t>(truth_.size()) == rows * shape.n) return {};
  return {{&out(), rows, shape.n, places(), own_ceilings()}};
}

/// `rows`: which of the rank's.
std::vector<Accuracy> MoeGemm::check_rows(const std::vector<int64_t>& rows) {
  const auto routed = [&](int64_t i) { return rows_[static_cast<size_t>(i)]; };
  const auto& expected = row_truth_.of(rows, [&] {
    MoeGemmSample at{{}, all_below(shape.n)};
    for (const int64_t i : rows) at.rows.push_back(routed(i));
    return truth(Slip::none, at);
  });
  return {check::compare_bf16_rows(device(), out(), shape.n, rows, places(), expected,
                                   own_ceilings(),
                                   [&](int64_t i) { return row_name()(routed(i)); })};
}

Corruptions MoeGemm::corruptions() {
  return {.experts_swapped = Corruption([this] { swap_experts(); }),
          .token_dropped = Corruption([this] { drop_row(); }),
          .scales_transposed = Corruption(
              [this] { slip(shape.scaled_once() ? Slip::of_expert_0 : Slip::transposed); })};
}

/// The first row changes places with one that another expert made.
void MoeGemm::swap_experts() {
  if (sample_.rows.empty()) return;  // no row is of this rank
  const int32_t first = sample_.rows.front();
  const auto expert = [&](int32_t r) { return experts_[static_cast<size_t>(r)]; };
  const auto other = std::find_if(sample_.rows.begin(), sample_.rows.end(),
                                  [&](int32_t r) { return expert(r) != expert(first); });
  if (other == sample_.rows.end()) return;  // one expert has all
  auto out = download_rows();
  uint16_t* row = out.data() + int64_t{first} * shape.n;
  std::swap_ranges(row, row + shape.n, out.data() + int64_t{*other} * shape.n);
  upload_rows(out);
}

/// A row of zeros, as where an expert's part of a token was never computed.
void MoeGemm::drop_row() {
  if (sample_.rows.empty()) return;
  auto out = download_rows();
  std::fill_n(out.begin() + int64_t{sample_.rows.front()} * shape.n, shape.n, uint16_t{0});
  upload_rows(out);
}

void MoeGemm::slip(Slip slip) {
  if (!shape.scaled() && !shape.biased) return;
  if (slip == Slip::transposed && (shape.k_groups() == 1 || shape.n_groups() == 1)) return;
  const auto wrong = truth(slip, sample_);
  if (wrong == truth_) return;
  auto out = download_rows();
  size_t i = 0;
  for (const int64_t r : sample_.rows) {
    uint16_t* row = out.data() + r * shape.n;
    for (const int32_t c : sample_.columns) row[c] = float_to_bf16(static_cast<float>(wrong[i++]));
  }
  upload_rows(out);
}

}  // namespace moegate::moe_gemm
