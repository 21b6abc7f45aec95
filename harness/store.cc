// SPDX-License-Identifier: Apache-2.0
// Opening a store, its runs and devices. The rows of results are in store_results.cc.
#include "harness/store.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>

#include "schema_sql.h"  // made by the build from schema_*.sql

namespace moegate {
namespace {

constexpr int64_t kApplicationId = 0x4D6F4550;  // "MoEP"

// kMigrations: schema versions in order; opening a store applies those it lacks. Append-only: a
// version that exists never changes, because stores of it exist.
constexpr auto kVersion = static_cast<int64_t>(kMigrations.size());

// Older libraries can corrupt a WAL with several writers (fixed in 3.51.3).
constexpr int kFirstSafeWal = 3051003;

std::string now_utc() {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
}

/// 0 for an empty database, else its version. Throws for a file that is not a store of ours.
int64_t version_of(Database& db) {
  const int64_t application = db.integer("PRAGMA application_id");
  const int64_t version = db.integer("PRAGMA user_version");
  if (application == 0 && version == 0 && db.integer("SELECT count(*) FROM sqlite_schema") == 0) {
    return 0;
  }
  if (application != kApplicationId) {
    throw Error(Exit::store,
                fmt::format("{}: is an SQLite database of another program (application_id {:#x}); "
                            "choose another --db",
                            db.path(), application));
  }
  if (version > kVersion) {
    throw Error(Exit::store, fmt::format("{}: is a store of version {}, this program knows up to "
                                         "{}; use the moegate that wrote it, or a newer one",
                                         db.path(), version, kVersion));
  }
  return version;
}

/// Brings the store to kVersion inside one exclusive transaction; safe against a second process
/// that opens the same new file at the same time.
void migrate(Database& db) {
  db.execute("BEGIN EXCLUSIVE");
  try {
    for (int64_t v = version_of(db); v < kVersion; ++v) {
      db.execute(kMigrations.at(static_cast<size_t>(v)));
    }
    db.execute(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}; COMMIT",
                           kApplicationId, kVersion));
  } catch (...) {
    sqlite3_exec(db.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
    throw;
  }
}

void set_journal_mode(Database& db) {
  const bool wal = sqlite3_libversion_number() >= kFirstSafeWal;
  Statement(db, wal ? "PRAGMA journal_mode = WAL" : "PRAGMA journal_mode = DELETE").run();
}

void check_file(const std::string& path, Store::Mode mode) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw Error(Exit::store, fmt::format("{}: is a folder; --db names a file", path));
  }
  if (std::filesystem::exists(path, ignored)) {
    // Opened read-only first, so that a file which is not ours is never touched.
    Database probe(path, SQLITE_OPEN_READONLY);
    version_of(probe);
  } else if (mode != Store::Mode::write) {
    throw Error(Exit::store,
                fmt::format("{}: no such store; `moegate run --db {}` makes one", path, path));
  }
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

Store Store::open(const std::string& path, Mode mode) {
  check_file(path, mode);
  if (mode == Mode::read) {
    Store store{Database(path, SQLITE_OPEN_READONLY)};
    const int64_t version = version_of(store.db_);
    if (version != kVersion) {
      throw Error(Exit::store, fmt::format("{}: {}; `moegate run --db {}` {}", path,
                                           version == 0 ? "is an empty file, no store"
                                                        : "is a store of an older version",
                                           path, version == 0 ? "fills it" : "upgrades it"));
    }
    return store;
  }
  const int create = mode == Mode::write ? SQLITE_OPEN_CREATE : 0;
  Store store{Database(path, SQLITE_OPEN_READWRITE | create)};
  // SQLite falls back to read-only silently when the file's permissions say so.
  if (sqlite3_db_readonly(store.db_.handle(), "main") == 1) {
    throw Error(Exit::store,
                fmt::format("{}: is read-only; copy it, or choose another --db", path));
  }
  if (version_of(store.db_) != kVersion) migrate(store.db_);
  set_journal_mode(store.db_);
  return store;
}

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
  Statement(
      db_,
      "UPDATE run SET status = ?2, finished = ?3, rounds = (SELECT count(DISTINCT round) FROM "
      "process WHERE process.run_id = run.run_id) WHERE run_id = ?1")
      .bind(run, status, now_utc())
      .run();
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
