// SPDX-License-Identifier: Apache-2.0
// Blocks per SM as the CUDA toolkit's own header computes them, where the toolkit is there.
#include "harness/values/resources.h"

#include <gtest/gtest.h>

#if defined(MOEGATE_HAS_CUDA) && __has_include(<cuda_occupancy.h>)
#include <cuda_occupancy.h>

namespace moegate::test {
namespace {

cudaOccDeviceProp properties(int arch, const SmLimits& sm) {
  cudaOccDeviceProp p;
  p.computeMajor = arch / 10;
  p.computeMinor = arch % 10;
  p.maxThreadsPerBlock = 1024;
  p.maxThreadsPerMultiprocessor = 32 * sm.warps;
  p.regsPerBlock = p.regsPerMultiprocessor = 65536;
  p.warpSize = 32;
  p.sharedMemPerBlock = 48 << 10;
  p.sharedMemPerMultiprocessor = sm.shared;
  p.sharedMemPerBlockOptin = sm.shared_per_block;
  p.reservedSharedMemPerBlock = sm.shared_reserved;
  p.numSms = 100;
  return p;
}

int by_the_toolkit(const BlockNeeds& block, const cudaOccDeviceProp& device) {
  cudaOccFuncAttributes kernel;
  kernel.maxThreadsPerBlock = 1024;
  kernel.numRegs = block.registers;
  kernel.sharedSizeBytes = 0;
  kernel.partitionedGCConfig = PARTITIONED_GC_OFF;
  kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
  kernel.maxDynamicSharedSizeBytes = device.sharedMemPerBlockOptin;
  kernel.numBlockBarriers = block.barriers;
  cudaOccDeviceState state;
  state.carveoutConfig = SHAREDMEM_CARVEOUT_DEFAULT;
  cudaOccResult result{};
  EXPECT_EQ(cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state,
                                                    static_cast<int>(block.threads),
                                                    static_cast<size_t>(block.shared)),
            CUDA_OCC_SUCCESS);
  return result.activeBlocksPerMultiprocessor;
}

TEST(OccupancyOfTheToolkit, IsTheSame) {
  for (const int arch : {75, 80, 86, 89, 90, 100, 103, 120, 121}) {
    const SmLimits sm = *sm_limits(arch);
    const cudaOccDeviceProp device = properties(arch, sm);
    for (int registers = 1; registers <= 255; ++registers) {
      for (const int threads : {1, 32, 33, 96, 128, 256, 320, 384, 512, 640, 768, 1000, 1024}) {
        for (const int shared : {0, 1, 4228, 73728, 98304, 115712, 115713, 232448, 232449}) {
          for (const int barriers : {0, 1, 16}) {
            const BlockNeeds block{threads, registers, shared, barriers};
            ASSERT_EQ(blocks_per_sm(block, sm), by_the_toolkit(block, device))
                << "sm_" << arch << ": " << threads << " threads, " << registers << " registers, "
                << shared << " B, " << barriers << " barriers";
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace moegate::test
#endif
