// SPDX-License-Identifier: Apache-2.0
// What holds of a connection for a while: a transaction, a time limit, leave to write what is its own. And the first
// bytes of a file, which need one.
#include "harness/store/sqlite.h"

#include <fmt/format.h>

#include <algorithm>

namespace moegate {

TimeLimit::TimeLimit(Database& db, double seconds)
    : db_(db),
      end_(std::chrono::steady_clock::now() +
           std::chrono::duration_cast<std::chrono::steady_clock::duration>(
               std::chrono::duration<double>(seconds))) {
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
    throw Error(Exit::store, fmt::format("{}: cannot read its first bytes: {}; choose another --db",
                                         path, sqlite3_errstr(rc)));
  }
  return bytes;
}

}  // namespace moegate
