// SPDX-License-Identifier: Apache-2.0
#include "harness/store/merge_sources.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "harness/base/text.h"
#include "harness/store/rows.h"

namespace moegate {

namespace {

/// Throws Error(store) for a row that CHECKs forbid. Results are looked at as they are copied, and
/// who unpacks a sample knows how.
void check_rows(Database& db) {
  const auto checked = values_of<std::string>(
      db,
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%CHECK (%' "
      "AND name NOT IN ('result', 'sample')");
  for (const std::string& table : checked) db.check(table);
}

/// Which runs are merged.
class Choice {
 public:
  Choice(Store& out, const MergeOptions& options, const Sources& sources) : options_(options) {
    for (const auto& in : sources) {
      for (const RunInfo& run : in->runs) {
        if (run.shard > 0 && run.status == "complete") finished_.emplace(run.campaign, run.shard);
        if (!is_merged(run)) continue;
        for (const Shard& shard : shards_of(*in, run)) finished_.emplace(run.campaign, shard.shard);
      }
    }
    Statement q(out.database(), "SELECT protocol, run_id FROM run ORDER BY run_id LIMIT 1");
    if (!q.step()) return;
    protocol_ = q.integer(0);
    whose_ = fmt::format("run {} of {}", q.integer(1), out.database().path());
    Statement shards(out.database(),
                     "SELECT campaign, s.shard FROM shard s JOIN run USING (run_id)");
    while (shards.step()) finished_.emplace(shards.text(0), shards.integer(1));
  }
  bool takes(Source& in, const RunInfo& run, std::vector<std::string>& notes);

 private:
  const MergeOptions options_;
  int64_t protocol_ = 0;  // of all runs
  std::string whose_;     // that it is known from; empty: it is not known
  std::set<std::pair<std::string, int64_t>> finished_;  // campaign and shard
};

bool Choice::takes(Source& in, const RunInfo& run, std::vector<std::string>& notes) {
  const std::string who = in.who(run);
  if (run.status != "complete" && !is_merged(run)) {
    const bool lost = run.task != "measure" || run.tags.contains("ab");
    const std::string remedy = lost ? ""
                                    : fmt::format("; `moegate run --resume {} --db {}` finishes it",
                                                  run.id, shell_word(in.db().path()));
    if (run.shard > 0 && finished_.contains({run.campaign, run.shard})) {
      notes.push_back(fmt::format("{} is {} and left out: it was measured again", who, run.status));
    } else if (options_.leave_unfinished) {
      notes.push_back(fmt::format("{} is {}, and left out{}", who, run.status, remedy));
    } else {
      usage_error("{} is {}{}; --leave-unfinished merges without it", who, run.status, remedy);
    }
    return false;
  }
  if (whose_.empty()) {
    protocol_ = run.protocol;
    whose_ = who;
  }
  if (run.protocol == protocol_) return true;
  usage_error(
      "{} has protocol {}, and {} has {}: such results are never compared; merge it into another "
      "store",
      who, run.protocol, whose_, protocol_);
}

using Names = std::set<std::string>;

std::vector<DeviceFacts> devices_of(Database& db, int64_t run) {
  return all_rows<DeviceFacts>(
      db,
      fmt::format("SELECT DISTINCT {} FROM shard JOIN device d USING (device_id) WHERE run_id = ?1 "
                  "ORDER BY d.uuid, d.driver",
                  columns_of<DeviceFacts>("d")),
      run);
}

/// One device, or one that stands for several and promises no more than the least of them.
DeviceFacts all_of(const std::vector<DeviceFacts>& devices) {
  if (devices.size() == 1) return devices.front();
  Names names, uuids, drivers;
  DeviceFacts all = devices.at(0);
  for (const DeviceFacts& d : devices) {
    names.insert(d.name);
    uuids.insert(d.uuid);
    drivers.insert(d.driver);
    all.processors = std::min(all.processors, d.processors);
    all.cache_bytes = std::min(all.cache_bytes, d.cache_bytes);
    all.memory_bytes = std::min(all.memory_bytes, d.memory_bytes);
    all.shared_per_block = std::min(all.shared_per_block, d.shared_per_block);
  }
  all.name = fmt::format("{}", fmt::join(names, ", "));
  all.uuid = kSeveralDevices + fmt::format("{}", fmt::join(uuids, ","));
  all.driver = fmt::format("{}", fmt::join(drivers, ", "));
  return all;
}

}  // namespace

Source::Source(const std::string& path) : store(Store::open(path, Store::Mode::read)) {
  const Transaction reading(db(), "BEGIN");
  check_rows(db());
  Statement q(db(), "SELECT run_id FROM run ORDER BY started, uuid");
  while (q.step()) runs.push_back(store.run_info(q.integer(0)));
}

std::string Source::who(const RunInfo& run) {
  const std::string shard =
      run.shard == 0 ? "" : fmt::format(" (shard {} of {})", run.shard, run.shards);
  return fmt::format("{}: {}{}", db().path(), describe(run), shard);
}

std::vector<Shard> shards_of(Source& in, const RunInfo& run) {
  return all_rows<Shard>(
      in.db(),
      run.shard > 0
          ? "SELECT *, (SELECT json_group_object(name, value) FROM (SELECT name, value "
            "FROM tag WHERE run_id = ?1 ORDER BY name)) AS tags FROM run WHERE run_id = ?1"
          : "SELECT * FROM shard WHERE run_id = ?1 ORDER BY shard",
      run.id);
}

Sources open_sources(const std::vector<std::string>& paths, const std::string& out,
                     std::vector<std::string>& notes) {
  Sources sources;
  std::error_code ignored;
  for (const std::string& path : paths) {
    if (std::filesystem::equivalent(path, out, ignored)) {
      usage_error("merge: {} is both an input and OUT; name another OUT", path);
    }
    if (!std::filesystem::exists(path, ignored)) {
      give_up(Exit::store,
              "merge: {}: no such store; correct the path, or leave it out of the merge", path);
    }
    auto source = is_empty_store(path) ? nullptr : std::make_unique<Source>(path);
    if (source && !source->runs.empty()) {
      sources.push_back(std::move(source));
    } else {
      notes.push_back(fmt::format(
          "{} holds no run and is left out: its program ended before the first row", path));
    }
  }
  std::ranges::stable_sort(sources, {}, [](const auto& source) {
    return std::pair(source->runs[0].started, source->runs[0].uuid);
  });
  return sources;
}

void choose_runs(Store& out, const MergeOptions& options, Sources& sources,
                 std::vector<std::string>& notes) {
  Choice choice(out, options, sources);
  size_t chosen = 0;
  for (const auto& in : sources) {
    std::erase_if(in->runs, [&](const RunInfo& run) { return !choice.takes(*in, run, notes); });
    chosen += in->runs.size();
  }
  if (chosen == 0) throw Error(Exit::coverage, "merge: no finished run in any of these stores");
}

std::string options_of_all(Store& store, const std::string& options) {
  auto j = nlohmann::json::parse(options, nullptr, /*allow_exceptions=*/false);
  if (!j.is_object()) store.database().damaged("the options of a run are no JSON object");
  j["shard"] = 0;
  j["shards"] = 1;
  j["filtered"] = j.value("narrowed", false);
  return j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void check_same_campaign(const RunInfo& campaign, const RunInfo& part, const std::string& who) {
  const auto same = [&](const char* what, const auto& a, const auto& b) {
    if (a == b) return;
    usage_error(
        "{}: its {} is '{}', and the other shards of its campaign have '{}'; measure it again like "
        "them, or as a campaign of its own",
        who, what, b, a);
  };
  same("number of shards", campaign.shards, part.shards);
  same("device class", campaign.device.klass, part.device.klass);
  same("protocol", campaign.protocol, part.protocol);
  same("task", campaign.task, part.task);
  same("timer", campaign.timer, part.timer);
  same("flush", campaign.flush, part.flush);
  same("commit", campaign.git_sha, part.git_sha);
  same("program", campaign.program, part.program);
  same("set of options", campaign.options, part.options);
}

void sum_up_shards(Store& store, int64_t run) {
  Database& db = store.database();
  db.run(
      "UPDATE run SET (label, started, finished) = (SELECT min(label), min(started), max(finished) "
      "FROM shard WHERE run_id = ?1), command = (SELECT command FROM shard WHERE run_id = ?1 ORDER "
      "BY shard LIMIT 1), rounds = (SELECT count(DISTINCT round) FROM process WHERE run_id = ?1), "
      "status = iif((SELECT count(*) FROM shard WHERE run_id = ?1) = (SELECT shards FROM campaign "
      "WHERE uuid = run.campaign), 'complete', 'interrupted'), host = (SELECT group_concat(host, "
      "', ') FROM (SELECT DISTINCT host FROM shard WHERE run_id = ?1 ORDER BY host)), device_id = "
      "?2 WHERE run_id = ?1",
      run, store.device_id(all_of(devices_of(db, run))));
  db.run("DELETE FROM tag WHERE run_id = ?1", run);
  db.run(
      "INSERT INTO tag SELECT run_id, key, value FROM shard, json_each(tags) WHERE run_id = ?1 "
      "GROUP BY key, value HAVING count(*) = (SELECT count(*) FROM shard WHERE run_id = ?1)",
      run);
}

void drop_unused_devices(Store& store) {
  store.database().run(
      "DELETE FROM device WHERE uuid GLOB ?1 AND device_id NOT IN (SELECT device_id FROM run)",
      std::string(kSeveralDevices) + "*");
}

}  // namespace moegate
