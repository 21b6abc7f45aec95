// SPDX-License-Identifier: Apache-2.0

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>

#include "harness/base/escape.h"
#include "harness/base/table.h"
#include "harness/base/terminal.h"

namespace moegate {
namespace {

constexpr size_t kColumnGap = 2;  // blanks between columns

struct TableLayout {
  /// A column that is no column any more, with a text for each row.
  struct Aside {
    std::string name;
    std::vector<std::string> texts;
  };
  Table table;   // its cells one line each, their marks among their text
  size_t width;  // that the table may have
  size_t indent = 0;
  bool headings_fold = false;
  size_t last_width = 0;               // to which the last column folds; 0: it does not
  Aside group;                         // stands above rows, once where they have the same
  Aside below;                         // stands below each row
  std::vector<std::string> above;      // what is said above the table
  std::vector<std::string> not_shown;  // columns
};

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

size_t column_width(const TableLayout& layout, size_t column) {
  const std::string& name = layout.table.columns[column];
  const size_t heading = layout.headings_fold ? widest_word(name) : display_width(name);
  const bool folds = layout.last_width > 0 && column + 1 == layout.table.columns.size();
  return std::max(heading, folds ? layout.last_width : cells_width(layout.table, column));
}

size_t width_of(const TableLayout& layout) {
  const size_t n = layout.table.columns.size();
  size_t width = n > 0 ? (n - 1) * kColumnGap : 0;
  for (size_t i = 0; i < n; ++i) width += column_width(layout, i);
  return width + layout.indent;
}

bool fits(const TableLayout& layout) {
  return width_of(layout) <= layout.width;
}

/// Whether a column is aligned at its right.
bool has_numbers(const Table& table, size_t column) {
  return std::ranges::any_of(table.rows, [&](const auto& row) { return row[column].number; });
}

void drop(Table& table, const std::function<bool(size_t)>& unwanted) {
  table = columns_where(table, [&](size_t i) { return !unwanted(i); });
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

/// "2026-11-22T04:40:44Z" as "2026-11-22 04:40", where all of a column are such times.
void shorten_times(TableLayout& layout) {
  constexpr size_t kDay = 10, kMinute = 16, kWhole = 20;
  const auto is_time = [](const std::string& text) {
    return text.size() == kWhole && text[kDay] == 'T' && text.back() == 'Z';
  };
  for (size_t i = 0; i < layout.table.columns.size(); ++i) {
    if (!std::ranges::all_of(layout.table.rows, [&](const auto& r) { return is_time(r[i].text); }))
      continue;
    for (auto& row : layout.table.rows) {
      row[i].text.resize(kMinute);
      row[i].text[kDay] = ' ';
    }
  }
}

bool is_kept(const Table& table, size_t column) {
  return std::ranges::count(table.keep, table.columns[column]) > 0;
}

/// Takes a column out of the table.
TableLayout::Aside set_aside(Table& table, size_t column) {
  TableLayout::Aside aside{table.columns[column], {}};
  for (const auto& row : table.rows) aside.texts.push_back(row[column].text);
  drop(table, [column](size_t i) { return i == column; });
  return aside;
}

bool has_keys(const Table& table, size_t column) {
  return std::ranges::all_of(table.rows, [column](const auto& row) {
    return row[column].text.find('=') != std::string::npos;
  });
}

/// What tells rows apart and is best read whole: the first column of long keys, and what stands
/// before the columns that are kept.
void group_by_key(TableLayout& layout) {
  const Table table = layout.table;
  const size_t n = table.columns.size();
  size_t kept = 0, key = 0;
  while (kept < n && !is_kept(table, kept)) ++kept;
  while (key < n && (!has_keys(table, key) || cells_width(table, key) < kLongKey)) ++key;
  const auto stands_above = [&](size_t i) { return i == key || (kept < n && i < kept); };
  std::vector<std::string> texts(table.rows.size());
  size_t above = 0;
  for (size_t i = 0; i < n; ++i) {
    if (!stands_above(i)) continue;
    ++above;
    const std::string name = has_keys(table, i) ? "" : table.columns[i] + " ";
    for (size_t r = 0; r < texts.size(); ++r) {
      const std::string& cell = table.rows[r][i].text;
      if (!cell.empty()) texts[r] += (texts[r].empty() ? "" : ", ") + name + cell;
    }
  }
  if (above == 0 || above == n || table.rows.empty()) return;
  layout.group = {"", texts};
  layout.indent = kIndent;
  drop(layout.table, stands_above);
}

void fold_last_column(TableLayout& layout) {
  const Table& table = layout.table;
  const size_t last = table.columns.size() - 1;
  if (!layout.below.texts.empty() || (!table.keep.empty() && !is_kept(table, last))) return;
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
void leave_out(TableLayout& layout, size_t kept, const std::function<bool(size_t)>& of_kind) {
  while (!fits(layout)) {
    std::vector<size_t> all;
    for (size_t i = 0; i < layout.table.columns.size(); ++i) {
      if (of_kind(i) && !has_tone(layout.table, i)) all.push_back(i);
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
  const Table& table = layout.table;
  const auto numbers = [&](size_t i) { return has_numbers(table, i); };
  const auto texts = [&](size_t i) { return !has_numbers(table, i); };
  const auto not_kept = [&](size_t i) { return !table.keep.empty() && !is_kept(table, i); };
  const std::function<void()> steps[] = {
      [&] { say_constants_above(layout); },
      [&] { fold_key_columns(layout); },
      [&] { shorten_times(layout); },
      [&] { layout.headings_fold = true; },
      [&] { group_by_key(layout); },
      [&] { fold_last_column(layout); },
      [&] { leave_out(layout, 0, not_kept); },
      [&] { fold_last_column(layout); },
      [&] { leave_out(layout, kNumbersKept, numbers); },
      [&] { shorten_texts(layout, kLong); },
      [&] { shorten_texts(layout, kReadable); },
      [&] { leave_out(layout, 1, numbers); },
      [&] { shorten_texts(layout, kLeast); },
      [&] { leave_out(layout, kTextsKept, texts); },
      [&] { leave_out(layout, 0, numbers); },
      [&] { leave_out(layout, 1, texts); },
      [&] { shorten_texts(layout, 1); },
  };
  for (const auto& step : steps) {
    if (fits(layout)) return;
    step();
  }
  for (std::string& column : layout.table.columns) column = shortened(column, layout.width);
}

/// Each cell as one line, its mark behind its text.
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

constexpr size_t kBelowIndent = 4;

std::string in_colour(const std::string& text, const char* code, bool colour) {
  return colour && !text.empty() ? fmt::format("\033[{}m{}\033[0m", code, text) : text;
}

/// Colours that a terminal's own palette defines, so that they suit its background.
std::string toned(const std::string& text, const Table::Cell& cell, bool colour) {
  constexpr std::array kCodes = {"1", "32", "31", "33"};  // of each Tone; plain: bold
  const bool shows = cell.tone != Tone::plain || cell.bold;
  return in_colour(text, kCodes.at(static_cast<size_t>(cell.tone)), colour && shows);
}

/// A line per line of the cells; `bottom`: what has fewer of them stands at the bottom.
std::string lines_of(const std::vector<std::vector<std::string>>& cells,
                     const std::vector<size_t>& widths, const std::vector<bool>& right,
                     size_t indent, bool bottom,
                     const std::function<std::string(size_t, const std::string&)>& paint) {
  size_t height = 1;
  for (const auto& cell : cells) height = std::max(height, cell.size());
  std::string out;
  for (size_t h = 0; h < height; ++h) {
    std::string line(indent, ' ');
    for (size_t i = 0; i < cells.size(); ++i) {
      const size_t above = bottom ? height - cells[i].size() : 0;
      const bool has = h >= above && h - above < cells[i].size();
      const std::string text = has ? cells[i][h - above] : "";
      const std::string blanks(widths[i] - display_width(text), ' ');
      line += (i > 0 ? std::string(kColumnGap, ' ') : "") +
              (right[i] ? blanks + paint(i, text) : paint(i, text) + blanks);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

/// The table's columns as lines.
class Drawing {
 public:
  Drawing(const TableLayout& layout, bool colour) : layout_(layout), colour_(colour) {
    for (size_t i = 0; i < layout.table.columns.size(); ++i) {
      widths_.push_back(column_width(layout, i));
      right_.push_back(has_numbers(layout.table, i));
    }
  }

  std::string all() const {
    std::string out = headings();
    for (size_t r = 0; r < layout_.table.rows.size(); ++r) {
      const auto& groups = layout_.group.texts;
      if (!groups.empty() && (r == 0 || groups[r] != groups[r - 1])) out += between(groups[r], 0);
      out += row(layout_.table.rows[r]);
      if (layout_.below.texts.empty() || layout_.below.texts[r].empty()) continue;
      out += between(layout_.below.name + ": " + layout_.below.texts[r], kBelowIndent);
    }
    return out;
  }

 private:
  std::string headings() const {
    std::vector<std::vector<std::string>> cells;
    std::string rule(layout_.indent, ' ');
    for (size_t i = 0; i < widths_.size(); ++i) {
      cells.push_back(wrapped(layout_.table.columns[i], widths_[i]));
      if (i > 0) rule += std::string(kColumnGap, ' ');
      for (size_t k = 0; k < widths_[i]; ++k) rule += "─";
    }
    const auto paint = [&](size_t, const std::string& text) {
      return in_colour(text, "1", colour_);
    };
    return lines_of(cells, widths_, right_, layout_.indent, true, paint) + rule + "\n";
  }

  std::string row(const std::vector<Table::Cell>& row) const {
    std::vector<std::vector<std::string>> cells;
    for (const Table::Cell& cell : row) cells.push_back({cell.text});
    if (layout_.last_width > 0) cells.back() = wrapped(row.back().text, widths_.back());
    const auto paint = [&](size_t i, const std::string& text) {
      return toned(text, row[i], colour_);
    };
    return lines_of(cells, widths_, right_, layout_.indent, false, paint);
  }

  /// A text between rows, its first line indented by so much.
  std::string between(const std::string& text, size_t first) const {
    const bool fits = first + display_width(text) <= layout_.width;
    std::string out;
    for (const auto& line : wrapped(text, layout_.width - (fits ? first : kBelowIndent))) {
      out += std::string(out.empty() ? first : kBelowIndent, ' ') + line + "\n";
    }
    return out;
  }

  const TableLayout& layout_;
  bool colour_;
  std::vector<size_t> widths_;
  std::vector<bool> right_;
};

/// The cells of one row below each other, each beside its column's name.
std::string drawn_row(const Table& table, const Screen& screen) {
  size_t names = 0;
  for (const std::string& column : table.columns) names = std::max(names, display_width(column));
  names = std::min(names, screen.width / 2 - kColumnGap);
  std::string out;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const Table::Cell& cell = table.rows.front()[i];
    if (cell.text.empty()) continue;
    const std::vector<size_t> widths = {names, screen.width - names - kColumnGap};
    out += lines_of({wrapped(table.columns[i], names), wrapped(cell.text, widths[1])}, widths,
                    {false, false}, 0, false, [&](size_t at, const std::string& text) {
                      return at == 0 ? in_colour(text, "1", screen.colour)
                                     : toned(text, cell, screen.colour);
                    });
  }
  return out;
}

}  // namespace

std::string render_text(const Table& table, const Screen& screen) {
  TableLayout layout{one_lined(table), screen.width};
  if (!fits(layout)) make_fit(layout);
  if (table.rows.size() == 1 && layout.headings_fold) return drawn_row(one_lined(table), screen);
  if (!layout.not_shown.empty()) {
    layout.above.push_back(
        fmt::format("there was no space for: {} (choose with --columns, or use another --format)",
                    fmt::join(layout.not_shown, ", ")));
  }
  std::string out;
  for (const std::string& text : layout.above) {
    for (const std::string& line : wrapped(text, screen.width)) out += line + "\n";
  }
  return out + (out.empty() ? "" : "\n") + Drawing(layout, screen.colour).all();
}

}  // namespace moegate
