// SPDX-License-Identifier: Apache-2.0
#include "harness/store/merge_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <string_view>
#include <tuple>

namespace moegate {
namespace {

TableShape shape_of(Database& db, const std::string& name) {
  TableShape table{name, {}, {}};
  Statement q(db, "SELECT name, pk FROM pragma_table_info(?1) ORDER BY cid");
  q.bind(name);
  while (q.step()) {
    table.columns.push_back(q.text(0));
    if (q.integer(1) > 0) table.key.push_back(q.text(0));
  }
  return table;
}

/// WHERE: without it ON CONFLICT would be read as a condition of a join.
std::string insert_into(const TableShape& table) {
  std::string made;
  for (size_t i = 0; i < table.columns.size(); ++i) made += fmt::format("{}c{}", i ? ", " : "", i);
  return fmt::format("INSERT INTO {} ({}) SELECT {} FROM made_rows(?1) WHERE true", table.name,
                     fmt::join(table.columns, ", "), made);
}

/// INSERT, or the greater of two rows. NULL is put in the place of a text, so that any two
/// rows compare.
std::string insert_greater(const TableShape& table) {
  std::vector<std::string> sets, ours, theirs;
  for (const std::string& column : table.columns) {
    if (std::ranges::count(table.key, column) > 0) continue;
    sets.push_back(fmt::format("{0} = excluded.{0}", column));
    ours.push_back(fmt::format("ifnull({}.{}, '')", table.name, column));
    theirs.push_back(fmt::format("ifnull(excluded.{}, '')", column));
  }
  const std::string insert =
      fmt::format("{} ON CONFLICT ({})", insert_into(table), fmt::join(table.key, ", "));
  if (sets.empty()) return insert + " DO NOTHING";
  return fmt::format("{} DO UPDATE SET {} WHERE ({}) > ({})", insert, fmt::join(sets, ", "),
                     fmt::join(theirs, ", "), fmt::join(ours, ", "));
}

std::string find_by_name(const KeptOnce& kept) {
  std::vector<std::string> terms;
  for (const std::string& column : kept.name) {
    terms.push_back(fmt::format("{} = ?{}", column, terms.size() + 1));
  }
  return fmt::format("SELECT {} FROM {} WHERE {}", kept.number, kept.table,
                     fmt::join(terms, " AND "));
}

using Twice = RowCopy::Twice;

const std::vector<KeptOnce>& kept_once() {
  static const std::vector<KeptOnce> all = {{"device", "device_id", {"uuid", "class", "driver"}},
                                            {"bench_case", "case_id", {"key"}},
                                            {"launch_shape",
                                             "shape_id",
                                             {"name", "grid", "block", "cluster", "registers",
                                              "static_shared", "dynamic_shared", "local_bytes"}},
                                            {"metric_name", "metric_id", {"name", "unit"}},
                                            {"environment", "environment_id", {"digest"}, true},
                                            {"verification", "verification_id", {"digest"}, true}};
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

bool TableShape::has(const std::string& column) const {
  return std::ranges::count(columns, column) > 0;
}

TableShapes shapes_of(Database& db) {
  TableShapes shapes;
  Statement q(db,
              "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'");
  while (q.step()) shapes[q.text(0)] = shape_of(db, q.text(0));
  return shapes;
}

NumberOf number_in(const Numbers& numbers) {
  return [&numbers](int64_t from) -> std::optional<int64_t> {
    const auto at = numbers.find(from);
    if (at == numbers.end()) return std::nullopt;
    return at->second;
  };
}

RowCopy::RowCopy(Database& in, Database& out, const TableShape& table,
                 const NumberOfByColumn& numbers, const std::string& where, Twice twice,
                 const std::string& own)
    : table_(table),
      rows_(in, fmt::format("SELECT {} FROM {} WHERE {}", fmt::join(table.columns, ", "),
                            table.name, where)),
      insert_(out, twice == Twice::greater ? insert_greater(table) : insert_into(table)) {
  for (const std::string& column : table.columns) {
    const auto at = numbers.find(column);
    numbers_.push_back(at == numbers.end() || column == own ? nullptr : &at->second);
  }
  new_.resize(numbers_.size());
  from_.resize(numbers_.size());
  if (!own.empty()) own_ = place_of(own);
}

int RowCopy::place_of(const std::string& column) const {
  const auto at = std::ranges::find(table_.columns, column);
  if (at == table_.columns.end()) throw Error(Exit::internal, table_.name + " has no " + column);
  return static_cast<int>(at - table_.columns.begin());
}

int64_t RowCopy::integer(const std::string& column) const {
  return rows_.integer(place_of(column));
}

bool RowCopy::find_numbers() {
  for (size_t at = 0; at < numbers_.size(); ++at) {
    if (numbers_[at] == nullptr) continue;
    const int64_t from = rows_.integer(static_cast<int>(at));
    if (from == from_[at]) continue;
    const auto to = (*numbers_[at])(from);
    if (!to) return false;
    from_[at] = from;
    new_[at] = *to;
  }
  return true;
}

bool RowCopy::next() {
  while (std::exchange(at_first_, false) || rows_.step()) {
    if (!find_numbers()) continue;
    const auto number = *choose_ ? (*choose_)() : 0;
    if (!number) continue;
    if (own_ >= 0) new_[static_cast<size_t>(own_)] = *number;
    ++count_;
    return true;
  }
  return false;
}

void RowCopy::give(int i, MadeValue value) {
  const auto at = static_cast<size_t>(i);
  if (i == own_) {
    if (new_[at] > 0) value.integer(new_[at]);
  } else if (!set_.empty() && set_.contains(i)) {
    value.text(set_.at(i));
  } else if (numbers_[at] != nullptr) {
    value.integer(new_[at]);
  } else {
    value.from(rows_, i);
  }
}

int64_t RowCopy::put_all(const Choose& choose) {
  choose_ = &choose;
  count_ = 0;
  insert_.insert(*this);
  rows_.reset();
  return count_;
}

int64_t copy_row(Database& in, Database& out, const TableShape& table, const std::string& own,
                 int64_t number, const NumberOfByColumn& numbers,
                 const std::map<std::string, std::string>& instead) {
  RowCopy row(in, out, table, numbers, own + " = ?1", RowCopy::Twice::refused, own);
  for (const auto& [column, text] : instead) row.set(column, text);
  if (row.of(number).put_all() == 0) {
    in.damaged(fmt::format("{} {} of table {} is not whole", own, number, table.name));
  }
  return out.last_id();
}

KeptRows::KeptRows(Database& in, Database& out, const TableShapes& shapes, const KeptOnce& kept,
                   const std::vector<std::string>& parts, const NumberOfByColumn& numbers)
    : kept_(kept),
      out_(out),
      row_(in, out, shapes.at(kept.table), numbers, fmt::format("{} = ?1", kept.number),
           RowCopy::Twice::refused, kept.number),
      find_(out, find_by_name(kept)) {
  if (kept.or_none) known_[0] = 0;
  for (const std::string& column : kept.name) name_.push_back(row_.place_of(column));
  for (const std::string& part : parts) {
    parts_.emplace_back(in, out, shapes.at(part), numbers, fmt::format("{} = ?1", kept.number),
                        RowCopy::Twice::greater);
  }
}

std::optional<int64_t> KeptRows::number_of(int64_t from) {
  const auto known = known_.find(from);
  if (known != known_.end()) return known->second;
  if (!row_.of(from).begin()) return std::nullopt;
  find_.again();
  for (size_t i = 0; i < name_.size(); ++i) {
    find_.bind_from(static_cast<int>(i) + 1, row_.row(), name_[i]);
  }
  const bool there = find_.step();
  int64_t to = there ? find_.integer(0) : 0;
  find_.reset();
  if (!there) {
    row_.put_all();
    to = out_.last_id();
  }
  known_[from] = to;
  for (RowCopy& part : parts_) part.of(from).put_all();
  if (there && on_known) on_known(from, to);
  return to;
}

RunRows::RunRows(Source& in, Database& out, const TableShapes& shapes) : in_(in), out_(out) {
  keep_once(shapes);
  numbers_["run_id"] = number_in(runs_);
  numbers_["process_id"] = number_in(processes_);
  numbers_["result_id"] = number_in(results_);
  keep_parts(shapes);
  constexpr int64_t kMost = int64_t{1} << 62;
  for (const auto& [table, last] :
       {std::pair("result", &last_result_), {"process", &last_process_}}) {
    *last = out.integer(fmt::format("SELECT max({0}_id) FROM {0}", table));
    if (*last > kMost) out.damaged(fmt::format("it has a {} {}", table, *last));
  }
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
  std::optional<int64_t> any;
  Statement q(in_.db(),
              "SELECT device_id, uuid GLOB ?1 AS several FROM device ORDER BY several, device_id");
  q.bind(std::string(kSeveralDevices) + "*");
  while (q.step()) {
    const int64_t from = q.integer(0);
    if (q.integer(1) == 0) any = device_(from).value();
    if (any) devices_[from] = *any;
  }
}

/// The newest count.
void RunRows::take_ceilings() {
  Statement q(in_.db(), "SELECT device_id, name, value, measured FROM ceiling");
  while (q.step()) {
    const auto device = numbers_.at("device_id")(q.integer(0));
    if (!device) in_.db().damaged("a ceiling of no device");
    out_.run(
        "INSERT INTO ceiling (device_id, name, value, measured) VALUES (?1, ?2, ?3, ?4) ON "
        "CONFLICT (device_id, name) DO UPDATE SET value = excluded.value, measured = "
        "excluded.measured WHERE (excluded.measured, excluded.value) > (measured, value)",
        *device, q.text(1), q.real(2), q.text(3));
  }
}

/// What is said of a case is what the newest process said that measured it.
void RunRows::take_newer_case(int64_t from, int64_t to) {
  const auto said = [](Database& db, int64_t id) {
    Statement q(
        db, "SELECT op, params, flops, read_bytes, write_bytes FROM bench_case WHERE case_id = ?1");
    q.bind(id).step();
    return std::tuple(q.text(0), q.text(1), q.real(2), q.real(3), q.real(4));
  };
  const auto now = said(in_.db(), from), before = said(out_, to);
  if (now == before) return;
  const auto newest = [](Database& db, int64_t id) {
    // By the index of each process's results: that of a case's is not there while a new store
    // is filled.
    Statement q(db,
                "SELECT max(started) FROM process p WHERE EXISTS (SELECT 1 FROM result r WHERE "
                "r.process_id = p.process_id AND r.case_id = ?1)");
    return q.bind(id).step() ? q.text(0) : "";
  };
  if (std::pair(newest(in_.db(), from), now) < std::pair(newest(out_, to), before)) return;
  out_.run(
      "UPDATE bench_case SET op = ?2, params = ?3, flops = ?4, read_bytes = ?5, write_bytes "
      "= ?6 WHERE case_id = ?1",
      to, std::get<0>(now), std::get<1>(now), std::get<2>(now), std::get<3>(now), std::get<4>(now));
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
  const int uuid = rows.place_of("uuid");
  rows.of(run).put_all([&]() -> std::optional<int64_t> {
    find.again();
    find.bind_from(1, rows.row(), uuid);
    const bool known = find.step();
    any_known |= known;
    const int64_t to = known ? find.integer(0) : ++last_process_;
    find.reset();
    processes_[rows.integer("process_id")] = to;
    return known ? std::nullopt : std::optional(to);
  });
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
  Statement find(
      out_, "SELECT result_id FROM result WHERE process_id = ?1 AND case_id = ?2 AND variant = ?3");
  RowCopy& rows = result_.front();
  const int id = rows.place_of("result_id"), process = rows.place_of("process_id");
  const int of_case = rows.place_of("case_id"), variant = rows.place_of("variant");
  const auto there = [&] {
    if (!any_known) return false;
    find.again();
    find.bind(rows.number(process), rows.number(of_case), rows.row().view(variant));
    return find.step();
  };
  for (const auto& [first, last] : ranges) {
    rows.of(first, last).put_all([&]() -> std::optional<int64_t> {
      check_->check(runs_.begin()->first);
      const bool known = there();
      const int64_t to = known ? find.integer(0) : ++last_result_;
      results_[rows.row().integer(id)] = to;
      return known ? std::nullopt : std::optional(to);
    });
  }
}

}  // namespace moegate
