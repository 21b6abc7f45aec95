// SPDX-License-Identifier: Apache-2.0
// What happens on the GPU for one sample, whoever times it: make the cache cold (or not), launch
// the variant on its next problem, release both. Knows no timer. Has no CUDA syntax, so plain C++
// may include it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "harness/device/cuda/captured_launch.h"
#include "harness/device/open.h"
#include "harness/device/scribble.h"
#include "harness/kernel/kernel.h"
#include "harness/values/conditions.h"

namespace moegate {

/// What the device noted of one sample: its flush of itself, and the outputs after the launch.
struct SampleReading {
  uint64_t clocks = 0;             // SM cycles of its first block
  uint64_t ns = 0;                 // the same time on the global timer
  uint64_t wait_ns = 0;            // how long it then waited for the host to finish launching
  unsigned long long outputs = 0;  // hash of what was written to them; 0 without look()
};

struct Look;  // sequence_kernels.cuh

/// The device and the variant must outlive it. One sample is prepare(), launch(), look(),
/// release(); none of the four waits for the device.
class CudaSequence {
 public:
  /// Launches that may be enqueued between two calls of readings().
  static constexpr uint32_t kMostPending = 8192;

  /// Captures graphs when the conditions ask for them. Throws Error(environment) when memory is
  /// short or the variant cannot be captured.
  CudaSequence(Device& device, const Subject& subject, const Conditions& conditions);
  ~CudaSequence();
  CudaSequence(CudaSequence&&) = delete;

  /// Enqueues the flush that the conditions ask for, then an empty kernel that keeps the flush and
  /// the launch apart. The flush first reads what look() asked for and spoils words of the next
  /// problem's outputs and workspace (scribble.h), which it so writes back. After it the GPU waits
  /// for release(), which the host calls once the kernel is queued. The gap between launches is
  /// therefore not measured.
  void prepare();
  /// Enqueues the measured launch on the next problem.
  void launch();
  /// Has the outputs of the launch before it read, so that it can be compared with others: by the
  /// next flush, or else by readings().
  void look();
  /// Says that all of the sample is enqueued, and lets the GPU go on. The GPU's wait gives up after
  /// 5 ms, so a variant that synchronises by mistake is slow, not stuck.
  void release();

  /// Whether a kernel, by its mangled name, is one of those that this class launches before and
  /// after the measured ones.
  static bool is_around(const std::string& kernel);

  /// What the variant did to the device that makes its times worthless; empty when nothing.
  std::string misdeed() const;

  /// What every problem's launch gives the GPU beside machine code (CapturedLaunch::given()), one
  /// after the other; empty where it is unknown.
  const std::string& given() const { return given_; }

  /// Problem that the next launch() uses, as an index of subject.sets.
  size_t next_set() const { return launched_ % subject_.sets.size(); }

  /// Waits, then returns one reading per sample since the last call.
  std::vector<SampleReading> readings();

 private:
  cudaStream_t stream() const { return static_cast<cudaStream_t>(device_.stream()); }
  std::string look_at_launches();
  void launch_flush();
  void launch_touch();
  void launch_look();
  SampleReading* reading(uint32_t pending) const;
  size_t last_set() const;  // that the last launch() used
  bool flush_may_look() const;
  Look last_outputs() const;
  void check_launch(const char* what) const;

  Device& device_;
  const Subject subject_;
  const Conditions conditions_;
  struct Span {
    const void* data;
    size_t bytes;
  };
  std::vector<std::vector<Span>> activations_;      // by problem set, only for cold-weights
  std::vector<std::vector<Span>> outputs_;          // by problem set
  std::vector<CapturedLaunch::Executable> graphs_;  // by problem set, only for LaunchMode::graph
  std::string given_;
  Scribbler scribbler_;
  size_t flush_bytes_ = 0;
  int flush_blocks_ = 0;  // that are on the chip at once
  DeviceMemory flush_buffer_;
  DeviceMemory readings_;                                // kMostPending of SampleReading
  std::unique_ptr<uint32_t, void (*)(uint32_t*)> gate_;  // pinned: newest released sample's number
  uint32_t prepared_ = 0;                                // samples since the start
  uint32_t pending_ = 0;                                 // of them, not yet in readings()
  size_t launched_ = 0;
  size_t persisting_ = 0;  // bytes of the L2 that were set aside before
  bool unread_ = false;    // the last launch's outputs are, which look() was asked for
};

/// SM clock of a reading; 0 when it measured none.
inline double sm_mhz(const SampleReading& r) {
  return r.ns == 0 ? 0 : 1e3 * static_cast<double>(r.clocks) / static_cast<double>(r.ns);
}

/// Launches a kernel that does nothing: CUPTI's self-test times it.
void launch_empty_kernel(void* stream);

}  // namespace moegate
