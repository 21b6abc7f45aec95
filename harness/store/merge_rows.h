// SPDX-License-Identifier: Apache-2.0
// Rows of one store copied into another, whatever their table: a column called run_id, process_id,
// result_id, case_id or device_id is a row's number in its own store, and everything else is the
// same everywhere.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "harness/store/merge_sources.h"
#include "harness/store/result_checksum.h"
#include "harness/store/sqlite.h"

namespace moegate {

/// A table as the schema states it.
struct TableShape {
  std::string name;
  std::vector<std::string> columns;
  std::vector<std::string> key;  // of its columns

  bool has(const std::string& column) const;
};
using TableShapes = std::map<std::string, TableShape>;

/// Every table of a store but SQLite's own, by its name.
TableShapes shapes_of(Database& db);

/// Numbers of rows in one store and in another.
using Numbers = std::unordered_map<int64_t, int64_t>;
/// The number of a row in the other store. Empty: it is not known there.
using NumberOf = std::function<std::optional<int64_t>(int64_t)>;
/// By the name of the column that holds the number: "run_id".
using NumberOfByColumn = std::map<std::string, NumberOf>;

/// What looks numbers up in a list that outlives it.
NumberOf number_in(const Numbers& numbers);

/// Copies rows of one table, some after others. Its statements are prepared once.
class RowCopy : private MadeRows {
 public:
  /// What becomes of a row whose key is there: an error, or the greater of the two stays, column by
  /// column, so that what is left does not depend on which came first.
  enum class Twice { refused, greater };
  /// Rows that `where` selects. `own`: the column that the other store numbers anew, or "".
  /// `numbers` outlives it.
  RowCopy(Database& in, Database& out, const TableShape& table, const NumberOfByColumn& numbers,
          const std::string& where, Twice twice, const std::string& own = "");

  /// Has all rows get this text in a column.
  void set(const std::string& column, const std::string& text) { set_[place_of(column)] = text; }
  /// To before the first row for these values of ?1, ?2 in `where`.
  template <class... Args>
  RowCopy& of(const Args&... args) {
    rows_.again();
    rows_.bind(args...);
    at_first_ = false;
    std::ranges::fill(from_, kNoNumber);
    return *this;
  }
  /// To the first row, which is still copied. False: there is none.
  bool begin() { return at_first_ = rows_.step(); }
  /// Asked of each row whose numbers are all known: what `own` becomes, 0 for the next number.
  /// Empty: it is not copied.
  using Choose = std::function<std::optional<int64_t>()>;
  /// Copies all rows but those of which a number is not known. Returns how many.
  int64_t put_all(const Choose& choose = nullptr);
  const Statement& row() const { return rows_; }
  int64_t integer(const std::string& column) const;
  int place_of(const std::string& column) const;
  /// The number that a column of the row becomes.
  int64_t number(int place) const { return new_.at(static_cast<size_t>(place)); }

 private:
  bool next() override;
  void give(int i, MadeValue value) override;
  bool find_numbers();

  static constexpr int64_t kNoNumber = std::numeric_limits<int64_t>::min();
  const TableShape& table_;
  std::vector<const NumberOf*> numbers_;  // for each column; null: it is the same everywhere
  std::vector<int64_t> from_, new_;       // what these are in the row, and become
  int own_ = -1;                          // place of the column
  std::map<int, std::string> set_;        // by place
  Statement rows_, insert_;
  const Choose* choose_ = nullptr;
  bool at_first_ = false;  // the first row was stepped to
  int64_t count_ = 0;
};

/// Inserts the row whose `own` is `number`, with other values in some columns, and returns its
/// number there.
int64_t copy_row(Database& in, Database& out, const TableShape& table, const std::string& own,
                 int64_t number, const NumberOfByColumn& numbers,
                 const std::map<std::string, std::string>& instead);

/// A table of what others have in common, each once, and the columns that tell its rows apart.
struct KeptOnce {
  const char* table;
  const char* number;
  std::vector<std::string> name;
  bool or_none = false;  // the number 0 is no row's: nothing was verified, nothing is known
};

/// Rows that are copied when the first row that refers to them is.
class KeptRows {
 public:
  /// Rows of `parts`, which have the column `kept.number`, come along.
  KeptRows(Database& in, Database& out, const TableShapes& shapes, const KeptOnce& kept,
           const std::vector<std::string>& parts, const NumberOfByColumn& numbers);
  /// The other store's number of a row. Empty where the source has none of this number.
  std::optional<int64_t> number_of(int64_t from);
  /// Called with both numbers of a row that the other store had.
  std::function<void(int64_t from, int64_t to)> on_known;

 private:
  const KeptOnce kept_;
  Database& out_;
  Numbers known_;
  RowCopy row_;
  Statement find_;
  std::vector<int> name_;  // places of its columns
  std::vector<RowCopy> parts_;
};

/// Copies runs of one source, each within a transaction of it that its caller began.
class RunRows {
 public:
  RunRows(Source& in, Database& out, const TableShapes& shapes);
  /// Devices with their ceilings, and tables of which no run has a part. A device that stands for
  /// several becomes any of them: it is made anew of those.
  void copy_first();
  const NumberOfByColumn& numbers() const { return numbers_; }
  void copy(int64_t from, int64_t to);

 private:
  using Range = std::pair<int64_t, int64_t>;

  void keep_once(const TableShapes& shapes);
  void keep_parts(const TableShapes& shapes);
  void take_devices();
  void take_ceilings();
  void take_newer_case(int64_t from, int64_t to);
  /// Whether any of its processes was there.
  bool take_processes(int64_t run);
  std::vector<Range> results_of_run();
  void take_results(const std::vector<Range>& ranges, bool any_known);

  Source& in_;
  Database& out_;
  NumberOfByColumn numbers_;
  NumberOf device_;
  Numbers devices_, runs_, processes_, results_;  // the last three: of the run that is copied
  std::list<KeptRows> kept_;                      // numbers_ refers to them
  std::vector<RowCopy> of_store_, of_run_, of_result_, of_new_result_;
  std::vector<RowCopy> process_, result_;       // one each
  std::optional<RowCheck> check_;               // of rows of result_
  int64_t last_process_ = 0, last_result_ = 0;  // of the other store
};

}  // namespace moegate
