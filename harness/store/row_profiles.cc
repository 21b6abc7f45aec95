// SPDX-License-Identifier: Apache-2.0
#include "harness/store/row_profiles.h"

#include <optional>
#include <span>

namespace moegate {
namespace {

/// Selects ids and tasks of profiling runs, those to believe first.
Statement profiling_runs(Store& store, const RunInfo& run) {
  Statement q(store.database(),
              "SELECT run_id, task, t.run_id IS NOT NULL AS asked FROM run "
              "JOIN device USING (device_id) "
              "LEFT JOIN (SELECT run_id FROM tag WHERE name = ?1 AND value = ?2) t USING (run_id) "
              "WHERE task <> 'measure' AND status <> 'running' AND class = ?4 AND "
              "(t.run_id IS NOT NULL OR (status = 'complete' AND program <> '' AND program = ?3)) "
              "ORDER BY asked DESC, run_id DESC");
  q.bind(kWhyTag, std::to_string(run.id), run.program, run.device.klass);
  return q;
}

std::optional<Result>* part_of(RowProfile& profile, std::string_view task) {
  if (task == "counters") return &profile.counted;
  if (task == "stalls") return &profile.stalled;
  if (task == "energy") return &profile.metered;
  return nullptr;
}

/// Puts together what the processes of a row measured. They come one after another.
class RowOfProcesses {
 public:
  explicit RowOfProcesses(ResultParts& parts) : parts_(parts) {}
  void add(const WalkedLevel& one) {
    if (ids_.size() == results_.size()) results_.emplace_back();
    Result& result = results_[ids_.size()];
    std::vector<KernelRow> launches = std::move(result.kernels);  // for its memory
    result = one.level.result;
    result.kernels = std::move(launches);
    parts_.launches.read(one.result_id, result.kernels);
    ids_.push_back(one.result_id);
  }
  /// And begins the next row.
  std::optional<Result> end() {
    const std::span<Result> row(results_.data(), ids_.size());
    if (const auto middle = middle_process(row)) parts_.read_metrics(ids_[*middle], row[*middle]);
    ids_.clear();
    return typical(row);
  }

 private:
  ResultParts& parts_;
  std::vector<Result> results_;  // keeps the memory of the rows before
  std::vector<int64_t> ids_;     // of those of this row
};

RowProfiles measured_rows(Database& db, const RunInfo& run, const CaseFilter& cases,
                          ResultParts& parts, const std::function<void(const Level&)>& also) {
  RowProfiles rows;
  RowOfProcesses processes(parts);
  auto row = rows.end();
  const auto end_row = [&] {
    if (row != rows.end()) row->second.measured = processes.end();
  };
  walk_levels(db, {.run = run.id, .cases = cases, .verified = false}, [&](const WalkedLevel& one) {
    const Level& level = one.level;
    if (row == rows.end() || level.key != row->first.first || level.variant != row->first.second) {
      end_row();
      row = rows.try_emplace({level.key, level.variant}).first;
      row->second.device = run.device;
    }
    processes.add(one);
    if (also) also(level);
  });
  end_row();
  return rows;
}

}  // namespace

RowProfiles read_row_profiles(Store& store, int64_t run, const CaseFilter& cases,
                              const std::function<void(const Level&)>& also) {
  Database& db = store.database();
  const RunInfo info = store.run_info(run);
  ResultParts parts(db);
  Transaction reading(db, "BEGIN");  // the statements of one state, whoever writes
  RowProfiles rows = measured_rows(db, info, cases, parts, also);
  for (Statement profiling = profiling_runs(store, info); profiling.step();) {
    const LevelChoice choice{.run = profiling.integer(0), .cases = cases, .verified = false};
    walk_levels(db, choice, [&](const WalkedLevel& one) {
      const auto row = rows.find({one.level.key, one.level.variant});
      if (row == rows.end() || one.level.result.status != Status::ok) return;
      std::optional<Result>* part = part_of(row->second, profiling.view(1));
      if (!part || *part) return;
      *part = one.level.result;
      parts.launches.read(one.result_id, (*part)->kernels);
      parts.read_metrics(one.result_id, **part);
      parts.stalls.read(one.result_id, (*part)->stalls);
    });
  }
  return rows;
}

std::vector<KernelRow> launches_of(Store& store, int64_t run) {
  Statement q(store.database(),
              "SELECT DISTINCT k.name, block, dynamic_shared "
              "FROM kernel k JOIN result USING (result_id) JOIN process USING (process_id) "
              "WHERE run_id = ?1 AND block <> '' ORDER BY k.name, block, dynamic_shared");
  q.bind(run);
  std::vector<KernelRow> launches;
  while (q.step()) {
    launches.push_back({.name = q.text(0), .block = q.text(1), .dynamic_shared = q.integer(2)});
  }
  return launches;
}

}  // namespace moegate
