// SPDX-License-Identifier: Apache-2.0
// Only this file and its header call sqlite3_* for reading and writing rows. They know no table.
#include "harness/store/sqlite.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <new>
#include <thread>

namespace moegate {
namespace {

constexpr const char* kMadeRows = "made_rows";
constexpr double kWaitSeconds = 10;  // CI writers are bursty; a transaction takes milliseconds

/// What a person can do about an SQLite error; empty where its own message says enough.
const char* remedy(int code) {
  if (code == SQLITE_READONLY_ROLLBACK || code == SQLITE_READONLY_RECOVERY) {
    return "; a process died while it wrote and left a journal: open the store once where you may "
           "write to it";
  }
  if (code == SQLITE_READONLY_DBMOVED) {
    return "; the file was removed or replaced while it was open, so nothing more is written: "
           "begin again";
  }
  if (code == SQLITE_IOERR_DELETE) return "; check that you may write in its folder";
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return "; another process holds it: wait until it ends, or end it";
    case SQLITE_FULL:
      return "; free disk space";
    case SQLITE_IOERR:
      return "; the disk or the network folder fails: look at the system's log, or choose another "
             "--db";
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
      return "; check that its folder exists and that you may write there";
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
      return "; it is not an intact SQLite database: restore a copy, or choose another --db";
    default:
      return "";
  }
}

}  // namespace

Statement::Statement(Database& db, std::string_view sql)
    : db_(&db), statement_(nullptr, sqlite3_finalize) {
  sqlite3_stmt* raw = nullptr;
  const char* tail = nullptr;
  const int rc =
      sqlite3_prepare_v2(db.handle(), sql.data(), static_cast<int>(sql.size()), &raw, &tail);
  statement_.reset(raw);
  if (rc != SQLITE_OK) db.fail("cannot prepare a statement");
  if (!raw) refuse_store(db.path(), "an empty SQL statement");

  sqlite3_stmt* second = nullptr;
  const auto left = static_cast<int>(sql.data() + sql.size() - tail);
  const int second_rc = sqlite3_prepare_v2(db.handle(), tail, left, &second, nullptr);
  sqlite3_finalize(second);
  if (second || second_rc != SQLITE_OK) {
    refuse_store(db.path(), "more than one SQL statement where one is allowed");
  }
}

void Statement::check_bound(int rc) const {
  if (rc != SQLITE_OK) db_->fail("cannot bind");
}

void Statement::bind_at(int i, int64_t value) {
  check_bound(sqlite3_bind_int64(statement_.get(), i, value));
}

void Statement::bind_at(int i, double value) {
  check_bound(std::isfinite(value) ? sqlite3_bind_double(statement_.get(), i, value)
                                   : sqlite3_bind_null(statement_.get(), i));
}

void Statement::bind_at(int i, std::string_view value) {
  // An empty view may hold a null pointer, which SQLite would take for NULL.
  const char* text = value.empty() ? "" : value.data();
  check_bound(
      sqlite3_bind_text64(statement_.get(), i, text, value.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
}

void Statement::bind_at(int i, std::span<const std::byte> value) {
  const void* bytes = value.empty() ? static_cast<const void*>("") : value.data();
  check_bound(sqlite3_bind_blob64(statement_.get(), i, bytes, value.size(), SQLITE_TRANSIENT));
}

void Statement::bind_from(int i, const Statement& row, int column) {
  sqlite3_value* value = sqlite3_column_value(row.statement_.get(), column);
  check_bound(sqlite3_bind_value(statement_.get(), i, value));
}

void Statement::insert(MadeRows& rows) {
  rows.failure_ = nullptr;
  check_bound(sqlite3_bind_pointer(statement_.get(), 1, &rows, kMadeRows, nullptr));
  try {
    run();
  } catch (...) {
    reset();
    if (rows.failure_) std::rethrow_exception(std::exchange(rows.failure_, nullptr));
    throw;
  }
}

bool Statement::step() {
  const int rc = sqlite3_step(statement_.get());
  if (rc == SQLITE_ROW) return true;
  if (rc != SQLITE_DONE) db_->fail("a statement failed");
  return false;
}

void Statement::run() {
  while (step()) {
  }
  reset();
}

std::string Statement::column_name(int i) const {
  const char* name = sqlite3_column_name(statement_.get(), i);
  return name ? name : "";
}

double Statement::real(int i) const {
  const double value = sqlite3_column_double(statement_.get(), i);
  return value == 0 && is_null(i) ? std::nan("") : value;  // the double of NULL is 0
}

std::string_view Statement::view(int i) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), i));
  if (!text) return {};
  return {text, static_cast<size_t>(sqlite3_column_bytes(statement_.get(), i))};
}

bool SqlError::is_about_sql() const {
  constexpr std::array kOthers = {SQLITE_BUSY,     SQLITE_LOCKED, SQLITE_FULL,   SQLITE_IOERR,
                                  SQLITE_CANTOPEN, SQLITE_NOMEM,  SQLITE_NOTADB, SQLITE_CORRUPT};
  return std::ranges::count(kOthers, sqlite_code_ & 0xff) == 0;
}

void MadeValue::text(std::string_view value) {
  const char* text = value.empty() ? "" : value.data();
  sqlite3_result_text64(context_, text, value.size(), SQLITE_STATIC, SQLITE_UTF8);
}

void MadeValue::from(const Statement& row, int column) {
  sqlite3_result_value(context_, sqlite3_column_value(row.statement_.get(), column));
}

/// SQLite's side of it: an eponymous virtual table (sqlite.org/vtab.html), whose rows the pointer
/// in its hidden column makes. Exceptions do not pass through SQLite.
struct MadeRowsTable {
  static constexpr int kColumns = 64;
  struct Cursor : sqlite3_vtab_cursor {
    MadeRows* rows = nullptr;
    bool at_end = true;
    sqlite3_int64 count = 0;
  };

  static int connect(sqlite3* db, void*, int, const char* const*, sqlite3_vtab** table, char**) {
    std::string sql = "CREATE TABLE made_rows (";
    for (int i = 0; i < kColumns; ++i) sql += fmt::format("c{}, ", i);
    *table = new (std::nothrow) sqlite3_vtab{};
    return *table ? sqlite3_declare_vtab(db, (sql + "rows HIDDEN)").c_str()) : SQLITE_NOMEM;
  }
  static int disconnect(sqlite3_vtab* table) {
    delete table;
    return SQLITE_OK;
  }
  static int best_index(sqlite3_vtab*, sqlite3_index_info* info) {
    for (int i = 0; i < info->nConstraint; ++i) {
      const auto& c = info->aConstraint[i];
      if (c.iColumn != kColumns || !c.usable || c.op != SQLITE_INDEX_CONSTRAINT_EQ) continue;
      info->aConstraintUsage[i].argvIndex = 1;
      info->aConstraintUsage[i].omit = 1;
      return SQLITE_OK;
    }
    return SQLITE_CONSTRAINT;
  }
  static int open(sqlite3_vtab*, sqlite3_vtab_cursor** cursor) {
    *cursor = new (std::nothrow) Cursor{};
    return *cursor ? SQLITE_OK : SQLITE_NOMEM;
  }
  static int close(sqlite3_vtab_cursor* cursor) {
    delete static_cast<Cursor*>(cursor);
    return SQLITE_OK;
  }
  static int filter(sqlite3_vtab_cursor* cursor, int, const char*, int, sqlite3_value** values) {
    auto& c = *static_cast<Cursor*>(cursor);
    c.rows = static_cast<MadeRows*>(sqlite3_value_pointer(values[0], kMadeRows));
    return c.rows ? next(cursor) : SQLITE_ERROR;
  }
  template <class Work>
  static int guarded(MadeRows& rows, const Work& work) {
    try {
      work();
      return SQLITE_OK;
    } catch (...) {
      rows.failure_ = std::current_exception();
      return SQLITE_ERROR;
    }
  }
  static int next(sqlite3_vtab_cursor* cursor) {
    auto& c = *static_cast<Cursor*>(cursor);
    ++c.count;
    return guarded(*c.rows, [&] { c.at_end = !c.rows->next(); });
  }
  static int at_end(sqlite3_vtab_cursor* cursor) { return static_cast<Cursor*>(cursor)->at_end; }
  static int column(sqlite3_vtab_cursor* cursor, sqlite3_context* context, int i) {
    MadeRows& rows = *static_cast<Cursor*>(cursor)->rows;
    return guarded(rows, [&] { rows.give(i, MadeValue(context)); });
  }
  static int row_id(sqlite3_vtab_cursor* cursor, sqlite3_int64* id) {
    *id = static_cast<Cursor*>(cursor)->count;
    return SQLITE_OK;
  }
};

void serve_made_rows(Database& db) {
  static constexpr sqlite3_module module = {
      .xConnect = MadeRowsTable::connect,  // without xCreate: it is there by its name
      .xBestIndex = MadeRowsTable::best_index,
      .xDisconnect = MadeRowsTable::disconnect,
      .xOpen = MadeRowsTable::open,
      .xClose = MadeRowsTable::close,
      .xFilter = MadeRowsTable::filter,
      .xNext = MadeRowsTable::next,
      .xEof = MadeRowsTable::at_end,
      .xColumn = MadeRowsTable::column,
      .xRowid = MadeRowsTable::row_id,
  };
  if (sqlite3_create_module(db.handle(), "made_rows", &module, nullptr) != SQLITE_OK) {
    db.fail("cannot serve rows");
  }
}

int Database::wait(void* waiting, int times) {
  auto& w = *static_cast<Waiting*>(waiting);
  if (times == 0) w.since = steady_seconds();
  bool go_on = false;
  try {
    go_on = w.go_on(steady_seconds() - w.since);
  } catch (...) {
    // SQLite is no place for exceptions to pass through.
  }
  constexpr auto kQuick = std::chrono::milliseconds(2), kSlow = std::chrono::milliseconds(50);
  constexpr int kQuickTimes = 50;
  if (go_on) std::this_thread::sleep_for(times < kQuickTimes ? kQuick : kSlow);
  return go_on ? 1 : 0;
}

Database::Database(const std::string& path, int flags)
    : path_(path), waiting_(std::make_unique<Waiting>()), db_(nullptr, sqlite3_close) {
  // Once, before all connections: SQLite would count each allocation under a lock that they share.
  [[maybe_unused]] static const int uncounted = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  wait_while([](double seconds) { return seconds < kWaitSeconds; });
  sqlite3* raw = nullptr;
  // Some libraries take names that start so for URIs, whose parameters mean much.
  const std::string name = path.starts_with("file:") ? "./" + path : path;
  // One thread at a time uses a connection (lanes take turns): no lock for each column that
  // is read.
  const int rc = sqlite3_open_v2(name.c_str(), &raw, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  db_.reset(raw);  // also after a failure: SQLite keeps the message there
  if (rc != SQLITE_OK) fail("cannot open the store");
  sqlite3_extended_result_codes(raw, 1);
  sqlite3_busy_handler(raw, wait, waiting_.get());
  // Stores are mailed around and opened from CI artifacts: trust nothing that their schema says.
  sqlite3_db_config(raw, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_ENABLE_FKEY, 1, nullptr);
  // With one argument it tells an address of this process; a report has no use for it.
  for (const int arguments : {1, 2}) {
    sqlite3_create_function(
        raw, "fts3_tokenizer", arguments, SQLITE_UTF8 | SQLITE_DIRECTONLY, nullptr,
        [](sqlite3_context* context, int, sqlite3_value**) {
          sqlite3_result_error(context, "fts3_tokenizer is off", -1);
        },
        nullptr, nullptr);
  }
}

void Database::execute(const std::string& sql) {
  if (sqlite3_exec(db_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
    fail("a statement failed");
  }
}

void Database::fail(const std::string& what) const {
  const int code = db_ ? sqlite3_errcode(db_.get()) : SQLITE_NOMEM;
  const char* message = db_ ? sqlite3_errmsg(db_.get()) : "out of memory";
  throw SqlError(code, fmt::format("{}: {}: {}{}", path_, what, message, remedy(code)));
}

void Database::damaged(const std::string& what) const {
  refuse_store(path_, "is damaged: {}; restore a copy", what);
}

void Database::check(const std::string& table) {
  Statement q(*this, fmt::format("PRAGMA quick_check({})", table));
  if (q.step() && q.text(0) != "ok") damaged(fmt::format("table {}: {}", table, q.text(0)));
}

// What holds of a connection for a while: a transaction, a time limit, leave to write what is its
// own. And the first bytes of a file, which need one.

TimeLimit::TimeLimit(Database& db, double seconds) : db_(db), end_(seconds) {
  constexpr int kSteps = 10000;  // of SQLite's machine: microseconds
  sqlite3_progress_handler(
      db.handle(), kSteps,
      [](void* limit) { return static_cast<TimeLimit*>(limit)->over() ? 1 : 0; }, this);
}

TimeLimit::~TimeLimit() {
  sqlite3_progress_handler(db_.handle(), 0, nullptr, nullptr);
}

TempWrites::TempWrites(Database& db) : db_(db), only_reads_(db.integer("PRAGMA query_only") != 0) {
  if (only_reads_) db_.execute("PRAGMA query_only = 0");
}

TempWrites::~TempWrites() {
  if (only_reads_) sqlite3_exec(db_.handle(), "PRAGMA query_only = 1", nullptr, nullptr, nullptr);
}

Transaction::Transaction(Database& db, const char* begin) : db_(db) {
  db_.execute(begin);
}

Transaction::~Transaction() {
  // SQLite has rolled back by itself after some errors; then this one fails, which is no news.
  if (open_) sqlite3_exec(db_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void Transaction::commit() {
  db_.execute("COMMIT");
  open_ = false;
}

std::string first_bytes(const std::string& path, size_t count) {
  // Through SQLite's own file handle: closing another one would drop every lock that this process
  // holds on the file.
  Database db(path, SQLITE_OPEN_READONLY);
  sqlite3_file* file = nullptr;
  sqlite3_file_control(db.handle(), "main", SQLITE_FCNTL_FILE_POINTER, &file);
  sqlite3_int64 size = 0;
  int rc = file->pMethods->xFileSize(file, &size);
  std::string bytes(std::min(count, static_cast<size_t>(size)), '\0');
  if (rc == SQLITE_OK && !bytes.empty()) {
    rc = file->pMethods->xRead(file, bytes.data(), static_cast<int>(bytes.size()), 0);
  }
  if (rc != SQLITE_OK) {
    refuse_store(path, "cannot read its first bytes: {}; choose another --db", sqlite3_errstr(rc));
  }
  return bytes;
}

}  // namespace moegate
