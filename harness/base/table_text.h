// SPDX-License-Identifier: Apache-2.0
// A table as text that fits a terminal.
#pragma once

#include <string>

#include "harness/base/table.h"
#include "harness/base/terminal.h"

namespace moegate {

/// The table in columns, a line per row. No line is longer than the screen is wide; a table that
/// is wider is made to fit, by as few of these as do, in this order:
/// - a table of one row: its cells below each other
/// - columns that say the same in all rows are said once above it
/// - parts that all keys of a column share become "…", and are said once above it
/// - headings fold at their spaces
/// - keys that are still long stand above their rows
/// - a last column of text folds, or stands below its row
/// - columns of numbers go from the right, but three, and a line names them
/// - texts are cut in their middle, then more numbers go, then texts
/// Pure: all that it knows of a terminal is `screen`.
std::string render_text(const Table& table, const Screen& screen);

}  // namespace moegate
