// SPDX-License-Identifier: Apache-2.0
// chip: sm_90a (wgmma, TMA)
// dense_fc2 with all SMs at work on equal shares of K, whatever the number of tiles: tiles of 128 x
// 192 (M x H) are 38 at 128 tokens of DeepSeek-R1, for 132 SMs. Every block adds up a run of
// experts of one tile, and then perhaps of the next; a second kernel adds the segments up.
//
// The products are those of the dense form, but rows without an alpha are zeros in shared memory in
// place of activations that mean nothing: they are not read, and tensor cores that multiply zeros
// leave the clock where it is, which full rows pull down to 1.5 GHz. From 129 tokens on two or
// three blocks, one below the other, share their weights by TMA multicast.
//
// Measured on an H200, cold, us at M = 1, 64, 128, 192, 256, 288, 384, 512 (commit 0bfbd21, 3
// processes): 120 128 131 179 184 289 295 358, at 1.93 GHz and more: 82 % of the floor at M = 128,
// 1.17 and 1.25 times it at 256 and 384. At M = 128 the main kernel takes 122 (DRAM at 80 % of its
// peak), the sums 8 more; without multicast M = 256 takes 207: L2 is then at 94 % of its peak
// (commit 8bfae39). With all rows read by TMA, in an earlier form, it took 227 at 1.47 GHz. Where M
// is not near a multiple of 128 rows of tiles are empty, and cublaslt_plain, whose tiles fit M and
// H, is faster (M = 192: 139, 288: 192).
#include "kernels/cuda/tensor_map.cuh"
#include "kernels/cuda/with_rows.cuh"
#include "kernels/dense_fc2/alpha/launch.cuh"
#include "kernels/dense_fc2/stream_k/kernel.cuh"
#include "kernels/dense_fc2/stream_k/sums.cuh"

namespace moegate::dense_fc2::stream_k {
namespace {

/// Calls f.operator()<rows, block scales>().
template <class F>
auto with_kernel(int rows, bool block_scales, F f) {
  return with_rows<64, 128>(rows, [&]<int Rows>() {
    return block_scales ? f.template operator()<Rows, true>()
                        : f.template operator()<Rows, false>();
  });
}

Plan plan_for(const DenseFc2Shape& s, const DeviceFacts& device) {
  return make_plan(s, [&](int rows, int blocks) {
    return with_kernel(rows, false, [&]<int Rows, bool kBlockScales>() {
      return resident_clusters(stream_k_kernel<Rows, kBlockScales>, blocks, kThreads,
                               kSharedBytes<Shared<Config<Rows, kBlockScales>>>, device);
    });
  });
}

void launch(DenseFc2& problem, const Launch& where) {
  const DenseFc2Args args = problem.args();
  const DenseFc2Shape& s = args.shape;
  const Plan plan = plan_for(s, where.device);
  const Work work{args, plan, problem.workspace<float>()};
  with_kernel(plan.rows, s.block_scales, [&]<int Rows, bool kBlockScales>() {
    const auto kernel = stream_k_kernel<Rows, kBlockScales>;
    const ClusterLaunch main(kernel, plan.lanes * plan.clusters, plan.blocks, kThreads,
                             kSharedBytes<Shared<Config<Rows, kBlockScales>>>, where.stream);
    check_cuda(cudaLaunchKernelEx(&main.config, kernel,
                                  matrix_map(args.b, s.hidden, s.k(), plan.weight_copy()), work),
               "stream_k_kernel");
    const int64_t threads = int64_t{s.tokens} * (s.hidden / 8);
    const auto grid = static_cast<unsigned>((threads + kSumThreads - 1) / kSumThreads);
    launch_dependent(sum_segments<kBlockScales>, grid, kSumThreads, where.stream, work);
  });
}

const Kernel<DenseFc2> kernel(
    {.name = "stream_k",
     .backend = Backend::cuda,
     .help =
         "equal shares of K for all SMs, zeros for rows without alpha, weights by TMA multicast",
     .launch = launch,
     .workspace =
         [](const Case& c, const DeviceFacts& device) {
           const Plan plan = plan_for(DenseFc2Shape::of(c), device);
           return static_cast<size_t>(plan.slots()) *
                  static_cast<size_t>(plan.rows * plan.columns()) * sizeof(float);
         },
     .unsupported = alpha::unsupported,
     .path =
         [](const Case& c, const DeviceFacts& device) {
           const Plan plan = plan_for(DenseFc2Shape::of(c), device);
           return fmt::format("{}x{}, {} x {} clusters of {}", plan.rows, plan.columns(),
                              plan.clusters, plan.lanes, plan.blocks);
         }});

}  // namespace
}  // namespace moegate::dense_fc2::stream_k
