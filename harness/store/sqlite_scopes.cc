// SPDX-License-Identifier: Apache-2.0
// What holds of a connection for a while: a transaction, a time limit, leave to write what is its own.
#include "harness/store/sqlite.h"

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

}  // namespace moegate
