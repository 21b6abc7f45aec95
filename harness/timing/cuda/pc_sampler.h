// SPDX-License-Identifier: Apache-2.0
// CUPTI's sampling of the program counter in the context of the open device. No CUDA headers, so
// anything may include it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "harness/timing/stall_tally.h"

namespace moegate {

/// One per process. Kernels run as they would without it, also side by side and in graphs: what was
/// sampled is known by the function, not by the launch.
class PcSampler {
 public:
  /// SM clocks from one sample of a warp scheduler to the next. Less than the shortest kernels take, and
  /// enough for the host to keep up with 132 multiprocessors.
  static constexpr uint32_t kPeriodLog2 = 12;
  static constexpr int64_t kPeriodClocks = int64_t{1} << kPeriodLog2;

  /// Needs the calling thread's CUDA context, and a device without work. Starts and stops once, since
  /// only that tells whether one may. Throws Error(environment) naming the remedy.
  PcSampler();
  ~PcSampler();
  PcSampler(const PcSampler&) = delete;
  PcSampler& operator=(const PcSampler&) = delete;

  /// What runs from now on is sampled. The device must be idle. Throws Error(environment).
  void start();
  /// The same, afterwards.
  void stop();

  struct Batch {
    std::vector<PcSample> samples;
    int64_t dropped = 0;  // by the hardware
    bool full = false;    // its buffer: an unknown number is missing
  };
  /// What was sampled since the last call. Call it stopped. Throws Error(environment).
  Batch collect();

  /// What PcSample::cubin says of this cubin; 0 for what is none.
  uint64_t crc(std::span<const uint8_t> cubin) const;
  /// "file.cu:12"; empty for what was built without line information.
  std::string line(std::span<const uint8_t> cubin, const std::string& function,
                   int64_t offset) const;

 private:
  struct Session;
  std::unique_ptr<Session> session_;
};

}  // namespace moegate
