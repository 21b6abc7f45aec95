// SPDX-License-Identifier: Apache-2.0
// What a worker is told once: its options, and the table that spells them on the command line, in
// the store and on the wire.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "harness/timing/profiler.h"
#include "harness/values/conditions.h"
#include "harness/values/option.h"
#include "harness/worker/summary.h"

namespace moegate {

/// What a worker does with a variant once it is verified. The last three are profilers', of which a
/// process has one, and none beside a timer of CUPTI's.
enum class Task { verify, measure, profile, controls, counters, stalls, energy };
const char* name_of(Task task);
void parse_name(const std::string& name, Task& task);  // throws std::invalid_argument
void parse_name(const std::string& name, Flush& flush);

/// Everything a worker is told once.
struct WorkerOptions {
  std::string program;          // what to start; empty: own_program(). Not told to the worker
  std::string device = "auto";  // of the campaign also several GPUs (campaign/devices.h)
  std::vector<int> cpus;        // that the process is bound to; none: all. Not told to the worker
  /// Of its environment, beside this one's; an empty text: it has none of this name. Not told.
  std::map<std::string, std::string> variables;
  std::vector<std::string> stated;   // names of variables that the user stated for it
  std::vector<std::string> kernels;  // files of further ones (plugin/plugin.h), by absolute paths
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

}  // namespace moegate
