// SPDX-License-Identifier: Apache-2.0
// A worker holds the device and runs cases; a worker source starts one. The real source starts a
// child process: a variant that aborts, corrupts the device or hangs takes its worker with it and
// costs one row, never the night. The child is a program of its own (`moegate worker`), this one or
// another build, so that both sides of an A/B are measured by one runner, in fresh address spaces.
// Tests of the campaign bring a source of their own (campaign/fake_worker_fixture.h).
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/kernel/description.h"
#include "harness/plugin/loaded_files.h"
#include "harness/values/environment_facts.h"
#include "harness/worker/canary.h"
#include "harness/worker/measure.h"
#include "harness/worker/worker_options.h"

namespace moegate {

/// The program that an empty WorkerOptions::program means: this one; `moegate` beside it where this
/// one was linked without kernels (moegate-judge). Throws Error(usage) where there is none.
std::string own_program();

/// What a worker says when it has opened its device.
struct Hello {
  static constexpr const char* kKind = "hello";  // protocol.h
  int wire = 0;                                  // version of the protocol that it speaks
  std::vector<std::string> features;             // protocol.h
  std::string language, version;  // of the worker: "C++", and its own version or its interpreter's
  std::string git_sha, build;     // what it was built from and with
  bool dirty = false;
  DeviceFacts device;
  std::string timer;       // "cupti", "event", "clock"
  std::string timer_note;  // why it is not the one asked for; empty when it is
  std::vector<OpDescription> operators;
  std::vector<VariantDescription> variants;  // that it can run on its device
};

/// What a case's data turned out to be.
struct CaseData {
  Cost cost;
  std::vector<Fact> facts;
};

/// One variant to run on one case.
struct Request {
  static constexpr const char* kKind = "run";  // protocol.h
  Case spec;
  std::string variant;
  Canary canary;
  /// Tokens of the largest batch of ask_batch_invariance(), which is not timed; 0: not asked.
  int64_t invariance = 0;
};

/// What only an operator's own code knows of a case before it runs.
struct CaseQuestion {
  Case spec;
  bool resolve = false;               // also: can it be what it is to be on this device?
  std::vector<std::string> variants;  // also: which of these cannot run it?
};

struct CaseAnswer {
  std::string error;                               // why the case cannot be; empty when it can
  std::map<std::string, std::string> unsupported;  // why, by variant; those that can run it are not
                                                   // in it
};

class Worker {
 public:
  virtual ~Worker() = default;

  virtual const Hello& hello() const = 0;
  /// Tells one worker from the next. No process need have it.
  virtual pid_t pid() const = 0;
  virtual bool alive() const = 0;

  /// One answer per question, in their order. Throws Error(environment) when the worker dies of it.
  virtual std::vector<CaseAnswer> check(const std::vector<CaseQuestion>& questions) = 0;

  /// Runs one variant. Returns a result in every event but one: what the worker measured, or
  /// `crashed` with how it died, or `timeout`; in the last two the worker is gone. `data` is set
  /// when it got that far. Throws Error(interrupted) two seconds after a signal to this program
  /// that InterruptGuard has noted, when there is no answer by then; the worker is gone.
  virtual Result run(const Request& request, double timeout_s, CaseData& data) = 0;

  /// Clock-throttle reasons the device reports now; empty for none or unknown.
  virtual std::string throttle() = 0;

  /// What its kernels from elsewhere are made of: every file that the process loaded or read up to
  /// now (plugin/loaded_files.h); none without such kernels, and of a worker that does not tell.
  virtual std::vector<LoadedFile> loaded() { return {}; }

  /// What it runs them with, up to now; nothing where loaded() is nothing, unless the user stated
  /// variables.
  virtual EnvironmentItems environment() { return {}; }
};

class WorkerSource {
 public:
  virtual ~WorkerSource() = default;

  /// Starts a worker and waits for its device. Throws what the worker died of: Error(environment)
  /// for a device or timer that is not there, Error(usage) for a program that is no moegate or one
  /// that this one cannot talk to.
  virtual std::unique_ptr<Worker> start(const WorkerOptions& options) = 0;
};

/// The source of child processes.
WorkerSource& worker_processes();

}  // namespace moegate
