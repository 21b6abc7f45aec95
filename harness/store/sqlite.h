// SPDX-License-Identifier: Apache-2.0
// RAII over sqlite3: a connection, a prepared statement, a transaction. Every failure is an
// Error(store) that names the file and SQLite's own message. Bound parameters only.
#pragma once

#include <sqlite3.h>

#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "harness/base/deadline.h"
#include "harness/base/error.h"

namespace moegate {

class Database;
class Statement;

/// Throws Error(store) about this file.
template <class... Args>
[[noreturn]] void refuse_store(const std::string& path, fmt::format_string<Args...> format,
                               Args&&... args) {
  throw Error(Exit::store, path + ": " + fmt::format(format, std::forward<Args>(args)...));
}

class SqlError : public Error {
 public:
  SqlError(int sqlite_code, const std::string& message)
      : Error(Exit::store, message), sqlite_code_(sqlite_code) {}
  /// Whether the statement itself is at fault, rather than the file, the disk or the memory.
  bool is_about_sql() const;

 private:
  int sqlite_code_;
};

/// A column of a row that the program makes: NULL where nothing gives it a value.
class MadeValue {
 public:
  explicit MadeValue(sqlite3_context* context) : context_(context) {}
  void integer(int64_t value) { sqlite3_result_int64(context_, value); }
  void text(std::string_view value);
  /// What a column of another statement's row holds, whatever its type; also of another store's.
  /// It is copied.
  void from(const Statement& row, int column);

 private:
  sqlite3_context* context_;
};

/// Rows that the program makes one by one, as the table made_rows of a connection (serve_made_rows)
/// with columns c0 to c63: one statement inserts them all, which is quicker than one for each.
class MadeRows {
 public:
  virtual ~MadeRows() = default;
  virtual bool next() = 0;  // to the first row, then to the next; false: there is none
  /// Column `i` of the row. A text lasts until next().
  virtual void give(int i, MadeValue value) = 0;

 private:
  friend class Statement;
  friend struct MadeRowsTable;
  std::exception_ptr failure_;
};

class Statement {
 public:
  /// Prepares one statement; text after it that is another statement is an Error(store).
  Statement(Database& db, std::string_view sql);
  /// Binds the arguments to ?1, ?2, …: integers, doubles (NaN and infinity become NULL), strings,
  /// bytes.
  template <class... Args>
  Statement& bind(const Args&... args) {
    int i = 0;
    (bind_at(++i, args), ...);
    return *this;
  }
  /// Binds one argument to ?i, counted from 1.
  void bind_at(int i, int64_t value);
  void bind_at(int i, std::integral auto value) { bind_at(i, int64_t{value}); }
  void bind_at(int i, double value);
  void bind_at(int i, std::string_view value);
  void bind_at(int i, std::span<const std::byte> value);
  /// Binds to ?i what a column of another statement's row holds, whatever its type; also of another
  /// store's. It is copied.
  void bind_from(int i, const Statement& row, int column);
  /// Runs "INSERT … SELECT c0, c1, … FROM made_rows(?1)" with these rows. Throws what they throw.
  void insert(MadeRows& rows);
  /// Resets and forgets what is bound.
  void again() {
    reset();
    sqlite3_clear_bindings(statement_.get());
  }
  /// Binds a parameter written :name; false when the statement has none of that name.
  template <class Arg>
  bool bind_named(const char* name, const Arg& value) {
    const int i = sqlite3_bind_parameter_index(statement_.get(), name);
    if (i != 0) bind_at(i, value);
    return i != 0;
  }
  bool readonly() const { return sqlite3_stmt_readonly(statement_.get()) != 0; }
  bool step();                                       // true while there is a row
  void run();                                        // steps to the end and resets
  void reset() { sqlite3_reset(statement_.get()); }  // to before its first row; what is bound stays
  int columns() const { return sqlite3_column_count(statement_.get()); }
  std::string column_name(int i) const;
  bool is_null(int i) const { return type(i) == SQLITE_NULL; }
  bool is_number(int i) const { return type(i) == SQLITE_INTEGER || type(i) == SQLITE_FLOAT; }
  int64_t integer(int i) const { return sqlite3_column_int64(statement_.get(), i); }
  double real(int i) const;
  std::string text(int i) const { return std::string(view(i)); }
  std::string_view view(int i) const;  // a text, until the next step or reset
  const Database& database() const { return *db_; }

 private:
  friend class MadeValue;
  void check_bound(int rc) const;
  int type(int i) const { return sqlite3_column_type(statement_.get(), i); }

  Database* db_;
  std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement_;
};

class Database {
 public:
  /// `flags` are SQLITE_OPEN_*. The path is never taken for a URI. Waits 10 s for other processes.
  Database(const std::string& path, int flags);
  /// Asks `go_on` how long to wait for processes that hold the store: it is called with the seconds
  /// waited so far, and false ends the wait with an Error(store).
  void wait_while(std::function<bool(double seconds)> go_on) { waiting_->go_on = std::move(go_on); }
  void execute(const std::string& sql);  // one or more statements, no parameters
  /// Runs one statement, with the arguments as ?1, ?2, …
  template <class... Args>
  void run(std::string_view sql, const Args&... args) {
    Statement(*this, sql).bind(args...).run();
  }
  /// The first column of the first row of such a statement; 0 where there is no row.
  template <class... Args>
  int64_t integer(std::string_view sql, const Args&... args) {
    Statement q(*this, sql);
    return q.bind(args...).step() ? q.integer(0) : 0;
  }
  /// What pages of this kind take: page_count, or freelist_count.
  int64_t bytes_of(const std::string& pages) {
    return integer("PRAGMA " + pages) * integer("PRAGMA page_size");
  }
  int64_t last_id() const { return sqlite3_last_insert_rowid(db_.get()); }
  const std::string& path() const { return path_; }
  /// Has messages name it so: a file that gets its name when it is whole.
  void call(const std::string& path) { path_ = path; }
  [[noreturn]] void fail(const std::string& what) const;  // throws SqlError
  /// Throws Error(store): what it holds cannot be what was written.
  [[noreturn]] void damaged(const std::string& what) const;
  /// Throws Error(store) where SQLite finds damage in a table, or a row that its CHECKs forbid.
  void check(const std::string& table);
  sqlite3* handle() const { return db_.get(); }
  Database(Database&&) noexcept = default;
  Database& operator=(Database&&) = delete;

 private:
  struct Waiting {
    std::function<bool(double)> go_on;
    double since = 0;  // of steady_seconds()
  };
  static int wait(void* waiting, int times);

  std::string path_;
  std::unique_ptr<Waiting> waiting_;  // before the connection, which refers to it
  std::unique_ptr<sqlite3, int (*)(sqlite3*)> db_;
};

/// Gives a connection the table made_rows, once.
void serve_made_rows(Database& db);

/// The first `count` bytes of a file, fewer where it is shorter. Takes no lock and looks at no
/// journal. Throws Error(store) where the file cannot be read.
std::string first_bytes(const std::string& path, size_t count);

/// While it lives, a statement that has worked for `seconds` fails with an SqlError about it.
class TimeLimit {
 public:
  TimeLimit(Database& db, double seconds);
  ~TimeLimit();
  TimeLimit(TimeLimit&&) = delete;
  bool over() const { return end_.passed(); }

 private:
  Database& db_;
  const Deadline end_;
};

/// While it lives, a connection that only reads writes what is its own: TEMP tables and views.
class TempWrites {
 public:
  explicit TempWrites(Database& db);
  ~TempWrites();
  TempWrites(TempWrites&&) = delete;

 private:
  Database& db_;
  bool only_reads_;
};

/// BEGIN IMMEDIATE … COMMIT; rolls back unless commit() was reached. With "BEGIN", statements that
/// only read see one state of the store.
class Transaction {
 public:
  explicit Transaction(Database& db, const char* begin = "BEGIN IMMEDIATE");
  ~Transaction();
  void commit();

 private:
  Database& db_;
  bool open_ = true;
};

}  // namespace moegate
