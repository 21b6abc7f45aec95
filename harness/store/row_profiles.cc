// SPDX-License-Identifier: Apache-2.0
#include "harness/store/row_profiles.h"

#include <optional>
#include <vector>

namespace moegate {
namespace {

struct ProfilingRun {
  int64_t id;
  std::string task;
};

/// Those to believe first come first.
std::vector<ProfilingRun> profiling_runs(Store& store, const RunInfo& run) {
  Statement q(store.database(),
              "SELECT run_id, task, t.run_id IS NOT NULL AS asked FROM run "
              "JOIN device USING (device_id) "
              "LEFT JOIN (SELECT run_id FROM tag WHERE name = ?1 AND value = ?2) t USING (run_id) "
              "WHERE task <> 'measure' AND status <> 'running' AND class = ?4 AND "
              "(t.run_id IS NOT NULL OR (status = 'complete' AND program <> '' AND program = ?3)) "
              "ORDER BY asked DESC, run_id DESC");
  q.bind(kWhyTag, std::to_string(run.id), run.program, run.device.klass);
  std::vector<ProfilingRun> all;
  while (q.step()) all.push_back({q.integer(0), q.text(1)});
  return all;
}

std::optional<Result>* part_of(RowProfile& profile, const std::string& task) {
  if (task == "counters") return &profile.counted;
  if (task == "stalls") return &profile.stalled;
  if (task == "energy") return &profile.metered;
  return nullptr;
}

}  // namespace

RowProfiles read_row_profiles(Store& store, int64_t run) {
  const RunInfo info = store.run_info(run);
  RowProfiles rows;
  std::map<std::pair<std::string, std::string>, std::vector<Result>> processes;
  for (Level& level : store.levels_with_launches(run)) {
    processes[{level.key, level.variant}].push_back(std::move(level.result));
  }
  for (const auto& [name, results] : processes) {
    rows[name].device = info.device;
    rows[name].measured = typical(results);
  }
  for (const ProfilingRun& profiling : profiling_runs(store, info)) {
    for (Level& level : store.levels_with_launches(profiling.id)) {
      const auto row = rows.find({level.key, level.variant});
      if (row == rows.end() || level.result.status != Status::ok) continue;
      std::optional<Result>* part = part_of(row->second, profiling.task);
      if (part && !*part) *part = std::move(level.result);
    }
  }
  return rows;
}

}  // namespace moegate
