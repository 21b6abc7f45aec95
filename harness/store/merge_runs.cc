// SPDX-License-Identifier: Apache-2.0
#include "harness/store/merge_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>

namespace moegate {
namespace {

using Twice = RowCopy::Twice;

const std::vector<KeptOnce>& kept_once() {
  static const std::vector<KeptOnce> all = {{"device", "device_id", {"uuid", "class", "driver"}},
                                            {"bench_case", "case_id", {"key"}},
                                            {"launch_shape",
                                             "shape_id",
                                             {"name", "grid", "block", "cluster", "registers",
                                              "static_shared", "dynamic_shared", "local_bytes"}},
                                            {"metric_name", "metric_id", {"name", "unit"}},
                                            {"verification", "verification_id", {"digest"}}};
  return all;
}

/// Tables that are not copied as the columns with numbers that they have say.
bool is_by_hand(const std::string& table) {
  static const std::set<std::string> by_hand = {"ceiling", "run",     "campaign",
                                                "shard",   "process", "result"};
  return by_hand.contains(table) ||
         std::ranges::any_of(kept_once(), [&](const auto& kept) { return table == kept.table; });
}

/// What a row of the table is a part of, beside those of a run, process or result.
bool is_part_of(const TableShape& table, const KeptOnce& kept) {
  return table.has(kept.number) && !table.has("run_id") && !table.has("result_id") &&
         !is_by_hand(table.name);
}

}  // namespace

RunRows::RunRows(Source& in, Database& out, const TableShapes& shapes) : in_(in), out_(out) {
  keep_once(shapes);
  numbers_["run_id"] = number_in(runs_);
  numbers_["process_id"] = number_in(processes_);
  numbers_["result_id"] = number_in(results_);
  keep_parts(shapes);
  constexpr int64_t kMost = int64_t{1} << 62;
  last_result_ = out.integer("SELECT max(result_id) FROM result");
  if (last_result_ > kMost) out.damaged(fmt::format("it has a result {}", last_result_));
}

void RunRows::keep_once(const TableShapes& shapes) {
  for (const KeptOnce& kept : kept_once()) {
    std::vector<std::string> parts;
    for (const auto& [name, table] : shapes) {
      if (is_part_of(table, kept)) parts.push_back(name);
    }
    NumberOf& number_of = numbers_[kept.number];  // its parts are prepared with it
    KeptRows& rows = kept_.emplace_back(in_.db(), out_, shapes, kept, parts, numbers_);
    number_of = [&rows](int64_t from) { return rows.number_of(from); };
    const std::string_view number = kept.number;
    if (number == "device_id") device_ = std::exchange(number_of, number_in(devices_));
    if (number == "case_id") {
      rows.on_known = [this](int64_t from, int64_t to) { take_newer_case(from, to); };
    }
    if (number == "verification_id") {
      number_of = [&rows](int64_t from) {
        return from == 0 ? std::optional<int64_t>(0)
                         : rows.number_of(from);  // nothing was verified
      };
    }
  }
}

void RunRows::keep_parts(const TableShapes& shapes) {
  const auto keep = [&](std::vector<RowCopy>& rows, const std::string& name, const char* where,
                        Twice twice, const char* own = "") {
    rows.emplace_back(in_.db(), out_, shapes.at(name), numbers_, where, twice, own);
  };
  keep(process_, "process", "run_id = ?1", Twice::refused, "process_id");
  keep(result_, "result", "result_id BETWEEN ?1 AND ?2", Twice::refused, "result_id");
  check_.emplace(in_.db(), result_.front().row());
  for (const auto& [name, table] : shapes) {
    const auto is_part = [&table = table](const auto& kept) { return is_part_of(table, kept); };
    if (is_by_hand(name)) continue;
    if (table.has("result_id")) {
      keep(of_result_, name, "result_id BETWEEN ?1 AND ?2", Twice::greater);
      keep(of_new_result_, name, "result_id BETWEEN ?1 AND ?2", Twice::refused);
    } else if (table.has("run_id")) {
      keep(of_run_, name, "run_id = ?1", Twice::greater);
    } else if (std::ranges::none_of(kept_once(), is_part)) {
      keep(of_store_, name, "1", Twice::greater);
    }
  }
}

void RunRows::copy_first() {
  take_devices();
  take_ceilings();
  for (RowCopy& rows : of_store_) rows.of().put_all();
}

void RunRows::take_devices() {
  std::vector<int64_t> several;
  Statement q(in_.db(), "SELECT device_id, uuid GLOB ?1 FROM device ORDER BY device_id");
  q.bind(std::string(kSeveralDevices) + "*");
  while (q.step()) {
    const int64_t from = q.integer(0);
    if (q.integer(1) != 0) {
      several.push_back(from);
    } else {
      devices_[from] = device_(from).value();
    }
  }
  for (const int64_t id : several) {
    if (!devices_.empty()) devices_[id] = devices_.begin()->second;
  }
}

/// The newest count.
void RunRows::take_ceilings() {
  Statement q(in_.db(), "SELECT device_id, name, value, measured FROM ceiling");
  while (q.step()) {
    const auto device = numbers_.at("device_id")(q.integer(0));
    if (!device) in_.db().damaged("a ceiling of no device");
    Statement(out_,
              "INSERT INTO ceiling (device_id, name, value, measured) VALUES (?1, ?2, ?3, ?4) ON "
              "CONFLICT (device_id, name) DO UPDATE SET value = excluded.value, measured = "
              "excluded.measured WHERE (excluded.measured, excluded.value) > (measured, value)")
        .bind(*device, q.text(1), q.real(2), q.text(3))
        .run();
  }
}

/// What is said of a case is what the newest process said that measured it.
void RunRows::take_newer_case(int64_t from, int64_t to) {
  const auto said = [](Database& db, int64_t id) {
    Statement q(db,
                "SELECT op, params, flops, read_bytes, write_bytes FROM bench_case WHERE case_id = "
                "?1");
    q.bind(id).step();
    return std::tuple(q.text(0), q.text(1), q.real(2), q.real(3), q.real(4));
  };
  const auto now = said(in_.db(), from), before = said(out_, to);
  if (now == before) return;
  const auto newest = [](Database& db, int64_t id) {
    // By the index of each process's results: that of a case's is not there while a new store is filled.
    Statement q(db,
                "SELECT max(started) FROM process p WHERE EXISTS (SELECT 1 FROM result r WHERE "
                "r.process_id = p.process_id AND r.case_id = ?1)");
    return q.bind(id).step() ? q.text(0) : "";
  };
  if (std::pair(newest(in_.db(), from), now) < std::pair(newest(out_, to), before)) return;
  Statement(out_,
            "UPDATE bench_case SET op = ?2, params = ?3, flops = ?4, read_bytes = ?5, write_bytes "
            "= ?6 WHERE case_id = ?1")
      .bind(to, std::get<0>(now), std::get<1>(now), std::get<2>(now), std::get<3>(now),
            std::get<4>(now))
      .run();
}

void RunRows::copy(int64_t from, int64_t to) {
  runs_ = {{from, to}};
  const bool any_known = take_processes(from);
  const std::vector<Range> ranges = results_of_run();
  take_results(ranges, any_known);
  for (RowCopy& rows : of_run_) rows.of(from).put_all();
  for (RowCopy& rows : any_known ? of_result_ : of_new_result_) {
    for (const auto& [first, last] : ranges) rows.of(first, last).put_all();
  }
}

bool RunRows::take_processes(int64_t run) {
  processes_.clear();
  bool any_known = false;
  Statement find(out_, "SELECT process_id FROM process WHERE uuid = ?1");
  RowCopy& rows = process_.front();
  rows.of(run);
  while (rows.step()) {
    find.again();
    find.bind_from(1, rows.row(), rows.place_of("uuid"));
    const bool known = find.step();
    any_known |= known;
    if (!known) rows.put();
    processes_[rows.integer("process_id")] = known ? find.integer(0) : out_.last_id();
    find.reset();
  }
  return any_known;
}

/// In few ranges: where one run is measured at a time, its results follow each other.
std::vector<RunRows::Range> RunRows::results_of_run() {
  std::vector<int64_t> ids;
  Statement q(in_.db(), "SELECT result_id FROM result WHERE process_id = ?1");
  for (const auto& [process, unused] : processes_) {
    q.again();
    q.bind(process);
    while (q.step()) ids.push_back(q.integer(0));
  }
  std::ranges::sort(ids);
  std::vector<Range> ranges;
  constexpr int64_t kNear = 16;  // reading over others costs less than a new search
  for (const int64_t id : ids) {
    if (!ranges.empty() && id <= ranges.back().second + kNear) {
      ranges.back().second = id;
    } else {
      ranges.emplace_back(id, id);
    }
  }
  results_.clear();
  results_.reserve(ids.size());
  return ranges;
}

void RunRows::take_results(const std::vector<Range>& ranges, bool any_known) {
  Statement find(out_,
                 "SELECT result_id FROM result WHERE process_id = ?1 AND case_id = ?2 AND variant "
                 "= ?3");
  RowCopy& rows = result_.front();
  const int id = rows.place_of("result_id"), process = rows.place_of("process_id");
  const int of_case = rows.place_of("case_id"), variant = rows.place_of("variant");
  const auto there = [&](int64_t its_process) {
    const auto its_case = numbers_.at("case_id")(rows.row().integer(of_case));
    if (!any_known || !its_case) return false;
    find.again();
    find.bind(its_process, *its_case, rows.row().view(variant));
    return find.step();
  };
  for (const auto& [first, last] : ranges) {
    rows.of(first, last);
    while (rows.step()) {
      const auto its_process = processes_.find(rows.row().integer(process));
      if (its_process == processes_.end()) continue;
      check_->check(runs_.begin()->first);
      if (there(its_process->second)) {
        results_[rows.row().integer(id)] = find.integer(0);
      } else if (rows.put(last_result_ + 1)) {
        results_[rows.row().integer(id)] = ++last_result_;
      }
    }
  }
}

}  // namespace moegate
