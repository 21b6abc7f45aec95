// SPDX-License-Identifier: Apache-2.0
// The truth of the grouped GEMMs: plain double code, written to be read next to the definition in
// moe_gemm.h, and the positions at which a product too large for the host is looked at. No variant
// shares a line with it.
#include <algorithm>
#include <map>
#include <set>

#include "harness/kernel/random_fill.h"
#include "kernels/moe_gemm/moe_gemm.h"

namespace moegate::moe_gemm {
namespace {

constexpr uint64_t kRowStream = 311, kColumnStream = 312;
constexpr uint64_t kMostExperts = 64;
constexpr int kRunColumns = 8, kSeededRuns = 30;

std::vector<double> widened(DType dtype, const uint8_t* from, int elements) {
  std::vector<double> values(static_cast<size_t>(elements));
  const auto* whole = reinterpret_cast<const int8_t*>(from);
  for (int i = 0; i < elements; ++i) {
    values[static_cast<size_t>(i)] = dtype == DType::i8 ? whole[i] : read_float(dtype, from, i);
  }
  return values;
}

double dot(const double* a, const double* b, int elements) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int i = 0; i < elements; ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

std::vector<int32_t> all_below(int count) {
  std::vector<int32_t> all(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) all[static_cast<size_t>(i)] = i;
  return all;
}

std::vector<double> expert_truth(const ExpertProduct& product) {
  const int k = product.k, groups = (k + kMoeGroup - 1) / kMoeGroup;
  const size_t row_bytes = static_cast<size_t>(k) * size_of(product.dtype);
  const auto rows = static_cast<int>(product.x.size() / row_bytes);
  const auto columns = static_cast<int>(product.weights.size() / row_bytes);
  const auto x = widened(product.dtype, product.x.data(), rows * k);
  const auto scale = [&](const std::vector<float>& scales, int row, int group) {
    return scales.empty() ? 1.0 : double{scales[static_cast<size_t>(row * groups + group)]};
  };
  std::vector<double> out(static_cast<size_t>(rows) * static_cast<size_t>(columns));
#pragma omp parallel for schedule(static)
  for (int c = 0; c < columns; ++c) {
    const auto column =
        widened(product.dtype, product.weights.data() + static_cast<size_t>(c) * row_bytes, k);
    for (int r = 0; r < rows; ++r) {
      double sum = 0;
      for (int g = 0; g < groups; ++g) {
        const int first = g * kMoeGroup;
        sum += dot(x.data() + int64_t{r} * k + first, column.data() + first,
                   std::min(kMoeGroup, k - first)) *
               scale(product.x_scales, r, g) * scale(product.weight_scales, c, g);
      }
      const auto row = static_cast<size_t>(r);
      const double factor =
          product.routing_weights.empty() ? 1 : double{product.routing_weights[row]};
      const size_t at = row * static_cast<size_t>(columns) + static_cast<size_t>(c);
      out[at] = factor * (product.bias.empty() ? sum : sum + product.bias[at]);
    }
  }
  return out;
}

MoeGemmSample moe_gemm_sample(const MoeGemmShape& shape, std::span<const int32_t> row_expert,
                              uint64_t seed, double most_products) {
  const auto own = rows_of_rank({row_expert.begin(), row_expert.end()});
  if (1.0 * static_cast<double>(own.size()) * shape.n * shape.k <= most_products) {
    return {own, all_below(shape.n)};
  }
  std::map<int32_t, std::vector<int32_t>> of_expert;
  for (const int32_t r : own) of_expert[row_expert[static_cast<size_t>(r)]].push_back(r);
  // Evenly over the active experts, from a seeded one on.
  const uint64_t active = of_expert.size(), taken = std::min(active, kMostExperts);
  const uint64_t start = random_bits(seed, kRowStream, 0) % active;
  std::set<int32_t> rows = {own.front(), own.back()};
  for (uint64_t i = 0; i < taken; ++i) {
    const auto place = static_cast<std::ptrdiff_t>((start + i * active / taken) % active);
    const auto& candidates = std::next(of_expert.begin(), place)->second;
    rows.insert(candidates[random_bits(seed, kRowStream, i + 1) % candidates.size()]);
    rows.insert(candidates.back());  // what a last, narrower tile of rows makes
  }
  std::set<int32_t> columns;
  const auto add_run = [&](int first) {
    for (int c = std::max(0, first); c < std::min(shape.n, first + kRunColumns); ++c) {
      columns.insert(c);
    }
  };
  add_run(0);
  add_run(shape.n - kRunColumns);
  for (uint64_t i = 0; i < kSeededRuns; ++i) {
    add_run(static_cast<int>(random_bits(seed, kColumnStream, i) % static_cast<uint64_t>(shape.n)));
  }
  return {{rows.begin(), rows.end()}, {columns.begin(), columns.end()}};
}

}  // namespace moegate::moe_gemm
