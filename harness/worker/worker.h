// SPDX-License-Identifier: Apache-2.0
// A child process that holds the device and runs cases. A variant that aborts, corrupts the device
// or hangs takes its worker with it and costs one row, never the night. The child is a program of
// its own (`moegate worker`), this one or another build, so that both sides of an A/B are measured
// by one runner, in fresh address spaces.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "harness/worker/canary.h"
#include "harness/worker/measure.h"

namespace moegate {

enum class Task { verify, measure, profile, controls };

/// Everything a worker is told once.
struct WorkerOptions {
  std::string program;  // what to start; empty: this program. Not told to the worker
  std::string device = "auto";
  std::string tiles;           // folder of tile configurations; empty: the usual one (tile_file.h)
  std::string timer = "auto";  // auto, cupti, event; the host has only its clock
  Task task = Task::measure;
  Flush flush = Flush::read;
  double flush_factor = 2;
  Sampling sampling;
};

/// What a worker says when it has opened its device.
struct Hello {
  DeviceFacts device;
  std::string timer;                  // "cupti", "event", "clock"
  std::string timer_note;             // why it is not the one asked for; empty when it is
  std::vector<VariantName> variants;  // that it can run on its device
  std::string git_sha, build;         // what it was built from and with
  bool dirty = false;
};

/// What a case's data turned out to be.
struct CaseData {
  Cost cost;
  std::vector<Fact> facts;
};

class Worker {
 public:
  /// Starts the process and waits for its device. Throws what the worker died of:
  /// Error(environment) for a device or timer that is not there, Error(usage) for a program that is
  /// no moegate or one that this one cannot talk to.
  Worker(const WorkerOptions& options, const std::vector<Case>& cases);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  const Hello& hello() const { return hello_; }
  pid_t pid() const { return pid_; }
  bool alive() const { return pid_ > 0; }

  /// Runs one variant. Returns a result in every event: what the worker measured, or `crashed` with
  /// how it died, or `timeout`; in the last two the worker is gone. `data` is set when it got that
  /// far.
  Result run(size_t case_index, const std::string& variant, const Canary& canary, double timeout_s,
             CaseData& data);

  /// Clock-throttle reasons the device reports now; empty for none or unknown.
  std::string throttle();

 private:
  std::string bury(bool kill_first);  // reaps the process and says how it ended

  std::string program_;
  pid_t pid_ = -1;
  int to_ = -1, from_ = -1;
  Hello hello_;
};

}  // namespace moegate
