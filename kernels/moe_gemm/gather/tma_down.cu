// SPDX-License-Identifier: Apache-2.0
// chip: sm_90a (wgmma, TMA)
// moe_down as SGLang PR 10567 leaves it: activations lie in sorted order, so that the BM rows of a
// block are neighbours, and the tensor copy engine brings both operands, a whole slice of rows and
// one of weights by one thread. One scale factor of weights per tile and group; results are
// scattered to token order, times their routing weights. Everything else is scalar_b_scale's:
// tiles and their order, products, stages, and so every bit of the output. bf16, which the PR does
// not have, has no scale factors; its bits are gather's.
//
// The idea: no address arithmetic and no load instructions in the warps that multiply. Rows of
// padding hold what was left in memory, also NaN: a row of a product depends on no other row of x,
// and those of padding are not written.
//
// On an H100 1.05x of scalar_b_scale at 8192 tokens, 1.31x of gather (the PR: 1.5 to 1.6x on an
// H20; reports/gallery/pr-sglang-10567.md). In bf16 0.95 to 1.03x of gather: there are no scale
// factors to save (nvidia-h100-tma-down.md beside it).
//
// Floor as in gather; with many tokens the scattered output is most of the bytes (DeepSeek-R1 TP8,
// 8192 tokens, the shared expert among nine: 1.06 of 1.55 GB).
#include "kernels/moe_gemm/fp8/weights_map.cuh"
#include "kernels/moe_gemm/gather/tile.cuh"

namespace moegate::moe_gemm::gather {
namespace {

/// A ring of slices that the copy engine fills: rows from `x_row` of x on, weights from
/// `weight_row` on. Its swizzle puts pieces where piece_at() looks for them.
template <int Rows>
class CopiedSlices {
 public:
  __device__ CopiedSlices(const CUtensorMap* x, int x_row, const CUtensorMap* weights,
                          int weight_row, int slices, uint32_t stages, uint64_t* full)
      : x_(x),
        weights_(weights),
        x_row_(x_row),
        weight_row_(weight_row),
        slices_(slices),
        stages_(stages),
        full_(full) {}

  __device__ void start_next() {
    if (threadIdx.x == 0 && next_ < slices_) {
      const uint32_t stage = stages_ + into_ * T::kStageBytes;
      arrive_expecting(&full_[into_], T::kStageBytes);
      copy_tile(stage, x_, next_ * kSliceBytes, x_row_, &full_[into_]);
      copy_tile(stage + Rows * kSliceBytes, weights_, next_ * kSliceBytes, weight_row_,
                &full_[into_]);
    }
    ++next_;
    into_ = into_ + 1 == T::kStages ? 0 : into_ + 1;
  }
  /// As GatheredSlices::wait_next().
  __device__ uint32_t wait_next() {
    wait_barrier(&full_[from_], phase_);
    __syncthreads();
    const uint32_t stage = stages_ + from_ * T::kStageBytes;
    if (++from_ == T::kStages) {
      from_ = 0;
      phase_ ^= 1;
    }
    return stage;
  }

 private:
  using T = Tile<Rows>;
  static_assert(T::kStageBytes % kSwizzleBytes == 0 && Rows * kSliceBytes % kSwizzleBytes == 0);

  const CUtensorMap *x_, *weights_;
  int x_row_, weight_row_, slices_;
  uint32_t stages_;
  uint64_t* full_;
  int next_ = 0, into_ = 0, from_ = 0;
  uint32_t phase_ = 0;
};

template <int Rows, DType kDtype>
__global__ void __launch_bounds__(Tile<Rows>::kThreads)
    tma_down_kernel(const __grid_constant__ CUtensorMap x,
                    const __grid_constant__ CUtensorMap weights,
                    const __grid_constant__ MoeGemmArgs args, const TileOrder order) {
  using T = Tile<Rows>;
  extern __shared__ __align__(128) uint8_t shared[];
  __shared__ int ids[Rows];  // rows of the output; R for padding
  __shared__ uint64_t full[T::kStages];
  const Place place = order.place(blockIdx.x);
  const int first_row = place.block * Rows;
  if (first_row >= *args.padded_rows) return;
  for (int i = threadIdx.x; i < Rows; i += T::kThreads) {
    ids[i] = args.sorted_token_ids[first_row + i];
  }
  if (threadIdx.x < T::kStages) init_barrier(&full[threadIdx.x], 1);
  fence_barrier_init();
  __syncthreads();
  uint8_t* stages = at_swizzle(shared);
  const int weight_row = args.expert_ids[place.block] * args.shape.n + place.first_column;
  CopiedSlices<Rows> ring(&x, first_row, &weights, weight_row, slices_of<kDtype>(args.shape),
                          shared_address(stages), full);
  const auto source = [&](int row) { return ids[row] < args.shape.rows() ? first_row + row : -1; };
  Sums<Rows> sums = {};
  sum_products<Rows, kDtype, WeightScale::per_tile>(args, place, ring, source, sums);
  write_tile<Rows, Result::stored>(args, place, ids, sums, stages);
}

void launch(MoeDown& problem, const Launch& where) {
  const MoeGemmArgs args = problem.args(RowOrder::sorted);
  const TileOrder order = tile_order(args.shape);
  with_tile(args.shape, [&]<int Rows, DType kDtype>() {
    const auto kernel = tma_down_kernel<Rows, kDtype>;
    constexpr int kSharedBytes = Tile<Rows>::kSharedBytes;
    allow_shared(kernel, kSharedBytes);
    kernel<<<order.tiles(), Tile<Rows>::kThreads, kSharedBytes, stream_of(where)>>>(
        fp8::sorted_rows_map(args), fp8::weights_map(args, kTileColumns), args, order);
  });
  check_launch("tma_down_kernel");
}

const Kernel<MoeDown> down({
    .name = "tma_down",
    .backend = Backend::cuda,
    .help = "scalar_b_scale with sorted activations, both operands by TMA (SGLang PR 10567)",
    .launch = launch,
    .prepare = [](MoeDown& problem, const Launch&) { problem.sort_activations(); },
    .unsupported = [](const Case& c,
                      const DeviceFacts&) { return gather_unsupported(MoeDown::shape_of(c)); },
});

}  // namespace
}  // namespace moegate::moe_gemm::gather
