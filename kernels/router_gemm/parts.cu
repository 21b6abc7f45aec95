// SPDX-License-Identifier: Apache-2.0
#include "kernels/router_gemm/parts.cuh"

#include "kernels/cuda/cuda_check.cuh"

namespace moegate::router_gemm {
namespace {

using namespace cuda;

constexpr const char* kLayout = "fragments of w";
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

PackedArgs packed_args(RouterGemm& problem) {
  return {problem.args(), problem.packed(kLayout).data<uint8_t>()};
}

}  // namespace moegate::router_gemm
