// SPDX-License-Identifier: Apache-2.0
// A thread takes 64 columns of the output, whose sums stay in its caches, and goes through the
// experts: as many at a time as have room for their rows of a, widened to floats.
#include "kernels/dense_fc2/host/dense.h"

#include <omp.h>

#include <algorithm>

namespace moegate::dense_fc2::host {
namespace {

using moe_gemm::host::kPanelRows;
using moe_gemm::host::Panel;
using moe_gemm::host::Scaling;

/// Columns of one unit of parallel work; divides 128, so that they share their scale factors.
constexpr int kUnitColumns = 64;
/// Columns of a panel. They often lie a power of two apart, where a cache keeps 8 to 16 of them.
constexpr int kPanelColumns = 8;
/// Widened activations that a thread keeps: 256 KB, or one expert's rows.
constexpr int64_t kSliceFloats = int64_t{1} << 16;

/// A launch and what its threads share.
struct Work {
  const DenseFc2Args& args;
  const Plan& plan;
  const moe_gemm::host::Isa& isa;
  int32_t* first_row;  // [E + 1]: where an expert's rows start in `rows`
  int32_t* rows;       // [M*E] at most
  float* factors;      // [2, I/128]: the one scale factor of a, and that of b, for every group
};

/// What a thread keeps.
struct Own {
  float* slices;  // [slots, I]: rows of a
  float* sums;    // [M, kUnitColumns]
};

/// Rows of a for which a thread has room.
int64_t slots(const DenseFc2Shape& s) {
  return std::max<int64_t>(s.tokens, kSliceFloats / s.inter);
}

int64_t own_floats(const DenseFc2Shape& s) {
  return slots(s) * s.inter + int64_t{s.tokens} * kUnitColumns;
}

void list_rows(const Work& work) {
  const DenseFc2Shape& s = work.args.shape;
  int32_t count = 0;
  for (int e = 0; e < s.experts; ++e) {
    work.first_row[e] = count;
    for (int t = 0; t < s.tokens; ++t) {
      const bool routed = work.args.alpha[int64_t{t} * s.experts + e] != 0;
      if (routed || work.plan.rows == Rows::all) work.rows[count++] = t;
    }
  }
  work.first_row[s.experts] = count;
}

void fill_factors(const Work& work) {
  const DenseFc2Shape& s = work.args.shape;
  if (s.block_scales) return;
  const int groups = s.expert_groups();
  std::fill_n(work.factors, groups, work.args.a_scales[0]);
  std::fill_n(work.factors + groups, groups, work.args.b_scales[0]);
}

/// The end of the experts from `from` on whose rows fit in the slots; one expert's always do.
int experts_that_fit(const Work& work, int from) {
  const DenseFc2Shape& s = work.args.shape;
  int to = from + 1;
  while (to < s.experts && work.first_row[to + 1] - work.first_row[from] <= slots(s)) ++to;
  return to;
}

void widen_slices(const Work& work, int from, int to, float* slices) {
  const DenseFc2Shape& s = work.args.shape;
  float* slice = slices;
  for (int e = from; e < to; ++e) {
    for (int i = work.first_row[e]; i < work.first_row[e + 1]; ++i) {
      const uint8_t* codes = work.args.a + int64_t{work.rows[i]} * s.k() + int64_t{e} * s.inter;
      work.isa.widen(DType::e4m3, codes, s.inter, slice);
      slice += s.inter;
    }
  }
}

/// Rows [first, first + rows) of the lists and columns of an expert, from element `k` of the expert
/// on; `slice` is the first row's.
Panel panel_at(const Work& work, int expert, int k, int first, int rows, const float* slice,
               int first_column, int columns) {
  const DenseFc2Shape& s = work.args.shape;
  const int64_t group = int64_t{expert} * s.expert_groups() + k / kMoeGroup;
  Panel panel{};
  panel.rows = rows;
  panel.columns = columns;
  panel.k = work.plan.alpha_per == AlphaPer::k_tile ? s.k_tile : s.inter;
  panel.dtype = DType::e4m3;
  panel.weights = work.args.b + int64_t{first_column} * s.k() + int64_t{expert} * s.inter + k;
  panel.weight_pitch = s.k();
  // The columns share one row of scale factors, so that theirs are numbered from 0.
  panel.weight_scales =
      s.block_scales ? work.args.b_scales + int64_t{first_column / kMoeGroup} * s.k_groups() + group
                     : work.factors + s.expert_groups();
  for (int i = 0; i < rows; ++i) {
    const int64_t row = work.rows[first + i];
    panel.ids[i] = work.rows[first + i];
    panel.x[i] = slice + int64_t{i} * s.inter + k;
    panel.x_scales[i] =
        s.block_scales ? work.args.a_scales + row * s.k_groups() + group : work.factors;
  }
  return panel;
}

/// Adds alpha times a panel's products to `sums`, at the unit's column `column`.
void add_panel(const Work& work, const Panel& panel, int expert, int column, float* sums) {
  float products[kPanelRows * kPanelColumns];
  work.isa.multiply(panel, Scaling::per_tile, products);
  for (int i = 0; i < panel.rows; ++i) {
    const int64_t row = panel.ids[i];
    const float alpha = work.args.alpha[row * work.args.shape.experts + expert];
    float* to = sums + row * kUnitColumns + column;
    for (int c = 0; c < panel.columns; ++c) to[c] += alpha * products[i * panel.columns + c];
  }
}

/// Experts [from, to), whose rows are in the slices, at some columns of a unit.
void add_experts(const Work& work, const Own& own, int from, int to, int unit, int column,
                 int columns) {
  const DenseFc2Shape& s = work.args.shape;
  const int step = work.plan.alpha_per == AlphaPer::k_tile ? s.k_tile : s.inter;
  for (int e = from; e < to; ++e) {
    for (int first = work.first_row[e]; first < work.first_row[e + 1]; first += kPanelRows) {
      const int rows = std::min(kPanelRows, work.first_row[e + 1] - first);
      const float* slice = own.slices + int64_t{first - work.first_row[from]} * s.inter;
      for (int k = 0; k < s.inter; k += step) {
        add_panel(work, panel_at(work, e, k, first, rows, slice, unit + column, columns), e, column,
                  own.sums);
      }
    }
  }
}

/// The columns from `unit` on.
void compute_unit(const Work& work, const Own& own, int unit) {
  const DenseFc2Shape& s = work.args.shape;
  const int columns = std::min(kUnitColumns, s.hidden - unit);
  std::fill_n(own.sums, int64_t{s.tokens} * kUnitColumns, 0.0f);
  for (int from = 0, to; from < s.experts; from = to) {
    to = experts_that_fit(work, from);
    widen_slices(work, from, to, own.slices);
    for (int column = 0; column < columns; column += kPanelColumns) {
      add_experts(work, own, from, to, unit, column, std::min(kPanelColumns, columns - column));
    }
  }
  for (int64_t t = 0; t < s.tokens; ++t) {
    const float* sums = own.sums + t * kUnitColumns;
    uint16_t* out = work.args.out + t * s.hidden + unit;
    for (int c = 0; c < columns; ++c) out[c] = float_to_bf16(sums[c]);
  }
}

}  // namespace

std::span<const moe_gemm::host::Isa* const> isas() {
  static const moegate::host::Isas<moe_gemm::host::Isa> present(kPortable, kAvx2, kAvx512);
  return present.best_first();
}

size_t scratch_bytes(const DenseFc2Shape& s, int threads) {
  const int64_t shared = s.experts + 1 + int64_t{s.tokens} * s.experts + 2 * s.expert_groups();
  return sizeof(float) * static_cast<size_t>(threads * own_floats(s) + shared);
}

void run(const DenseFc2Args& args, const Plan& plan, const moe_gemm::host::Isa& isa, void* scratch,
         int threads) {
  const DenseFc2Shape& s = args.shape;
  auto* own = static_cast<float*>(scratch);
  float* factors = own + threads * own_floats(s);
  auto* first_row = reinterpret_cast<int32_t*>(factors + 2 * s.expert_groups());
  const Work work = {args, plan, isa, first_row, first_row + s.experts + 1, factors};
  list_rows(work);
  fill_factors(work);
#pragma omp parallel num_threads(threads)
  {
    float* slices = own + omp_get_thread_num() * own_floats(s);
    const Own mine = {slices, slices + slots(s) * s.inter};
#pragma omp for schedule(static)
    for (int unit = 0; unit < s.hidden; unit += kUnitColumns) compute_unit(work, mine, unit);
  }
}

}  // namespace moegate::dense_fc2::host
