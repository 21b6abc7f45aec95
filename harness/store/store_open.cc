// SPDX-License-Identifier: Apache-2.0
// This file opens a store (what is ours, its version, its journal) and locks a run.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <boost/endian/conversion.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "harness/base/escape.h"
#include "harness/base/notes.h"
#include "harness/base/subprocess.h"
#include "harness/store/rows.h"
#include "harness/store/store.h"
#include "store_sql.h"

namespace moegate {
namespace {

// As schema.sql sets them. A program before 0.2.0 made stores of several versions under the
// other id.
constexpr int64_t kApplicationId = 0x4D6F4547, kEarlierId = 0x4D6F4550;
constexpr int64_t kVersion = 2;

// Older libraries can corrupt a WAL with several writers (fixed in 3.51.3).
constexpr int kFirstSafeWal = 3051003;

[[noreturn]] void refuse_other(const std::string& path, int64_t application, int64_t version) {
  if (application == kEarlierId) {
    refuse_store(path,
                 "a moegate before 0.2.0 wrote this store (version {}), and this program cannot "
                 "read it; choose another --db, or use the program of the commit that wrote it "
                 "(table run, column git_sha)",
                 version);
  }
  refuse_store(
      path, "is an SQLite database of another program (application_id {:#x}); choose another --db",
      application);
}

/// False for an empty database. Throws for what is neither that nor a store of kVersion.
bool is_store(Database& db) {
  std::optional<Transaction> reading;  // of one state: another process may be making it a store
  if (sqlite3_get_autocommit(db.handle()) != 0) reading.emplace(db, "BEGIN");
  // This one first: it looks at the file, and so begins what BEGIN only announces.
  const int64_t objects = db.integer("SELECT count(*) FROM sqlite_schema");
  const int64_t application = db.integer("PRAGMA application_id");
  const int64_t version = db.integer("PRAGMA user_version");
  if (application == 0 && version == 0 && objects == 0) return false;
  if (application != kApplicationId) refuse_other(db.path(), application, version);
  if (version < 1) {
    refuse_store(db.path(),
                 "the store says that its version is {}, so it is damaged; restore a copy, or "
                 "choose another --db",
                 version);
  }
  if (version > kVersion) {
    refuse_store(db.path(),
                 "this store has version {}, and this program knows versions up to {}; use the "
                 "moegate that wrote it, or a newer moegate",
                 version, kVersion);
  }
  return true;
}

/// A statement without comments and white space, but for what is quoted: these may differ.
std::string essence_of(std::string_view sql) {
  std::string text;
  char quote = 0;
  for (size_t i = 0; i < sql.size(); ++i) {
    const char c = sql[i];
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (sql.substr(i).starts_with("--")) {
      i = std::min(sql.find('\n', i), sql.size());
      continue;
    } else if (c == ' ' || c == '\n') {
      continue;
    } else if (c == '\'' || c == '"') {
      quote = c;
    }
    text += c;
  }
  return text;
}

/// Stores of version 2 that were made before `moegate profile compile` take no run of it; all else
/// of them is the same (Store::takes()).
std::string as_now(std::string essence) {
  constexpr std::string_view kBefore = "IN('measure','counters'";
  const size_t at = essence.find(kBefore);
  if (at != std::string::npos)
    essence.replace(at, kBefore.size(), "IN('measure','compile','counters'");
  return essence;
}

using Schema = std::map<std::pair<std::string, std::string>, std::string>;

/// What a database holds by type and name, with its text as far as that says something. Statistics
/// are SQLite's own.
Schema schema_of(Database& db) {
  Statement q(db,
              "SELECT type, name, tbl_name, ifnull(sql, '') FROM sqlite_schema "
              "WHERE type != 'table' OR name NOT IN ('sqlite_stat1', 'sqlite_stat4')");
  Schema schema;
  while (q.step()) {
    schema.emplace(std::pair(q.text(0), q.text(1)),
                   q.text(2) + ": " + as_now(essence_of(q.text(3))));
  }
  return schema;
}

/// What schema.sql makes. To make it takes longer than all else at opening, so it is kept.
const Schema& schema_of_stores() {
  static const Schema schema = [] {
    Database made(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    made.execute(kSchema);
    return schema_of(made);
  }();
  return schema;
}

/// Throws for what schema.sql does not make: a trigger or a view that somebody planted would run
/// with whatever we write and read.
void check_schema(Database& db) {
  const Schema &expected = schema_of_stores(), is = schema_of(db);
  const auto refuse = [&](const auto& what, const char* how) {
    refuse_store(
        db.path(),
        "{} {} '{}'; somebody has changed its schema: restore a copy, or choose another --db", how,
        what.first.first, one_line(what.first.second));
  };
  for (const auto& one : is) {
    const auto at = expected.find(one.first);
    if (at == expected.end()) refuse(one, "the store has an unknown object:");
    if (at->second != one.second) refuse(one, "the store has a changed object:");
  }
  for (const auto& one : expected) {
    if (!is.contains(one.first)) refuse(one, "the store lacks an object:");
  }
}

/// Makes an empty database a store, in one exclusive transaction: another process may do the same
/// to the file.
void make_store(Database& db) {
  Transaction making(db, "BEGIN EXCLUSIVE");
  if (!is_store(db)) {
    db.execute(kSchema);
    analyze(db);
  }
  making.commit();
}

/// A result may have cost minutes: its writer waits for readers, which hold a store while
/// they read.
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

/// Makes a store of version 1 one of this version, in one transaction: version 2 has what the
/// processes ran with. What a reader of an older store sees stays as it was.
void convert(Database& db) {
  if (sqlite3_db_readonly(db.handle(), "main") == 1) {
    refuse_store(db.path(),
                 "this store has version 1 and is to be converted to version {}, but it is "
                 "read-only; copy it to where you may write",
                 kVersion);
  }
  wait_patiently(db);
  Transaction writing(db);
  if (db.integer("PRAGMA user_version") == kVersion) return;  // another process was first
  Database made(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  made.execute(kSchema);
  db.execute("ALTER TABLE process ADD COLUMN environment_id INTEGER NOT NULL DEFAULT 0");
  Statement tables(made,
                   "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name IN "
                   "('environment', 'environment_item') ORDER BY name");
  while (tables.step()) db.execute(tables.text(0));
  db.execute(fmt::format("PRAGMA user_version = {}", kVersion));
  check_schema(db);
  writing.commit();
}

/// Throws for a file that is no store of ours. Looks at nothing but its first bytes: a connection
/// that may write would roll back the journal of another program's database, and one that may not
/// cannot read a store of ours whose writer died.
void check_head(const std::string& path) {
  constexpr std::string_view kMagic("SQLite format 3\0", 16);
  constexpr size_t kHead = 100;
  const std::string head = first_bytes(path, kHead);
  if (head.empty()) return;  // a new store
  if (head.size() < kHead || !head.starts_with(kMagic)) {
    refuse_store(path,
                 "file is not a database; it is no intact SQLite database: choose another --db");
  }
  const auto number_at = [&](size_t at) -> int64_t {
    return boost::endian::load_big_u32(reinterpret_cast<const unsigned char*>(&head[at]));
  };
  constexpr size_t kVersionAt = 60, kApplicationAt = 68;
  const int64_t application = number_at(kApplicationAt);
  if (application == kApplicationId) return;
  if (application != 0) refuse_other(path, application, number_at(kVersionAt));
  Database probe(path, SQLITE_OPEN_READONLY);  // nothing yet, or of a program that sets no id
  is_store(probe);
}

void check_file(const std::string& path, Store::Mode mode) {
  // SQLite would take it for a database in memory: hours of measuring, and no store.
  if (path.empty() || path.front() == ':') {
    give_up(Exit::usage, "--db '{}' names no file; give the path of one", path);
  }
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    refuse_store(path, "is a folder; --db names a file");
  }
  if (!std::filesystem::exists(path, ignored)) {
    if (mode == Store::Mode::write) return;
    refuse_store(path, "no such store; `moegate run --suite S --db {}` makes one", path);
  }
  if (!std::filesystem::is_regular_file(path, ignored)) {
    refuse_store(path, "this is not a regular file; choose another --db");
  }
  check_head(path);
}

}  // namespace

void analyze(Database& db) {
  db.execute("PRAGMA analysis_limit = 400");
  // Of a table without an index SQLite counts all rows, whatever the limit: of samples, gigabytes.
  const auto tables = values_of<std::string>(
      db,
      "SELECT name FROM sqlite_schema t WHERE type = 'table' AND name NOT LIKE 'sqlite_%' "
      "AND (sql LIKE '%WITHOUT ROWID%' OR EXISTS (SELECT 1 FROM sqlite_schema i WHERE "
      "i.type = 'index' AND i.tbl_name = t.name))");
  for (const std::string& table : tables) db.execute(fmt::format("ANALYZE \"{}\"", table));
}

bool is_empty_store(const std::string& path) {
  check_file(path, Store::Mode::read);
  Database db(path, SQLITE_OPEN_READWRITE);
  return !is_store(db);
}

Store Store::open(const std::string& path, Mode mode) {
  check_file(path, mode);
  // Read-write for readers too: what a writer that died has left can only be rolled back so.
  const int create = mode == Mode::write ? SQLITE_OPEN_CREATE : 0;
  Store store{Database(path, SQLITE_OPEN_READWRITE | create)};
  store.db_.execute("PRAGMA cache_size = -65536");  // KiB: a run of 10^5 results is read and sorted
  if (is_store(store.db_) && store.db_.integer("PRAGMA user_version") < kVersion)
    convert(store.db_);
  if (mode == Mode::read) store.db_.execute("PRAGMA query_only = 1");
  Transaction reading(store.db_, "BEGIN");  // another process may be making it
  const bool is_made = is_store(store.db_);
  if (is_made) check_schema(store.db_);
  reading.commit();
  if (mode == Mode::read) {
    if (is_made) return store;
    refuse_store(path, "is an empty file, no store; `moegate run --db {}` fills it", path);
  }
  // SQLite falls back to read-only silently when the file's permissions say so.
  if (sqlite3_db_readonly(store.db_.handle(), "main") == 1) {
    refuse_store(path, "is read-only; copy it, or choose another --db");
  }
  wait_patiently(store.db_);
  if (!is_made) make_store(store.db_);
  const bool wal = sqlite3_libversion_number() >= kFirstSafeWal;
  store.db_.run(wal ? "PRAGMA journal_mode = WAL" : "PRAGMA journal_mode = DELETE");
  return store;
}

RunLock::RunLock(const std::string& db, int64_t run) {
  // Not the store itself: closing another handle of it would drop SQLite's own locks.
  const std::string path = db + ".lock";
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
  struct flock byte {};
  byte.l_type = F_WRLCK;
  byte.l_whence = SEEK_SET;
  byte.l_start = run;
  byte.l_len = 1;
  if (fd_ >= 0 && ::fcntl(fd_, F_OFD_SETLK, &byte) == 0) return;
  const int why = errno;
  if (fd_ >= 0) ::close(fd_);
  if (why == EAGAIN || why == EACCES) {
    usage_error(
        "{}: run {} is being measured by another process; wait until it has ended, or end it", db,
        run);
  }
  refuse_store(path, "cannot be locked: {}; check that you may write there", std::strerror(why));
}

RunLock::~RunLock() {
  ::close(fd_);
}

}  // namespace moegate
