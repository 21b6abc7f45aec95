// SPDX-License-Identifier: Apache-2.0
// Timing launches. A Timer opens a Session for one variant; a session enqueues samples (make cold,
// launch) without waiting and collects them in one drain. worker/summary.h
// decides how many.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/kernel/kernel.h"
#include "harness/values/conditions.h"
#include "harness/values/result.h"

namespace moegate {

class Session {
 public:
  virtual ~Session() = default;
  /// Makes the caches as asked, then launches the variant on its next problem.
  virtual void enqueue() = 0;
  /// Waits for what was enqueued and returns it, in order. Throws Error(environment) when a kernel
  /// failed or the timer broke.
  virtual std::vector<Sample> collect() = 0;
  /// The launch's kernels, over every valid sample collected so far; empty when the timer sees
  /// none.
  virtual std::vector<KernelRow> kernels() const { return {}; }
  /// What the launches did, as a sentence that blames the variant, that makes their times
  /// worthless; empty when nothing.
  virtual std::string misdeed() const { return {}; }
  /// What the host took to enqueue a launch, median; 0 where nothing is enqueued, or a graph is.
  virtual double enqueue_ns() const { return 0; }
  /// Which number of the samples is judged.
  virtual Judged judged() const { return Judged::span; }
  /// The row's identity: hash of the machine code launched and of how it is launched, over every
  /// problem; equal in two programs that do the same. On a GPU timer_cupti.cc joins what ran
  /// (activity.cc: machine code, geometry and order of all operations) with what it was given
  /// (CapturedLaunch: arguments, attributes, contents of inputs; launch_code() where those cannot
  /// be read, or a stream's launch has several operations). Two rows are `identical` if both are
  /// known and equal (same_code(), judge/gate.h). Empty: unknown, as always to the event timer.
  virtual std::string code() const { return {}; }
};

class Timer {
 public:
  virtual ~Timer() = default;
  virtual std::string name() const = 0;  // "cupti", "event", "clock"
  virtual double tick_ns() const = 0;    // resolution: the smallest difference it can show
  /// `yardstick` may be null; only the host timer uses it.
  virtual std::unique_ptr<Session> open(const Subject& subject, const Subject* yardstick,
                                        const Conditions& conditions) = 0;
};

std::unique_ptr<Timer> make_host_timer(Device& device);

/// CUPTI activity records. Call prepare_cupti() once, before device `ordinal` is opened (before its
/// context exists); it returns why CUPTI cannot be used, or an empty string.
std::string prepare_cupti(int ordinal);
std::unique_ptr<Timer> make_cupti_timer(Device& device);
std::unique_ptr<Timer> make_event_timer(Device& device);

/// Modules of machine code that the process has loaded on its GPU so far, by whichever function of
/// the driver or runtime, and the distinct codes of their kernels.
struct LoadedModules {
  uint64_t count = 0, bytes = 0, codes = 0;
};
/// Nothing where nobody counts them: without CUPTI's timer.
std::optional<LoadedModules> loaded_modules();

// What all timers do alike, for the files that define one.

/// A timer whose sessions are of type S, made of what open() is given and of the device.
template <class S>
class TimerOf final : public Timer {
 public:
  TimerOf(Device& device, std::string name, double tick_ns)
      : device_(device), name_(std::move(name)), tick_ns_(tick_ns) {}

  std::string name() const override { return name_; }
  double tick_ns() const override { return tick_ns_; }
  std::unique_ptr<Session> open(const Subject& subject, const Subject* yardstick,
                                const Conditions& conditions) override {
    return std::make_unique<S>(device_, subject, yardstick, conditions);
  }

 private:
  Device& device_;
  const std::string name_;
  const double tick_ns_;
};

}  // namespace moegate
