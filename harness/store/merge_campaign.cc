// SPDX-License-Identifier: Apache-2.0
#include "harness/store/merge_campaign.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "harness/store/rows.h"

namespace moegate {
namespace {

using Names = std::set<std::string>;

/// The devices of a campaign's shards.
std::vector<DeviceFacts> devices_of(Database& db, int64_t run) {
  std::vector<DeviceFacts> devices;
  Statement q(db, fmt::format("SELECT DISTINCT {} FROM shard JOIN device d USING (device_id) "
                              "WHERE run_id = ?1 ORDER BY d.uuid, d.driver",
                              columns_of<DeviceFacts>("d")));
  q.bind(run);
  const Columns columns(q);
  while (q.step()) devices.push_back(columns.row<DeviceFacts>());
  return devices;
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

int64_t number_of(Database& db, const DeviceFacts& d) {
  Statement find(db, "SELECT device_id FROM device WHERE uuid = ?1 AND class = ?2 AND driver = ?3");
  if (find.bind(d.uuid, d.klass, d.driver).step()) return find.integer(0);
  insert_row(db, "device", d);
  return db.last_id();
}

/// The hosts of its shards, each once.
std::string hosts_of(Database& db, int64_t run) {
  Names hosts;
  Statement q(db, "SELECT host FROM shard WHERE run_id = ?1");
  q.bind(run);
  while (q.step()) hosts.insert(q.text(0));
  return fmt::format("{}", fmt::join(hosts, ", "));
}

}  // namespace

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
        "{}: its {} is '{}', that of the other shards of its campaign '{}'; measure it again as "
        "they were, or as a campaign of its own",
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
  Statement(db,
            "UPDATE run SET (label, started, finished) = (SELECT min(label), min(started), "
            "max(finished) FROM shard s WHERE s.run_id = run.run_id), command = (SELECT command "
            "FROM shard s WHERE s.run_id = run.run_id ORDER BY s.shard LIMIT 1), rounds = (SELECT "
            "count(DISTINCT round) FROM process WHERE process.run_id = run.run_id), status = "
            "iif((SELECT count(*) FROM shard s WHERE s.run_id = run.run_id) = (SELECT shards FROM "
            "campaign WHERE uuid = run.campaign), 'complete', 'interrupted'), host = ?2, device_id "
            "= ?3 WHERE run_id = ?1")
      .bind(run, hosts_of(db, run), number_of(db, all_of(devices_of(db, run))))
      .run();
  Statement(db, "DELETE FROM tag WHERE run_id = ?1").bind(run).run();
  Statement(db,
            "INSERT INTO tag SELECT run_id, key, value FROM shard, json_each(tags) WHERE run_id = "
            "?1 GROUP BY key, value HAVING count(*) = (SELECT count(*) FROM shard WHERE run_id = "
            "?1)")
      .bind(run)
      .run();
}

void drop_unused_devices(Store& store) {
  Statement(
      store.database(),
      "DELETE FROM device WHERE uuid GLOB ?1 AND device_id NOT IN (SELECT device_id FROM run)")
      .bind(std::string(kSeveralDevices) + "*")
      .run();
}

}  // namespace moegate
