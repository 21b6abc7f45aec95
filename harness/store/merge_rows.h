// SPDX-License-Identifier: Apache-2.0
// Rows of one store copied into another, whatever their table: a column called run_id, process_id, result_id,
// case_id or device_id is a row's number in its own store, and everything else is the same everywhere.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "harness/store/sqlite.h"

namespace moegate {

/// A table as the schema states it.
struct TableShape {
  std::string name;
  std::vector<std::string> columns;
  std::vector<std::string> key;  // of its columns
};

/// Every table of a store but SQLite's own, by its name.
std::map<std::string, TableShape> shapes_of(Database& db);

/// Numbers of rows in one store and in another.
using Numbers = std::unordered_map<int64_t, int64_t>;
/// By the name of the column that holds them: "run_id".
using NumbersByColumn = std::map<std::string, Numbers>;

/// Copies every row of a table for which all its numbers are known. Of two rows with one key that differ the greater
/// one stays, column by column, so that what is left does not depend on which came first.
void copy_rows(Database& in, Database& out, const TableShape& table,
               const NumbersByColumn& numbers);

/// The same of a table whose column `own` the other store numbers anew, and in which a row is known by the columns
/// `name`: one that is there already stays as it is. Where `numbers` has `own`, of these rows only. Returns the rows'
/// numbers there.
Numbers copy_named_rows(Database& in, Database& out, const TableShape& table,
                        const std::string& own, const std::vector<std::string>& name,
                        const NumbersByColumn& numbers);

/// Inserts the row whose `own` is `number`, with other values in some columns, and returns its number there.
int64_t copy_row(Database& in, Database& out, const TableShape& table, const std::string& own,
                 int64_t number, const NumbersByColumn& numbers,
                 const std::map<std::string, std::string>& instead);

}  // namespace moegate
