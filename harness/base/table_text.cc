// SPDX-License-Identifier: Apache-2.0
#include "harness/base/table_text.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

#include "harness/base/table_layout.h"

namespace moegate {
namespace {

constexpr size_t kBelowIndent = 4;

std::string in_colour(const std::string& text, const char* code, bool colour) {
  return colour && !text.empty() ? fmt::format("\033[{}m{}\033[0m", code, text) : text;
}

/// Colours that a terminal's own palette defines, so that they suit its background.
std::string toned(const std::string& text, const Table::Cell& cell, bool colour) {
  switch (cell.tone) {
    case Tone::good:
      return in_colour(text, "32", colour);
    case Tone::bad:
      return in_colour(text, "31", colour);
    case Tone::doubtful:
      return in_colour(text, "33", colour);
    case Tone::plain:
      break;
  }
  return in_colour(text, "1", colour && cell.bold);
}

std::string without_trailing_blanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
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
    out += without_trailing_blanks(line);
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
      if (!groups.empty() && (r == 0 || groups[r] != groups[r - 1])) {
        out += key_line(groups[r]);
      }
      out += row(layout_.table.rows[r]);
      if (layout_.below.texts.empty() || layout_.below.texts[r].empty()) continue;
      out += aside(layout_.below.name + ": " + layout_.below.texts[r], kBelowIndent);
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

  std::string key_line(const std::string& key) const {
    const bool fits = display_width(key) <= layout_.width;
    std::string out;
    for (const auto& line : wrapped(key, layout_.width - (fits ? 0 : kBelowIndent))) {
      out += std::string(out.empty() ? 0 : kBelowIndent, ' ') + line + "\n";
    }
    return out;
  }

  std::string aside(const std::string& text, size_t indent) const {
    std::string out;
    for (const auto& line : wrapped(text, layout_.width - indent)) {
      out += std::string(indent, ' ') + line + "\n";
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
  TableLayout layout = layout_of(table, screen.width);
  if (table.rows.size() == 1 && layout.headings_fold) return drawn_row(one_lined(table), screen);
  if (!layout.not_shown.empty()) {
    layout.above.push_back(
        fmt::format("not shown for want of space: {} (--columns, or another --format)",
                    fmt::join(layout.not_shown, ", ")));
  }
  std::string out;
  for (const std::string& text : layout.above) {
    for (const std::string& line : wrapped(text, screen.width)) out += line + "\n";
  }
  return out + (out.empty() ? "" : "\n") + Drawing(layout, screen.colour).all();
}

}  // namespace moegate
