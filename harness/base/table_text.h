// SPDX-License-Identifier: Apache-2.0
// This file draws a table as text that fits a terminal.
#pragma once

#include <string>
#include <vector>

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

// Keys of parts, "topk_sort/tokens=8,topk=2", without the parts that all of them share.

struct FoldedKeys {
  std::vector<std::string> keys;  // "…tokens=8…": each run of shared parts is one ellipsis
  std::string shared;  // "topk_sort/tokens=…,topk=2": the first key without what differs
};

/// Nothing to fold (`shared` is empty) where fewer than two keys are given, one of them has no part
/// NAME=VALUE, or they share no part.
FoldedKeys fold_keys(const std::vector<std::string>& keys);

}  // namespace moegate
