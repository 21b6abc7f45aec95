// SPDX-License-Identifier: Apache-2.0
#include "harness/base/table_layout.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

#include "harness/base/escape.h"
#include "harness/base/key_fold.h"
#include "harness/base/table_view.h"
#include "harness/base/terminal.h"

namespace moegate {
namespace {

constexpr size_t kFoldedLeast = 30;  // characters that a folded column has at least
constexpr size_t kLongKey = 20;      // characters from which a key is better above its rows
constexpr size_t kIndent = 2;        // of rows below their key

size_t widest_word(const std::string& text) {
  size_t widest = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    widest = std::max(widest, display_width(text.substr(at, end - at)));
    at = end + 1;
  }
  return widest;
}

size_t cells_width(const Table& table, size_t column) {
  size_t width = 0;
  for (const auto& row : table.rows) width = std::max(width, display_width(row[column].text));
  return width;
}

size_t width_of(const TableLayout& layout) {
  const size_t n = layout.table.columns.size();
  size_t width = n > 0 ? (n - 1) * kColumnGap : 0;
  for (size_t i = 0; i < n; ++i) width += column_width(layout, i);
  return width + layout.indent;
}

void drop(Table& table, const std::function<bool(size_t)>& unwanted) {
  std::vector<size_t> kept;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    if (!unwanted(i)) kept.push_back(i);
  }
  table = with_columns(table, kept);
}

/// What has a tone stays in sight.
bool says_the_same(const Table& table, size_t column) {
  const auto& first = table.rows.front()[column];
  return std::ranges::all_of(table.rows, [&](const auto& row) {
    return row[column].text == first.text && row[column].tone == Tone::plain;
  });
}

void say_constants_above(TableLayout& layout) {
  const Table table = layout.table;
  if (table.rows.size() < 2) return;
  std::vector<std::string> said, empty;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    if (!says_the_same(table, i)) continue;
    const std::string& text = table.rows.front()[i].text;
    if (text.empty()) {
      empty.push_back(table.columns[i]);
    } else {
      said.push_back(table.columns[i] + " " + text);
    }
  }
  if (said.size() + empty.size() == table.columns.size()) return;
  if (!said.empty()) layout.above.push_back(fmt::format("all rows: {}", fmt::join(said, ", ")));
  if (!empty.empty()) layout.above.push_back(fmt::format("empty: {}", fmt::join(empty, ", ")));
  drop(layout.table, [&](size_t i) { return says_the_same(table, i); });
}

void fold_key_columns(TableLayout& layout) {
  Table& table = layout.table;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    std::vector<std::string> keys;
    for (const auto& row : table.rows) keys.push_back(row[i].text);
    const FoldedKeys folded = fold_keys(keys);
    if (folded.shared.empty()) continue;
    for (size_t r = 0; r < keys.size(); ++r) table.rows[r][i].text = folded.keys[r];
    layout.above.push_back(table.columns[i] + ": " + folded.shared);
  }
}

/// Takes a column out of the table.
TableLayout::Aside set_aside(Table& table, size_t column) {
  TableLayout::Aside aside{table.columns[column], {}};
  for (const auto& row : table.rows) aside.texts.push_back(row[column].text);
  drop(table, [column](size_t i) { return i == column; });
  return aside;
}

/// The first column of long keys, which tells the rows apart best when it can be read whole.
void group_by_key(TableLayout& layout) {
  const Table& table = layout.table;
  for (size_t i = 0; i < table.columns.size() && table.columns.size() > 1; ++i) {
    const bool keys = std::ranges::all_of(
        table.rows, [i](const auto& row) { return row[i].text.find('=') != std::string::npos; });
    if (!keys || table.rows.empty() || cells_width(table, i) < kLongKey) continue;
    layout.group = set_aside(layout.table, i);
    layout.indent = kIndent;
    return;
  }
}

void fold_last_column(TableLayout& layout) {
  const Table& table = layout.table;
  const size_t last = table.columns.size() - 1;
  if (last == 0 || has_numbers(table, last) || cells_width(table, last) < kFoldedLeast) return;
  const size_t others = width_of(layout) - column_width(layout, last);
  if (others + kFoldedLeast <= layout.width) {
    layout.last_width = layout.width - others;
  } else {
    layout.below = set_aside(layout.table, last);
  }
}

bool has_tone(const Table& table, size_t column) {
  return std::ranges::any_of(table.rows,
                             [&](const auto& row) { return row[column].tone != Tone::plain; });
}

/// From the right, while more than so many of the kind are left. What has a tone stays.
void leave_out(TableLayout& layout, bool numbers, size_t kept) {
  while (!fits(layout)) {
    std::vector<size_t> all;
    for (size_t i = 0; i < layout.table.columns.size(); ++i) {
      const bool of_kind = has_numbers(layout.table, i) == numbers;
      if (of_kind && !has_tone(layout.table, i)) all.push_back(i);
    }
    if (all.size() <= kept) return;
    layout.not_shown.insert(layout.not_shown.begin(), layout.table.columns[all.back()]);
    drop(layout.table, [&](size_t i) { return i == all.back(); });
    layout.last_width = 0;
  }
}

/// The widest text first, none to less than so many characters.
void shorten_texts(TableLayout& layout, size_t least) {
  Table& table = layout.table;
  while (!fits(layout)) {
    size_t widest = 0, width = 0;
    for (size_t i = 0; i < table.columns.size(); ++i) {
      const size_t cells = has_numbers(table, i) ? 0 : cells_width(table, i);
      if (cells > width) widest = i, width = cells;
    }
    if (width <= least) return;
    const size_t excess = width_of(layout) - layout.width;
    const size_t to = std::max({least, width - std::min(width, excess), width - width / 8 - 1});
    for (auto& row : table.rows) row[widest].text = shortened(row[widest].text, to);
  }
}

void make_fit(TableLayout& layout) {
  constexpr size_t kNumbersKept = 3, kTextsKept = 2, kLong = 16, kReadable = 10, kLeast = 8;
  const std::function<void()> steps[] = {
      [&] { say_constants_above(layout); },
      [&] { fold_key_columns(layout); },
      [&] { layout.headings_fold = true; },
      [&] { group_by_key(layout); },
      [&] { fold_last_column(layout); },
      [&] { leave_out(layout, true, kNumbersKept); },
      [&] { shorten_texts(layout, kLong); },
      [&] { shorten_texts(layout, kReadable); },
      [&] { leave_out(layout, true, 1); },
      [&] { shorten_texts(layout, kLeast); },
      [&] { leave_out(layout, false, kTextsKept); },
      [&] { leave_out(layout, true, 0); },
      [&] { leave_out(layout, false, 1); },
      [&] { shorten_texts(layout, 1); },
  };
  for (const auto& step : steps) {
    if (fits(layout)) return;
    step();
  }
  for (std::string& column : layout.table.columns) column = shortened(column, layout.width);
}

}  // namespace

size_t column_width(const TableLayout& layout, size_t column) {
  const std::string& name = layout.table.columns[column];
  const size_t heading = layout.headings_fold ? widest_word(name) : display_width(name);
  const bool folds = layout.last_width > 0 && column + 1 == layout.table.columns.size();
  return std::max(heading, folds ? layout.last_width : cells_width(layout.table, column));
}

bool fits(const TableLayout& layout) {
  return width_of(layout) <= layout.width;
}

bool has_numbers(const Table& table, size_t column) {
  return std::ranges::any_of(table.rows, [&](const auto& row) { return row[column].number; });
}

Table one_lined(Table table) {
  for (std::string& column : table.columns) column = one_line(column);
  for (auto& row : table.rows) {
    for (Table::Cell& cell : row) {
      cell.text = one_line(cell.mark.empty() ? cell.text : cell.text + " " + cell.mark);
      cell.mark.clear();
    }
  }
  return table;
}

TableLayout layout_of(const Table& table, size_t width) {
  TableLayout layout{one_lined(table), width};
  if (!fits(layout)) make_fit(layout);
  return layout;
}

}  // namespace moegate
