// SPDX-License-Identifier: Apache-2.0
// The layer on the CPU block by block: a block of one expert's rows goes through gate-up,
// activation and down on one thread before the next begins, so that what stands between the parts
// never leaves its core's cache, and threads wait for each other once, before the sum. Columns are
// the outer loop of both products: every weight is read once for all rows of a block.
//
// Where one expert has most rows its blocks are few. Measured cold with 2 threads of an AMD EPYC
// (2 processes, other programs running), its time over that of `chain`: 0.99 and 1.10 at E = 256, k
// = 8, H = 512, I = 128, T = 1 and 16; 0.99 and 0.94 at E = 32, k = 4, H = 768, I = 256, T = 8 and
// 128. Both read weights as fast as memory gives them (33 to 45 GB/s at decode), so neither the
// barriers nor the intermediates saved show.
#include <omp.h>

#include <algorithm>

#include "kernels/fused_moe/steps.h"
#include "kernels/moe_align/host_align.h"
#include "kernels/moe_gemm/host/product.h"
#include "kernels/moe_sum/host_sum.h"
#include "kernels/silu_mul_quant/host_silu.h"

namespace moegate::fused_moe {
namespace {

using namespace moe_gemm::host;

/// What a thread keeps of the rows of its block.
struct Scratch {
  uint16_t* h;    // [BM, 2I]
  uint8_t* q;     // [BM, I]
  float* scales;  // [BM, I/128]
  float* x;       // [BM, pitch of I]: q as the products read it
};

size_t scratch_bytes(const FusedMoeShape& shape) {
  const auto inter = static_cast<size_t>(shape.inter);
  const size_t row = inter * (2 * sizeof(uint16_t) + 1) + inter / kMoeGroup * sizeof(float) +
                     static_cast<size_t>(pitch(shape.down())) * sizeof(float);
  return static_cast<size_t>(shape.block) * row;
}

Scratch scratch_at(const FusedMoeShape& shape, std::byte* from) {
  const int64_t rows = shape.block;
  Scratch s{};
  s.x = reinterpret_cast<float*>(from);
  s.scales = s.x + rows * pitch(shape.down());
  s.h = reinterpret_cast<uint16_t*>(s.scales + rows * (shape.inter / kMoeGroup));
  s.q = reinterpret_cast<uint8_t*>(s.h + rows * 2 * shape.inter);
  return s;
}

size_t workspace(const Case& c, const DeviceFacts& device) {
  const auto shape = FusedMoeShape::of(c);
  return buffer_bytes(shape, FusedMoe::input_of(c)) + widened_bytes(shape.gate_up()) +
         static_cast<size_t>(device.processors) * scratch_bytes(shape);
}

/// Calls work(panel, its first row in the block) for the panels of a block.
template <class Work>
void for_block(const Operands& operands, int block, int rows, Work work) {
  const moe_gemm::MoeGemmShape& shape = operands.args.shape;
  for (int column = 0; column < shape.n; column += kPanelColumns) {
    for (int row = 0; row < rows; row += kPanelRows) {
      work(panel_at(operands, block * shape.block + row, std::min(kPanelRows, rows - row), column),
           row);
    }
  }
}

void gate_up(const Operands& operands, int block, int rows, const Scratch& to) {
  for_block(operands, block, rows, [&](const Panel& panel, int first) {
    float sums[kPanelRows * kPanelColumns];
    operands.isa.multiply(panel, Scaling::per_tile, sums);
    for (int i = 0; i < panel.rows; ++i) {
      uint16_t* row = to.h + int64_t{first + i} * operands.args.shape.n + panel.first_column;
      for (int c = 0; c < panel.columns; ++c) row[c] = float_to_bf16(sums[i * panel.columns + c]);
    }
  });
}

void activate(const Operands& down, int rows, const Scratch& at) {
  const int inter = down.args.shape.k, groups = inter / kMoeGroup;
  for (int64_t i = 0; i < rows; ++i) {
    const uint16_t* gate = at.h + i * 2 * inter;
    for (int g = 0; g < groups; ++g) {
      silu_mul_quant::fuse_group(gate + g * kMoeGroup, gate + inter + g * kMoeGroup,
                                 at.q + i * inter + g * kMoeGroup, at.scales + i * groups + g);
    }
    down.isa.widen(DType::e4m3, at.q + i * inter, inter, at.x + i * pitch(down.args.shape));
  }
}

void down(const Operands& operands, int block, int rows, const Scratch& from) {
  const moe_gemm::MoeGemmShape& shape = operands.args.shape;
  for_block(operands, block, rows, [&](Panel panel, int first) {
    for (int i = 0; i < panel.rows; ++i) {
      panel.x[i] = from.x + int64_t{first + i} * pitch(shape);
      panel.x_scales[i] = from.scales + int64_t{first + i} * shape.k_groups();
    }
    float sums[kPanelRows * kPanelColumns];
    operands.isa.multiply(panel, Scaling::per_tile, sums);
    store(operands.args, panel, sums);
  });
}

void launch(FusedMoe& problem, const Launch& where) {
  const Buffers buffers = buffers_at(problem.shape, problem.input, problem.workspace());
  const FusedMoeArgs args = quantise_input(problem, buffers, silu_mul_quant::run_group_quant);
  auto* widened = reinterpret_cast<float*>(buffers.end);
  std::byte* scratch = buffers.end + widened_bytes(args.shape.gate_up());
  const Operands first{gate_up(args, buffers), best_isa(), widened};
  // The second product's rows come from a thread's scratch memory instead.
  const Operands second{down(args, buffers), best_isa(), widened};
  moe_align::run_counting_sort(align(args, buffers), buffers.next);
  std::fill_n(buffers.y, elements_to_clear(problem), uint16_t{0});
  const int blocks = *buffers.padded_rows / args.shape.block;
#pragma omp parallel num_threads(where.device.processors)
  {
    const Scratch own = scratch_at(args.shape, scratch + static_cast<size_t>(omp_get_thread_num()) *
                                                             scratch_bytes(args.shape));
    widen_source_rows(first);
#pragma omp for schedule(dynamic, 1)
    for (int b = 0; b < blocks; ++b) {
      const int rows = rows_in_block(first.args, b);
      gate_up(first, b, rows, own);
      activate(second, rows, own);
      down(second, b, rows, own);
    }
  }
  moe_sum::run_blocked(sum(args, buffers));
}

const Kernel<FusedMoe> kernel({
    .name = "depth_first",
    .backend = Backend::host,
    .help = "a block of rows through both products on one thread, then the sum",
    .launch = launch,
    .workspace = workspace,
    .path = [](const Case&, const DeviceFacts&) -> std::string { return best_isa().name; },
});

}  // namespace
}  // namespace moegate::fused_moe
