// SPDX-License-Identifier: Apache-2.0
// What all timers do alike, for the files that define one.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "harness/timing/timer.h"

namespace moegate {

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
