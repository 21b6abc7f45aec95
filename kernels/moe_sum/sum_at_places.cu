// SPDX-License-Identifier: Apache-2.0
// chip: sm_90 (starts early)
// sum_vectorised as the last launch of a chain, which starts early. Rows of y lie in order, or each
// at its place.
#include "kernels/cuda/dependent_launch.cuh"
#include "kernels/moe_sum/columns.cuh"

namespace moegate::moe_sum {
namespace {

using namespace cuda;

/// A token's rows of y, each at its place.
struct AtPlaces {
  const uint16_t* y;
  const int32_t* places;  // of the token's rows
  int hidden;
  __device__ AtPlaces(const MoeSumArgs& args, int64_t token, int column, const int32_t* of_rows)
      : y(args.y + column), places(of_rows + token * args.shape.topk), hidden(args.shape.hidden) {}
  __device__ const uint16_t* row(int j) const { return y + int64_t{__ldg(places + j)} * hidden; }
};

template <int columns>
__global__ void __launch_bounds__(kThreads)
    early_sum_kernel(const __grid_constant__ MoeSumArgs args, int chunks) {
  wait_for_dependency();
  sum_columns<columns, InOrder>(args, chunks);
}

/// As many blocks of it fit an SM as of sum_vectorised_kernel.
template <int columns>
__global__ void __launch_bounds__(kThreads, 9)
    sum_at_places_kernel(const __grid_constant__ MoeSumArgs args, int chunks,
                         const int32_t* places) {
  wait_for_dependency();
  sum_columns<columns, AtPlaces>(args, chunks, places);
}

}  // namespace

void launch_early(const MoeSumArgs& args, const Launch& where) {
  with_columns(args, where, [&]<int columns>(int chunks, unsigned blocks) {
    launch_dependent(early_sum_kernel<columns>, blocks, kThreads, where.stream, args, chunks);
  });
}

void launch_at_places(const MoeSumArgs& args, const int32_t* places, const Launch& where) {
  with_columns(args, where, [&]<int columns>(int chunks, unsigned blocks) {
    launch_dependent(sum_at_places_kernel<columns>, blocks, kThreads, where.stream, args, chunks,
                     places);
  });
}

}  // namespace moegate::moe_sum
