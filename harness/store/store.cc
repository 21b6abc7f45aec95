// SPDX-License-Identifier: Apache-2.0
// The runs and devices of a store. store_open.cc opens it, store_results.cc has its results.
#include "harness/store/store.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace moegate {
namespace {

std::string now_utc() {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
}

std::string list_runs(Database& db) {
  Statement q(db, "SELECT run_id, label, status FROM run ORDER BY run_id DESC LIMIT 10");
  std::string list;
  while (q.step()) {
    list +=
        fmt::format("{}{} '{}' ({})", list.empty() ? "" : ", ", q.integer(0), q.text(1), q.text(2));
  }
  return list.empty() ? "none; `moegate run` makes one" : list;
}

}  // namespace

int64_t Store::device_id(const DeviceFacts& d) {
  // Not name_of(Backend): judging links no device.
  const char* backend = d.backend == Backend::cuda ? "cuda" : "host";
  Statement(db_,
            "INSERT INTO device (backend, name, class, uuid, driver, processors, cache_bytes, "
            "memory_bytes, shared_per_block) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) "
            "ON CONFLICT (uuid, class, driver) DO NOTHING")
      .bind(backend, d.name, d.klass, d.uuid, d.driver, d.processors, d.cache_bytes, d.memory_bytes,
            d.shared_per_block)
      .run();
  Statement q(db_, "SELECT device_id FROM device WHERE uuid = ?1 AND class = ?2 AND driver = ?3");
  q.bind(d.uuid, d.klass, d.driver).step();
  return q.integer(0);
}

int64_t Store::begin_run(const RunInfo& info) {
  Transaction transaction(db_);
  const int64_t device = device_id(info.device);
  Statement(db_,
            "INSERT INTO run (label, started, device_id, protocol, timer, flush, rounds, git_sha, "
            "dirty, build, host, command, options, program) "
            "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)")
      .bind(info.label, now_utc(), device, info.protocol, info.timer, info.flush, info.rounds,
            info.git_sha, info.dirty, info.build, info.host, info.command, info.options,
            info.program)
      .run();
  const int64_t run = db_.last_id();
  for (const auto& [name, value] : info.tags) {
    Statement(db_, "INSERT INTO tag (run_id, name, value) VALUES (?1, ?2, ?3)")
        .bind(run, name, value)
        .run();
  }
  transaction.commit();
  return run;
}

int64_t Store::begin_process(int64_t run, int round, int pid) {
  Statement(db_, "INSERT INTO process (run_id, round, pid, started) VALUES (?1, ?2, ?3, ?4)")
      .bind(run, round, pid, now_utc())
      .run();
  return db_.last_id();
}

void Store::end_process(int64_t process, const std::string& throttle) {
  Statement(db_, "UPDATE process SET throttle = ?2 WHERE process_id = ?1")
      .bind(process, throttle)
      .run();
}

void Store::end_run(int64_t run, const std::string& status) {
  Transaction transaction(db_);
  Statement(
      db_,
      "UPDATE run SET status = ?2, finished = ?3, rounds = (SELECT count(DISTINCT round) FROM "
      "process WHERE process.run_id = run.run_id) WHERE run_id = ?1")
      .bind(run, status, now_utc())
      .run();
  analyze(db_);  // the planner then knows how few of the rows belong to one run
  transaction.commit();
}

int64_t Store::find_run(const std::string& which) {
  if (which == "latest") {
    Statement q(db_,
                "SELECT run_id FROM run WHERE status <> 'running' AND run_id NOT IN "
                "(SELECT run_id FROM tag WHERE name = 'ab') ORDER BY run_id DESC LIMIT 1");
    if (q.step()) return q.integer(0);
    usage_error("{}: no finished run; its runs: {}", db_.path(), list_runs(db_));
  }
  // A number is an id; a label may be a number too, so an id that does not exist is tried as one.
  const bool number =
      !which.empty() && which.size() < 19 &&
      std::all_of(which.begin(), which.end(), [](unsigned char c) { return c >= '0' && c <= '9'; });
  if (number) {
    Statement q(db_, "SELECT run_id FROM run WHERE run_id = ?1");
    if (q.bind(int64_t{std::stoll(which)}).step()) return q.integer(0);
  }
  Statement q(db_, "SELECT run_id FROM run WHERE label = ?1 ORDER BY run_id DESC LIMIT 1");
  if (q.bind(which).step()) return q.integer(0);
  usage_error("{}: no run '{}' (latest, a number or a label); its runs: {}", db_.path(), which,
              list_runs(db_));
}

RunInfo Store::run_info(int64_t run) {
  Statement q(
      db_,
      "SELECT label, started, coalesce(finished, ''), status, protocol, timer, flush, rounds,"
      " git_sha, dirty, build, host, command, options, backend, d.name, class, uuid, driver,"
      " processors, cache_bytes, memory_bytes, shared_per_block, program "
      "FROM run JOIN device d USING (device_id) WHERE run_id = ?1");
  if (!q.bind(run).step()) usage_error("{}: no run {}", db_.path(), run);
  RunInfo info;
  info.id = run;
  info.label = q.text(0);
  info.started = q.text(1);
  info.finished = q.text(2);
  info.status = q.text(3);
  info.protocol = static_cast<int>(q.integer(4));
  info.timer = q.text(5);
  info.flush = q.text(6);
  info.rounds = static_cast<int>(q.integer(7));
  info.git_sha = q.text(8);
  info.dirty = q.integer(9) != 0;
  info.build = q.text(10);
  info.host = q.text(11);
  info.command = q.text(12);
  info.options = q.text(13);
  DeviceFacts& d = info.device;
  d.backend = q.text(14) == "cuda" ? Backend::cuda : Backend::host;
  d.name = q.text(15);
  d.klass = q.text(16);
  d.uuid = q.text(17);
  d.driver = q.text(18);
  d.processors = static_cast<int>(q.integer(19));
  d.cache_bytes = q.integer(20);
  d.memory_bytes = q.integer(21);
  d.shared_per_block = q.integer(22);
  info.program = q.text(23);
  Statement tags(db_, "SELECT name, value FROM tag WHERE run_id = ?1");
  tags.bind(run);
  while (tags.step()) info.tags[tags.text(0)] = tags.text(1);
  return info;
}

void Store::set_ceilings(const DeviceFacts& device, const std::map<std::string, double>& ceilings) {
  Transaction transaction(db_);
  const int64_t id = device_id(device);
  for (const auto& [name, value] : ceilings) {
    Statement(db_,
              "INSERT INTO ceiling (device_id, name, value, measured) VALUES (?1, ?2, ?3, ?4) "
              "ON CONFLICT (device_id, name) DO UPDATE SET value = excluded.value, "
              "measured = excluded.measured")
        .bind(id, name, value, now_utc())
        .run();
  }
  transaction.commit();
}

std::map<std::string, double> Store::ceilings(const DeviceFacts& device) {
  Statement q(db_,
              "SELECT c.name, value FROM ceiling c JOIN device USING (device_id) "
              "WHERE uuid = ?1 AND class = ?2 AND driver = ?3");
  q.bind(device.uuid, device.klass, device.driver);
  std::map<std::string, double> found;
  while (q.step()) found[q.text(0)] = q.real(1);
  return found;
}

}  // namespace moegate
