// SPDX-License-Identifier: Apache-2.0
// A worker holds the device and runs cases; a worker source starts one. The real source starts a
// child process: a variant that aborts, corrupts the device or hangs takes its worker with it and
// costs one row, never the night. The child is a program of its own (`moegate worker`), this one or
// another build, so that both sides of an A/B are measured by one runner, in fresh address spaces.
// Tests of the campaign bring a source of their own (campaign/fake_worker_fixture.h).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "harness/kernel/description.h"
#include "harness/plugin/loaded_files.h"
#include "harness/timing/profiler.h"
#include "harness/values/conditions.h"
#include "harness/values/environment_facts.h"
#include "harness/values/option.h"
#include "harness/worker/canary.h"
#include "harness/worker/measure.h"
#include "harness/worker/summary.h"

namespace moegate {

/// The program that an empty WorkerOptions::program means: this one; `moegate` beside it where this
/// one was linked without kernels (moegate-judge). Throws Error(usage) where there is none.
std::string own_program();

/// What a worker does with a variant once it is verified; compile: nothing more. The last three are
/// profilers', of which a process has one, and none beside a timer of CUPTI's.
enum class Task { verify, measure, profile, controls, compile, counters, stalls, energy };
template <>
inline constexpr std::array kNames<Task> = {"verify",  "measure",  "profile", "controls",
                                            "compile", "counters", "stalls",  "energy"};

/// Everything a worker is told once.
struct WorkerOptions {
  std::string program;          // what to start; empty: own_program(). Not told to the worker
  std::string device = "auto";  // of the campaign also several GPUs (campaign/run_options.h)
  std::vector<int> cpus;        // that the process is bound to; none: all. Not told to the worker
  /// Of its environment, beside this one's; an empty text: it has none of this name. Not told.
  std::map<std::string, std::string> variables;
  std::vector<std::string> stated;   // names of variables that the user stated for it
  std::vector<std::string> modules;  // files of further kernels (plugin/plugin.h), absolute paths
  std::string tiles;           // folder of tile configurations; empty: the usual one (tile_file.h)
  std::string timer = "auto";  // auto, cupti, event; the host has only its clock
  Task task = Task::measure;
  Conditions conditions;  // of every case, but for the cache and the launch, which the case states
  Sampling sampling;
  Profiling profiling;       // of the tasks counters, stalls and energy
  uint64_t sample_seed = 0;  // Draw::sample_seed, of every case
  /// Seconds for an answer that is no row's; a cold driver takes seconds. Not told to the worker.
  double answer_timeout_s = 60;
};

/// Groups of options in help.
inline constexpr const char* kSelectionGroup = "Which cases, where";
inline constexpr const char* kMeasuringGroup = "How to measure";

/// One row for each option of a worker: all that people can set and all that the worker is told.
std::span<const Option<WorkerOptions>> worker_options();

/// The options as the `start` message has them (PROTOCOL.md). What the message does not name keeps
/// its default.
void to_json(nlohmann::json& json, const WorkerOptions& options);
void from_json(const nlohmann::json& json, WorkerOptions& options);

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

/// What a row may take of time.
struct RowTime {
  double row_s = 0;  // all of it; in Python, from the end of the first launch on
  /// In Python, until then: such a launch may compile for minutes. At least row_s.
  double first_launch_s = 0;
  const char* flag = "--case-timeout";  // gives it more
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
  virtual Result run(const Request& request, const RowTime& time, CaseData& data) = 0;

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

WorkerSource& worker_processes();

}  // namespace moegate
