// SPDX-License-Identifier: Apache-2.0
#include "harness/store/merge.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "harness/store/merge_campaign.h"
#include "harness/store/merge_rows.h"
#include "harness/store/merge_sources.h"

namespace moegate {
namespace {

/// A table of what results have in common, each once, and the columns that tell its rows apart.
struct KeptOnce {
  const char* table;
  const char* number;
  std::vector<std::string> name;
};
const std::vector<KeptOnce>& kept_once() {
  static const std::vector<KeptOnce> all = {{"launch_shape",
                                             "shape_id",
                                             {"name", "grid", "block", "cluster", "registers",
                                              "static_shared", "dynamic_shared", "local_bytes"}},
                                            {"metric_name", "metric_id", {"name", "unit"}},
                                            {"verification", "verification_id", {"digest"}}};
  return all;
}

/// What is written.
class Merge {
 public:
  explicit Merge(Store& out) : out_(out), db_(out.database()), shapes_(shapes_of(db_)) {}

  void take(Source& in);
  /// Has the runs of campaigns state what their shards do.
  void sum_up();
  Merged merged;

 private:
  Numbers take_devices(Source& in);
  void take_ceilings(Source& in, const Numbers& devices);
  int64_t take_run(Source& in, const RunInfo& run, const Numbers& devices);
  int64_t take_campaign(Source& in, RunInfo run, const Numbers& devices);
  void take_shard(Source& in, const RunInfo& run, const Shard& shard, int64_t campaign,
                  const Numbers& devices);
  Numbers take_cases(Source& in, const Numbers& runs);
  void take_newer_case(Database& in, int64_t from, int64_t to);
  void check_same_processes(Source& in, const RunInfo& run, int64_t to, int shard);
  int64_t find_run(const std::string& uuid);

  Store& out_;
  Database& db_;
  const std::map<std::string, TableShape> shapes_;
  std::set<int64_t> campaigns_;
};

int64_t Merge::find_run(const std::string& uuid) {
  Statement q(db_, "SELECT run_id FROM run WHERE uuid = ?1");
  return q.bind(uuid).step() ? q.integer(0) : 0;
}

/// A device that stands for several is made anew of those; until then it is any of them.
Numbers Merge::take_devices(Source& in) {
  Numbers single, several;
  Statement q(in.db(), "SELECT device_id, uuid GLOB ?1 FROM device");
  q.bind(std::string(kSeveralDevices) + "*");
  while (q.step()) (q.integer(1) != 0 ? several : single)[q.integer(0)] = 0;
  Numbers devices = copy_named_rows(in.db(), db_, shapes_.at("device"), "device_id",
                                    {"uuid", "class", "driver"}, {{"device_id", single}});
  for (const auto& [id, unused] : several) {
    if (!devices.empty()) devices[id] = devices.begin()->second;
  }
  return devices;
}

/// The newest count.
void Merge::take_ceilings(Source& in, const Numbers& devices) {
  Statement q(in.db(), "SELECT device_id, name, value, measured FROM ceiling");
  while (q.step()) {
    Statement(db_,
              "INSERT INTO ceiling (device_id, name, value, measured) VALUES (?1, ?2, ?3, ?4) ON "
              "CONFLICT (device_id, name) DO UPDATE SET value = excluded.value, measured = "
              "excluded.measured WHERE (excluded.measured, excluded.value) > (measured, value)")
        .bind(devices.at(q.integer(0)), q.text(1), q.real(2), q.text(3))
        .run();
  }
}

void Merge::check_same_processes(Source& in, const RunInfo& run, int64_t to, int shard) {
  const auto names = [&](Database& db, int64_t of) {
    std::set<std::string> uuids;
    Statement q(db, "SELECT uuid FROM process WHERE run_id = ?1 AND shard = ?2");
    q.bind(of, shard);
    while (q.step()) uuids.insert(q.text(0));
    return uuids;
  };
  if (names(in.db(), run.id) == names(db_, to)) return;
  usage_error(
      "{} and run {} of {} began as one run and were finished apart; keep one of them, in one of "
      "the stores",
      in.who(run), to, db_.path());
}

int64_t Merge::take_run(Source& in, const RunInfo& run, const Numbers& devices) {
  const int64_t there = find_run(run.uuid);
  ++(there > 0 ? merged.known : merged.added);
  if (there == 0) {
    return copy_row(in.db(), db_, shapes_.at("run"), "run_id", run.id, {{"device_id", devices}},
                    {});
  }
  check_same_processes(in, run, there, 0);
  return there;
}

int64_t Merge::take_campaign(Source& in, RunInfo run, const Numbers& devices) {
  run.options = options_of_all(in.store, run.options);
  int64_t campaign = find_run(run.campaign);
  if (campaign > 0) check_same_campaign(out_.run_info(campaign), run, in.who(run));
  Statement row(in.db(), "SELECT created, label FROM campaign WHERE uuid = ?1");
  if (!row.bind(run.campaign).step()) in.db().damaged(in.who(run) + " is of no campaign");
  Statement(db_,
            "INSERT INTO campaign (uuid, created, label, shards) VALUES (?1, ?2, ?3, ?4) ON "
            "CONFLICT (uuid) DO UPDATE SET created = min(created, excluded.created), label = "
            "min(label, excluded.label)")
      .bind(run.campaign, row.text(0), row.text(1), run.shards)
      .run();
  if (campaign == 0) {
    campaign = copy_row(in.db(), db_, shapes_.at("run"), "run_id", run.id, {{"device_id", devices}},
                        {{"uuid", run.campaign}, {"shard", "0"}, {"options", run.options}});
  }
  campaigns_.insert(campaign);
  for (const Shard& shard : shards_of(in, run)) take_shard(in, run, shard, campaign, devices);
  return campaign;
}

void Merge::take_shard(Source& in, const RunInfo& run, const Shard& shard, int64_t campaign,
                       const Numbers& devices) {
  Statement there(db_, "SELECT uuid FROM shard WHERE run_id = ?1 AND shard = ?2");
  if (there.bind(campaign, shard.shard).step()) {
    if (there.text(0) != shard.uuid) {
      usage_error(
          "{}: shard {} of this campaign was measured twice, and the other one is in {} already; "
          "merge one of them",
          in.who(run), shard.shard, db_.path());
    }
    check_same_processes(in, run, campaign, shard.shard);
    ++merged.known;
    return;
  }
  Statement(db_,
            "INSERT INTO shard (run_id, shard, device_id, uuid, label, started, finished, host, "
            "command, tags) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")
      .bind(campaign, shard.shard, devices.at(shard.device), shard.uuid, shard.label, shard.started,
            shard.finished, shard.host, shard.command, shard.tags)
      .run();
  ++merged.added;
}

/// What is said of a case is what the newest process said that measured it.
void Merge::take_newer_case(Database& in, int64_t from, int64_t to) {
  constexpr const char* kCase =
      "SELECT op, params, flops, read_bytes, write_bytes, (SELECT max(p.started) FROM result JOIN "
      "process p USING (process_id) WHERE result.case_id = c.case_id) FROM bench_case c WHERE "
      "case_id = ?1";
  Statement theirs(in, kCase), ours(db_, kCase);
  theirs.bind(from).step();
  ours.bind(to).step();
  const auto said = [](const Statement& q) {
    return std::tuple(q.text(0), q.text(1), q.real(2), q.real(3), q.real(4));
  };
  const auto now = said(theirs), before = said(ours);
  if (now == before || std::pair(theirs.text(5), now) < std::pair(ours.text(5), before)) return;
  Statement(
      db_,
      "UPDATE bench_case SET op = ?2, params = ?3, flops = ?4, read_bytes = ?5, write_bytes = "
      "?6 WHERE case_id = ?1")
      .bind(to, std::get<0>(now), std::get<1>(now), std::get<2>(now), std::get<3>(now),
            std::get<4>(now))
      .run();
}

Numbers Merge::take_cases(Source& in, const Numbers& runs) {
  Numbers wanted;
  Statement q(in.db(), "SELECT run_id, case_id FROM run_case");
  while (q.step()) {
    if (runs.contains(q.integer(0))) wanted[q.integer(1)] = 0;
  }
  const Numbers cases = copy_named_rows(in.db(), db_, shapes_.at("bench_case"), "case_id", {"key"},
                                        {{"case_id", wanted}});
  for (const auto& [from, to] : cases) take_newer_case(in.db(), from, to);
  return cases;
}

void Merge::take(Source& in) {
  static const std::set<std::string> kByHand = {
      "device",  "ceiling", "run",          "campaign",    "shard",       "bench_case",
      "process", "result",  "launch_shape", "metric_name", "verification"};
  const Numbers devices = take_devices(in);
  take_ceilings(in, devices);
  Numbers runs;
  for (const RunInfo& run : in.runs) {
    if (run.shards > 0) {
      runs[run.id] = take_campaign(in, run, devices);
    } else {
      runs[run.id] = take_run(in, run, devices);
    }
  }
  NumbersByColumn numbers = {{"run_id", runs}, {"case_id", take_cases(in, runs)}};
  for (const KeptOnce& kept : kept_once()) {
    numbers[kept.number] =
        copy_named_rows(in.db(), db_, shapes_.at(kept.table), kept.number, kept.name, {});
  }
  numbers["verification_id"][0] = 0;  // of a result that verified nothing
  numbers["process_id"] =
      copy_named_rows(in.db(), db_, shapes_.at("process"), "process_id", {"uuid"}, numbers);
  numbers["result_id"] = copy_named_rows(in.db(), db_, shapes_.at("result"), "result_id",
                                         {"process_id", "case_id", "variant"}, numbers);
  for (const auto& [name, table] : shapes_) {
    if (kByHand.contains(name)) continue;
    copy_rows(in.db(), db_, table, numbers);
  }
}

void Merge::sum_up() {
  for (const int64_t campaign : campaigns_) {
    sum_up_shards(out_, campaign);
    merged.campaigns.push_back(campaign);
  }
  drop_unused_devices(out_);
}

}  // namespace

Merged merge_stores(Store& out, const std::vector<std::string>& in, const MergeOptions& options) {
  Sources sources = open_sources(in, out.database().path());
  Transaction writing(out.database());
  out.database().execute("PRAGMA defer_foreign_keys = 1");  // until the commit
  Merge merge(out);
  choose_runs(out, options, sources, merge.merged.notes);
  for (const auto& source : sources) merge.take(*source);
  merge.sum_up();
  analyze(out.database());
  writing.commit();
  return merge.merged;
}

}  // namespace moegate
