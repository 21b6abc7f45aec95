// SPDX-License-Identifier: Apache-2.0
// Opening a store: what is ours, its version, its journal.
#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "harness/base/escape.h"
#include "harness/base/interrupt.h"
#include "harness/base/notes.h"
#include "harness/store/store.h"
#include "store_sql.h"  // made by the build from schema_*.sql

namespace moegate {
namespace {

constexpr int64_t kApplicationId = 0x4D6F4550;  // "MoEP"

// kMigrations: schema versions in order; opening a store applies those it lacks. Append-only: a
// version that exists never changes, because stores of it exist.
constexpr auto kVersion = static_cast<int64_t>(kMigrations.size());

// The oldest version that is read as it is: since then no table or view has changed.
constexpr int64_t kReadable = 9;

// Older libraries can corrupt a WAL with several writers (fixed in 3.51.3).
constexpr int kFirstSafeWal = 3051003;

[[noreturn]] void refuse_foreign(const std::string& path, int64_t application) {
  throw Error(Exit::store,
              fmt::format("{}: is an SQLite database of another program (application_id {:#x}); "
                          "choose another --db",
                          path, application));
}

struct Head {
  int64_t application, version, objects;
};

/// Of one state of the file: another process may be making it a store.
Head head_of(Database& db) {
  std::optional<Transaction> reading;
  if (sqlite3_get_autocommit(db.handle()) != 0) reading.emplace(db, "BEGIN");
  // This one first: it looks at the file, and so begins what BEGIN only announces.
  const int64_t objects = db.integer("SELECT count(*) FROM sqlite_schema");
  return {db.integer("PRAGMA application_id"), db.integer("PRAGMA user_version"), objects};
}

/// 0 for an empty database, else its version. Throws for a file that is not a store of ours.
int64_t version_of(Database& db) {
  const auto [application, version, objects] = head_of(db);
  if (application == 0 && version == 0 && objects == 0) return 0;
  if (application != kApplicationId) refuse_foreign(db.path(), application);
  if (version < 1) {
    throw Error(Exit::store,
                fmt::format("{}: says that it is a store of version {}: it is damaged; "
                            "restore a copy, or choose another --db",
                            db.path(), version));
  }
  if (version > kVersion) {
    throw Error(Exit::store, fmt::format("{}: is a store of version {}, this program knows up to "
                                         "{}; use the moegate that wrote it, or a newer one",
                                         db.path(), version, kVersion));
  }
  return version;
}

using Schema = std::map<std::pair<std::string, std::string>, std::string>;

/// What a database holds by type and name, with its text as far as that says something. Older libraries wrote a
/// migrated text with other quotes. Statistics are SQLite's own.
Schema schema_of(Database& db) {
  Statement q(db,
              "SELECT type, name, tbl_name || ': ' || ifnull(sql, '') FROM sqlite_schema "
              "WHERE type != 'table' OR name NOT IN ('sqlite_stat1', 'sqlite_stat4')");
  Schema schema;
  while (q.step()) {
    std::string text = q.text(2);
    std::erase_if(text, [](char c) { return c == ' ' || c == '\n' || c == '"'; });
    schema.emplace(std::pair(q.text(0), q.text(1)), std::move(text));
  }
  return schema;
}

/// What the statements of a version make. They take longer than all else at opening, so each version's are kept.
const Schema& schema_of_version(int64_t version) {
  static std::mutex mutex;
  static std::map<int64_t, Schema> known;
  const std::lock_guard lock(mutex);
  auto at = known.find(version);
  if (at == known.end()) {
    Database made(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    for (int64_t v = 0; v < version; ++v) made.execute(kMigrations.at(static_cast<size_t>(v)));
    at = known.emplace(version, schema_of(made)).first;
  }
  return at->second;
}

/// Throws for what the statements of its version do not make: a trigger or a view that somebody planted would run
/// with whatever we write and read.
void check_schema(Database& db, int64_t version) {
  if (version == 0) return;
  const Schema &expected = schema_of_version(version), is = schema_of(db);
  const auto refuse = [&](const auto& what, const char* how) {
    throw Error(Exit::store,
                fmt::format("{}: {} {} '{}'; somebody has changed its schema: restore a copy, or "
                            "choose another --db",
                            db.path(), how, what.first.first, one_line(what.first.second)));
  };
  for (const auto& one : is) {
    const auto at = expected.find(one.first);
    if (at == expected.end()) refuse(one, "has what no store has:");
    if (at->second != one.second) refuse(one, "has in other words than a store's:");
  }
  for (const auto& one : expected) {
    if (!is.contains(one.first)) refuse(one, "lacks what every store has:");
  }
}

/// Brings the store to kVersion inside one exclusive transaction; safe against a second process
/// that opens the same new file at the same time.
void migrate(Database& db) {
  db.execute("BEGIN EXCLUSIVE");
  try {
    for (int64_t v = version_of(db); v < kVersion; ++v) {
      db.execute(kMigrations.at(static_cast<size_t>(v)));
    }
    analyze(db);
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

/// The application_id in the head of an SQLite file.
int64_t application_of(const std::string& head) {
  int64_t id = 0;
  for (const char byte : head.substr(68, 4)) id = id << 8 | static_cast<unsigned char>(byte);
  return id;
}

/// Throws for a file that is no store of ours. Looks at nothing but its first bytes: a connection
/// that may write would roll back the journal of another program's database, and one that may not
/// cannot read a store of ours whose writer died.
void check_head(const std::string& path) {
  constexpr std::string_view kMagic("SQLite format 3", 16);  // with its zero
  constexpr size_t kHead = 100;
  const std::string head = first_bytes(path, kHead);
  if (head.empty()) return;  // a new store
  if (head.size() < kHead || !head.starts_with(kMagic)) {
    throw Error(Exit::store, fmt::format("{}: file is not a database; it is no intact SQLite "
                                         "database: choose another --db",
                                         path));
  }
  const int64_t application = application_of(head);
  if (application == kApplicationId) return;
  if (application != 0) refuse_foreign(path, application);
  Database probe(path, SQLITE_OPEN_READONLY);  // nothing yet, or of a program that sets no id
  version_of(probe);
}

void check_file(const std::string& path, Store::Mode mode) {
  // SQLite would take it for a database in memory: hours of measuring, and no store.
  if (path.empty() || path.front() == ':') {
    throw Error(Exit::usage, fmt::format("--db '{}' names no file; give the path of one", path));
  }
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw Error(Exit::store, fmt::format("{}: is a folder; --db names a file", path));
  }
  if (!std::filesystem::exists(path, ignored)) {
    if (mode == Store::Mode::write) return;
    throw Error(Exit::store,
                fmt::format("{}: no such store; `moegate run --db {}` makes one", path, path));
  }
  if (!std::filesystem::is_regular_file(path, ignored)) {
    throw Error(Exit::store, fmt::format("{}: is no regular file; choose another --db", path));
  }
  check_head(path);
}

/// A result may have cost minutes: its writer waits for readers, which hold a store while they read.
void wait_patiently(Database& db) {
  constexpr double kNote = 2, kEnough = 600, kShort = 10;  // seconds
  db.wait_while([path = db.path(), said = false, enough = kEnough](double seconds) mutable {
    if (seconds >= kNote && !said) {
      say("{}: another process holds it; waiting up to {:g} min\n", path, enough / 60);
    }
    said = seconds >= kNote;
    const bool go_on = seconds < (InterruptGuard::interrupted() ? kShort : enough);
    if (!go_on) enough = kShort;  // whoever holds it for so long will not let go
    return go_on;
  });
}

}  // namespace

void analyze(Database& db) {
  db.execute("PRAGMA analysis_limit = 400");
  // Of a table without an index SQLite counts all rows, whatever the limit: of samples, gigabytes.
  Statement q(db,
              "SELECT name FROM sqlite_schema t WHERE type = 'table' AND name NOT LIKE 'sqlite_%' "
              "AND (sql LIKE '%WITHOUT ROWID%' OR EXISTS (SELECT 1 FROM sqlite_schema i WHERE "
              "i.type = 'index' AND i.tbl_name = t.name))");
  std::vector<std::string> tables;
  while (q.step()) tables.push_back(q.text(0));
  q.reset();
  for (const std::string& table : tables) db.execute(fmt::format("ANALYZE \"{}\"", table));
}

bool is_empty_store(const std::string& path) {
  check_file(path, Store::Mode::read);
  Database db(path, SQLITE_OPEN_READWRITE);
  return version_of(db) == 0;
}

Store Store::open(const std::string& path, Mode mode) {
  check_file(path, mode);
  // Read-write for readers too: what a writer that died has left can only be rolled back so.
  const int create = mode == Mode::write ? SQLITE_OPEN_CREATE : 0;
  Store store{Database(path, SQLITE_OPEN_READWRITE | create)};
  store.db_.execute("PRAGMA cache_size = -65536");  // KiB: a run of 10^5 results is read and sorted
  if (mode == Mode::read) store.db_.execute("PRAGMA query_only = 1");
  Transaction reading(store.db_, "BEGIN");  // another process may be migrating it
  const int64_t version = version_of(store.db_);
  check_schema(store.db_, version);
  reading.commit();
  if (mode == Mode::read) {
    if (version < kReadable) {
      const auto [what, command, does] =
          version == 0 ? std::tuple("an empty file, no store", "run --db", "fills")
                       : std::tuple("a store of an older version", "merge", "upgrades");
      throw Error(Exit::store,
                  fmt::format("{0}: is {1}; `moegate {2} {0}` {3} it", path, what, command, does));
    }
    return store;
  }
  // SQLite falls back to read-only silently when the file's permissions say so.
  if (sqlite3_db_readonly(store.db_.handle(), "main") == 1) {
    throw Error(Exit::store,
                fmt::format("{}: is read-only; copy it, or choose another --db", path));
  }
  wait_patiently(store.db_);
  if (version != kVersion) migrate(store.db_);
  set_journal_mode(store.db_);
  return store;
}

}  // namespace moegate
