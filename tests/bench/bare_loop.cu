// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/bare_loop.h"

#include <chrono>

#include "harness/device/cuda/captured_launch.h"
#include "harness/kernel/cuda_check.h"
#include "harness/timing/cuda/read_kernel.cuh"

namespace moegate::test {

double bare_loop_cuda(Device& device, const Subject& subject, int samples) {
  constexpr int kThreads = 512, kBlocksPerProcessor = 4, kFlushFactor = 2;
  using Clock = std::chrono::steady_clock;
  const auto stream = static_cast<cudaStream_t>(device.stream());
  std::vector<CapturedLaunch::Executable> launches;
  for (Problem* problem : subject.sets) {
    const CapturedLaunch launch(*subject.variant, *problem, {device.stream(), device.facts()});
    launches.push_back(launch.executable());
  }
  const size_t bytes = kFlushFactor * static_cast<size_t>(device.facts().cache_bytes);
  void* const buffer = device.allocate(bytes + sizeof(unsigned));
  device.fill(buffer, 0, bytes);
  const auto loop = [&](int count) {
    const auto start = Clock::now();
    for (int i = 0; i < count; ++i) {
      read_kernel<<<device.facts().processors * kBlocksPerProcessor, kThreads, 0, stream>>>(
          static_cast<const uint4*>(buffer), bytes / sizeof(uint4),
          reinterpret_cast<unsigned*>(static_cast<char*>(buffer) + bytes));
      MOEGATE_CUDA_CHECK(
          cudaGraphLaunch(launches[static_cast<size_t>(i) % launches.size()].get(), stream));
    }
    device.synchronize();
    return std::chrono::duration<double>(Clock::now() - start).count() / count;
  };
  loop(samples);
  const double seconds = loop(samples);
  device.release(buffer);
  return seconds;
}

}  // namespace moegate::test
