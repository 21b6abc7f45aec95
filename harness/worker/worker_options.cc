// SPDX-License-Identifier: Apache-2.0
#include "harness/worker/worker_options.h"

#include <array>

#include "harness/worker/protocol.h"

namespace moegate {

const char* name_of(Task task) {
  switch (task) {
    case Task::verify:
      return "verify";
    case Task::measure:
      return "measure";
    case Task::profile:
      return "profile";
    case Task::controls:
      return "controls";
    case Task::counters:
      return "counters";
    case Task::stalls:
      return "stalls";
    case Task::energy:
      return "energy";
  }
  return "?";
}

void parse_name(const std::string& name, Task& task) {
  task = named(name, {Task::verify, Task::measure, Task::profile, Task::controls, Task::counters,
                      Task::stalls, Task::energy});
}

void parse_name(const std::string& name, Flush& flush) {
  flush = named(name, {Flush::read, Flush::write, Flush::none});
}

// A table: NOLINTNEXTLINE(readability-function-size)
std::span<const Option<WorkerOptions>> worker_options() {
  using W = WorkerOptions;
  using C = Conditions;
  using S = Sampling;
  using K = ValueKind;
  static constexpr const char* where = kSelectionGroup;
  static constexpr const char* how = kMeasuringGroup;
  static const std::array all = {
      option_row<W, &W::sample_seed>({"sample-seed", "N", K::number,
                                      "draws more rows to compare with the truth, and in verify "
                                      "one more problem set (0: none; a night uses its date)"},
                                     where, "sample_seed", "/sample_seed", Repeat::if_set),
      option_row<W, &W::device>(
          {"device", "D", K::choice,
           "auto, host, cuda, all or cuda:N; GPUs share the work as cuda:0,1 or cuda:all",
           "auto,host,cuda,all"},
          where, "device", "/device", Repeat::always),
      option_row<W, &W::kernels>(
          {"module", "FILE", K::file,
           "also load the kernels of this module (.so) or Python file (.py); may be repeated"},
          where, "kernels", "/kernels", Repeat::if_set),
      option_row<W, &W::tiles>(
          {"tiles", "DIR", K::file,
           "folder of tile configurations (default: MOEGATE_TILES, else suites/tiles)"},
          where, "tiles", "/tiles", Repeat::if_set),
      option_row<W, &W::timer>({"timer", "T", K::choice,
                                "cupti, event or auto (CUPTI, else events, and every row says "
                                "which)",
                                "auto,cupti,event"},
                               how, "timer", "/timer", Repeat::always),
      option_row<W, &W::conditions, &C::flush>({"flush", "F", K::choice,
                                                "how L2 is made cold: read (clean lines), write "
                                                "(dirty lines, as other tools do) or none",
                                                "read,write,none"},
                                               how, "flush", "/flush", Repeat::always),
      option_row<W, &W::conditions, &C::flush_factor>(
          {"flush-factor", "X", K::number, "bytes to flush, as a multiple of the size of L2", "", 1,
           1000},
          how, "flush_factor", "/flush_factor", Repeat::always),
      option_row<W, &W::conditions, &C::sets>(
          {"sets", "N", K::number,
           "launch on at most N problem sets in turn (0: 2 to 8, by their size); runs with "
           "different N are not compared",
           "", 0, 8},
          how, "sets", "/sets", Repeat::if_set),
      option_row<W, &W::sampling, &S::min_samples>(
          {"min-samples", "N", K::number,
           "samples before --precision may end a row; 50 are enough if the budget ends first", "",
           10, 1e6},
          how, "min_samples", "/sampling/min_samples", Repeat::always),
      option_row<W, &W::sampling, &S::max_samples>(
          {"max-samples", "N", K::number, "samples at most", "", 10, 1e6}, how, "max_samples",
          "/sampling/max_samples", Repeat::always),
      option_row<W, &W::sampling, &S::precision>(
          {"precision", "P", K::percent,
           "stop at a 95 % interval of ± P percent (0: 0.5 on a GPU, 2 on the host)", "", 0, 100},
          how, "precision", "/sampling/precision", Repeat::always),
      option_row<W, &W::sampling, &S::budget_s>(
          {"budget", "T", K::time, "wall clock per case, variant and round"}, how, "budget_s",
          "/sampling/budget_s", Repeat::always),
      // What no flag sets: the command does.
      option_row<W, &W::task>({}, "", "", "/task", Repeat::never),
      option_row<W, &W::stated>({}, "", "", "/stated", Repeat::never),
      option_row<W, &W::profiling, &Profiling::metrics>({}, "", "", "/profiling/metrics",
                                                        Repeat::never),
      option_row<W, &W::profiling, &Profiling::per_kernel>({}, "", "", "/profiling/per_kernel",
                                                           Repeat::never)};
  return all;
}

void to_json(nlohmann::json& json, const WorkerOptions& options) {
  json = nlohmann::json::object();
  for (const auto& row : worker_options()) {
    json[nlohmann::json::json_pointer(row.wire)] = row.get(options);
  }
}

void from_json(const nlohmann::json& json, WorkerOptions& options) {
  for (const auto& row : worker_options()) {
    const nlohmann::json::json_pointer at(row.wire);
    if (json.contains(at)) row.set(options, json.at(at));
  }
}

}  // namespace moegate
