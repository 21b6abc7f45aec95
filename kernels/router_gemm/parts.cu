// SPDX-License-Identifier: Apache-2.0
#include "kernels/router_gemm/parts.cuh"

#include "kernels/cuda/cuda_check.cuh"

namespace moegate::router_gemm {
namespace {

using namespace cuda;

constexpr const char* kLayout = "fragments of w";
constexpr const char* kRowsLayout = "rows of w";
constexpr int kThreads = 256;

int64_t pieces_of(const RouterGemmShape& shape) {
  return int64_t{expert_tiles(shape)} * groups_of(shape) * (kGroupBytes / 16);
}

/// Two elements of a row, the first one low; zeros where there is none.
__device__ uint32_t pair_of(const RouterGemmArgs& args, int expert, int k) {
  if (expert >= args.shape.experts || k >= args.shape.hidden) return 0;
  const auto* const row =
      static_cast<const uint16_t*>(args.w) + int64_t{expert} * args.shape.hidden;
  return row[k] | uint32_t{row[k + 1]} << 16;
}

__global__ void pack_kernel(RouterGemmArgs args, int64_t pieces, uint4* to) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= pieces) return;
  const int lane = static_cast<int>(i % 32), step = static_cast<int>(i / 32 % 2);
  const int64_t of_tiles = i / 64;
  const int groups = groups_of(args.shape);
  const int group = static_cast<int>(of_tiles % groups), tile = static_cast<int>(of_tiles / groups);
  const int low = tile * kTileExperts + lane / 4, high = low + 8;
  const int k = group * kGroup + lane % 4 * kPiece + step * 4;
  to[i] = {pair_of(args, low, k), pair_of(args, high, k), pair_of(args, low, k + 2),
           pair_of(args, high, k + 2)};
}

/// A thread writes a pair of a packed row: of step p / 8 of its group the words that lane 4g + t
/// has of its first eight elements (h = 0), then of the others.
__global__ void pack_rows_kernel(RouterGemmArgs args, int64_t pairs, uint32_t* to) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= pairs) return;
  const int row_pairs = groups_of(args.shape) * (kGroup / 2);
  const int row = static_cast<int>(i / row_pairs), pair = static_cast<int>(i % row_pairs);
  const int step = pair / 8 % 2, half = pair / 4 % 2, t = pair % 4;
  const int k = pair / (kGroup / 2) * kGroup + t * kPiece + step * 4 + half * 2;
  const int column = row % 8, tile = row / 8 % 2;
  const int expert = row / kTileExperts * kTileExperts + column / 2 * 4 + tile * 2 + column % 2;
  to[i] = pair_of(args, expert, k);
}

}  // namespace

void pack_weights(RouterGemm& problem, const Launch& where) {
  const RouterGemmArgs args = problem.args();
  const int64_t pieces = pieces_of(args.shape);
  problem.packed(kLayout, static_cast<size_t>(pieces) * 16, [&](Tensor& to) {
    const auto blocks = static_cast<unsigned>((pieces + kThreads - 1) / kThreads);
    pack_kernel<<<blocks, kThreads, 0, stream_of(where)>>>(args, pieces, to.data<uint4>());
    check_launch("pack_kernel");
  });
}

void pack_rows(RouterGemm& problem, const Launch& where) {
  const RouterGemmArgs args = problem.args();
  const int64_t pairs =
      int64_t{expert_tiles(args.shape)} * kTileExperts * groups_of(args.shape) * (kGroup / 2);
  problem.packed(kRowsLayout, static_cast<size_t>(pairs) * 4, [&](Tensor& to) {
    const auto blocks = static_cast<unsigned>((pairs + kThreads - 1) / kThreads);
    pack_rows_kernel<<<blocks, kThreads, 0, stream_of(where)>>>(args, pairs, to.data<uint32_t>());
    check_launch("pack_rows_kernel");
  });
}

PackedArgs row_args(RouterGemm& problem) {
  return {problem.args(), problem.packed(kRowsLayout).data<uint8_t>()};
}

PackedArgs packed_args(RouterGemm& problem) {
  return {problem.args(), problem.packed(kLayout).data<uint8_t>()};
}

}  // namespace moegate::router_gemm
