// SPDX-License-Identifier: Apache-2.0
// Operator slowed_sum: moe_sum, by variants of one kernel that are each slowed down by one known
// cause, which `--why` must name (tests/e2e/gpu_test.cc). `plain` keeps two blocks on an SM and
// reads every input once.
#include "harness/kernel/registry.h"
#include "kernels/cuda/bf16_vector.cuh"
#include "kernels/cuda/cuda_check.cuh"
#include "kernels/moe_sum/moe_sum.h"

namespace moegate::test {
namespace {

using namespace cuda;

class SlowedSum final : public moe_sum::MoeSum {
 public:
  static constexpr const char* kOp = "slowed_sum";
  using MoeSum::MoeSum;
};

enum class Slowed { plain, spills, reads_twice, bank_conflicts, waits };

constexpr int kThreads = 256;
constexpr int kColumns = 8;            // of a thread: 16 bytes
constexpr int kTwoBlocks = 100 << 10;  // of shared memory: two such blocks fit on an SM,
constexpr int kOneBlock = 120 << 10;   // and one of these
constexpr int kWorstStride = 32;       // floats: every thread of a warp on one bank
constexpr unsigned kWaitNs = 3000;
constexpr int kWaits = 12;

/// Puts the sums through memory of the thread's own that no register can be: the index is
/// not known.
__device__ void spill(float (&sums)[kColumns], int somewhere) {
  volatile float kept[16];
  for (int i = 0; i < 16; ++i) kept[i] = sums[i % kColumns];
  for (int i = 0; i < kColumns; ++i) sums[i] = kept[(i + somewhere) & 15];
}

/// The same through shared memory, all threads of a warp on one bank at a time.
__device__ void collide(float (&sums)[kColumns]) {
  extern __shared__ float slots[];
  volatile float* slot = slots + threadIdx.x % 32 * kWorstStride + threadIdx.x / 32;
  for (int i = 0; i < kColumns; ++i) {
    *slot = sums[i];
    sums[i] = *slot;
  }
}

template <Slowed how>
__device__ void add_rows(const moe_sum::MoeSumArgs& args, int64_t token, int column,
                         float (&sums)[kColumns]) {
  const moe_sum::MoeSumShape& shape = args.shape;
  for (int row = 0; row < shape.topk; ++row) {
    float values[kColumns];
    widen(*reinterpret_cast<const uint4*>(args.y + (token * shape.topk + row) * shape.hidden +
                                          column),
          values);
    for (int i = 0; i < kColumns; ++i) sums[i] += values[i];
    if constexpr (how == Slowed::spills) spill(sums, shape.topk >> 20);
    if constexpr (how == Slowed::bank_conflicts) collide(sums);
  }
}

template <Slowed how>
__global__ void __launch_bounds__(kThreads)
    slowed_kernel(const __grid_constant__ moe_sum::MoeSumArgs args) {
  const moe_sum::MoeSumShape& shape = args.shape;
  if constexpr (how == Slowed::waits) {
    for (int i = 0; i < kWaits; ++i) __nanosleep(kWaitNs);
    __syncthreads();
  }
  // The second pass begins when the first has read everything, so that nothing of it is in L2
  // any more.
  for (int pass = how == Slowed::reads_twice ? 0 : 1; pass < 2; ++pass) {
    for (int64_t token = blockIdx.x; token < shape.tokens; token += gridDim.x) {
      for (int column = threadIdx.x * kColumns; column < shape.hidden;
           column += kThreads * kColumns) {
        float sums[kColumns] = {};
        add_rows<how>(args, token, column, sums);
        uint32_t packed[4];
        for (int i = 0; i < 4; ++i) {
          packed[i] = float_to_bf16(shape.scale * sums[2 * i]) |
                      uint32_t{float_to_bf16(shape.scale * sums[2 * i + 1])} << 16;
        }
        // One store: whether L1 merges four of them depends on when they come.
        __stwb(reinterpret_cast<uint4*>(args.out + token * shape.hidden + column),
               make_uint4(packed[0], packed[1], packed[2], packed[3]));
      }
    }
  }
}

template <Slowed how, int shared>
void launch(SlowedSum& problem, const Launch& where) {
  const auto kernel = slowed_kernel<how>;
  MOEGATE_CUDA_CHECK(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
  kernel<<<2 * where.device.processors, kThreads, shared, stream_of(where)>>>(problem.args());
  check_launch("slowed_kernel");
}

const Op<SlowedSum> op({
    .help = "moe_sum, by variants that are slow for a known reason",
    .params = {{"tokens", "", "T, 1 to 65536"},
               {"topk", "", "k, 1 to 16"},
               {"hidden", "", "H, a multiple of 8"},
               {"scale", "1", "factor on the sum"}},
    .parts = {"moe_sum"},
});

const Kernel<SlowedSum> plain({.name = "plain",
                               .backend = Backend::cuda,
                               .help = "not slowed",
                               .launch = launch<Slowed::plain, kTwoBlocks>});
const Kernel<SlowedSum> spills({.name = "spills",
                                .backend = Backend::cuda,
                                .help = "keeps its sums in local memory",
                                .launch = launch<Slowed::spills, kTwoBlocks>});
const Kernel<SlowedSum> twice({.name = "reads_twice",
                               .backend = Backend::cuda,
                               .help = "reads all of its input twice",
                               .launch = launch<Slowed::reads_twice, kTwoBlocks>});
const Kernel<SlowedSum> conflicts({.name = "bank_conflicts",
                                   .backend = Backend::cuda,
                                   .help = "32 threads on one bank of shared memory",
                                   .launch = launch<Slowed::bank_conflicts, kTwoBlocks>});
const Kernel<SlowedSum> half({.name = "half_the_blocks",
                              .backend = Backend::cuda,
                              .help = "one block on an SM where two would fit",
                              .launch = launch<Slowed::plain, kOneBlock>});
const Kernel<SlowedSum> waits({.name = "waits",
                               .backend = Backend::cuda,
                               .help = "sleeps before its work",
                               .launch = launch<Slowed::waits, kTwoBlocks>});

}  // namespace
}  // namespace moegate::test
