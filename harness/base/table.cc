// SPDX-License-Identifier: Apache-2.0
#include "harness/base/table.h"

#include <fmt/ranges.h>
#include <unistd.h>
#include <boost/algorithm/string/predicate.hpp>
#include <boost/algorithm/string/replace.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <utility>

#include "harness/base/error.h"
#include "harness/base/escape.h"
#include "harness/base/text.h"

namespace moegate {
namespace {

using Json = nlohmann::json;

std::string plain(const Table::Cell& cell) {
  return cell.mark.empty() ? cell.text : cell.text + " " + cell.mark;
}

std::string markdown_cell(const Table::Cell& cell) {
  std::string text = markdown_escaped(cell.text);
  if (cell.bold && !text.empty()) text = "**" + text + "**";
  return cell.mark.empty() ? text : text + " " + markdown_escaped(cell.mark);
}

void add_markdown_row(const std::vector<std::string>& cells, const std::vector<size_t>& widths,
                      const std::vector<bool>& right, std::string& out) {
  out += "|";
  for (size_t i = 0; i < cells.size(); ++i) {
    const size_t padding = widths[i] - display_width(cells[i]);
    out.append(right[i] ? 1 + padding : 1, ' ').append(cells[i]);
    out.append(right[i] ? 1 : 1 + padding, ' ').append("|");
  }
  out += "\n";
}

std::string render_markdown(const Table& table) {
  const size_t n = table.columns.size();
  std::vector<std::vector<std::string>> lines(table.rows.size() + 1);
  std::vector<size_t> widths(n, 3);  // "---"
  std::vector<bool> right(n, false);
  for (const std::string& column : table.columns) lines[0].push_back(markdown_escaped(column));
  for (size_t r = 0; r < table.rows.size(); ++r) {
    for (size_t i = 0; i < n; ++i) {
      lines[r + 1].push_back(markdown_cell(table.rows[r][i]));
      if (table.rows[r][i].number) right[i] = true;
    }
  }
  for (const auto& line : lines) {
    for (size_t i = 0; i < n; ++i) widths[i] = std::max(widths[i], display_width(line[i]));
  }
  std::string out;
  add_markdown_row(lines[0], widths, right, out);
  out += "|";
  for (size_t i = 0; i < n; ++i) {
    out += " " + std::string(widths[i] - 1, '-') + (right[i] ? ": |" : "- |");
  }
  out += "\n";
  for (size_t r = 1; r < lines.size(); ++r) add_markdown_row(lines[r], widths, right, out);
  return out;
}

/// Whether a program that calculates would take the text for a formula: "=…", "@…", and "+…" or
/// "-…" but for a number with a unit behind it.
bool is_formula(const std::string& text) {
  if (text.size() < 2) return false;
  if (text[0] == '=' || text[0] == '@') return true;
  if (text[0] != '+' && text[0] != '-') return false;
  const auto number = leading_number(text);
  return !number || number->rest.find_first_of("=+-*/^&|!@()<>'\",;:") != std::string::npos;
}

std::string csv_escaped(const std::string& cell) {
  std::string text = one_line(cell);  // no control characters: it may end on a terminal
  if (is_formula(text.substr(std::min(text.find_first_not_of(' '), text.size())))) {
    text.insert(0, "'");
  }
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  return "\"" + boost::replace_all_copy(text, "\"", "\"\"") + "\"";
}

std::string tsv_escaped(const std::string& cell) {
  std::string out;
  for (const char c : cell) {
    const size_t at = std::string_view("\\\t\n\r").find(c);
    out += at == std::string_view::npos ? std::string(1, c) : std::string{'\\', "\\tnr"[at]};
  }
  return one_line(out);
}

/// A line for the columns and one for each row.
std::string render_lines(const Table& table, const char* separator, const char* end,
                         std::string (*escaped)(const std::string&)) {
  std::string out;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    out += (i > 0 ? separator : "") + escaped(table.columns[i]);
  }
  out += end;
  for (const auto& row : table.rows) {
    for (size_t i = 0; i < row.size(); ++i)
      out += (i > 0 ? separator : "") + escaped(plain(row[i]));
    out += end;
  }
  return out;
}

std::string json_string(const std::string& text) {
  // Bytes that are not UTF-8 (a kernel's name from a profiler) become U+FFFD instead of an
  // exception.
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// A number keeps its digits as printed; what is no JSON number ("n/a", "inf") stays a string.
std::string json_cell(const Table::Cell& cell) {
  const std::string text = plain(cell);
  if (cell.none || (cell.number && text.empty())) return "null";
  if (!cell.number) return json_string(text);
  const Json parsed = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return parsed.is_number() ? text : json_string(text);
}

std::string render_json(const Table& table) {
  std::string out = "[";
  for (size_t r = 0; r < table.rows.size(); ++r) {
    out += r > 0 ? ",\n  {" : "\n  {";
    for (size_t i = 0; i < table.columns.size(); ++i) {
      out +=
          (i > 0 ? ", " : "") + json_string(table.columns[i]) + ": " + json_cell(table.rows[r][i]);
    }
    out += "}";
  }
  return out + (table.rows.empty() ? "]\n" : "\n]\n");
}

struct SortKey {
  enum Kind { number, text, empty } kind;
  double value = 0;
  std::string words;
};

SortKey sort_key(const Table::Cell& cell) {
  if (cell.text.empty()) return {SortKey::empty};
  const bool starts = cell.text.find_first_of("0123456789") <= cell.text.find_first_not_of("+-.");
  const auto leading = starts ? leading_number(cell.text) : std::nullopt;
  if (leading) return {SortKey::number, leading->value};
  return {SortKey::text, 0, cell.text};
}

bool comes_before(const SortKey& a, const SortKey& b, bool descending) {
  if (a.kind != b.kind) return a.kind < b.kind;
  const SortKey& first = descending ? b : a;
  const SortKey& second = descending ? a : b;
  if (a.kind == SortKey::number) return first.value < second.value;
  return NaturalLess()(first.words, second.words);
}

}  // namespace

Format parse_format(const std::string& name) {
  constexpr std::array kInOrder = {"text", "md", "csv", "tsv", "json"};
  const auto at = std::ranges::find(kInOrder, name);
  if (at != kInOrder.end()) return static_cast<Format>(at - kInOrder.begin());
  usage_error("format '{}' is unknown; use text, md, csv, tsv or json", name);
}

bool is_for_people(Format format) {
  return format == Format::text || format == Format::md;
}

std::string render(const Table& table, Format format) {
  for (const auto& row : table.rows) {
    if (row.size() == table.columns.size()) continue;
    give_up(Exit::internal, "a table row has {} cells for {} columns", row.size(),
            table.columns.size());
  }
  if (!table.only.empty()) {
    Table theirs = for_readers(table, is_for_people(format) ? Readers::people : Readers::programs);
    theirs.only.clear();
    return render(theirs, format);
  }
  switch (format) {
    case Format::text:
      return render_text(table, screen_of(STDOUT_FILENO));
    case Format::md:
      return render_markdown(table);
    case Format::csv:
      return render_lines(table, ",", "\r\n", csv_escaped);  // RFC 4180
    case Format::tsv:
      return render_lines(table, "\t", "\n", tsv_escaped);
    case Format::json:
      return render_json(table);
  }
  throw Error(Exit::internal, "unknown table format");
}

std::optional<size_t> find_column(const Table& table, const std::string& name) {
  const auto& columns = table.columns;
  auto at = std::ranges::find(columns, name);
  if (at == columns.end()) {
    at = std::ranges::find_if(columns, [&](const auto& c) { return boost::iequals(c, name); });
  }
  if (at == columns.end()) return std::nullopt;
  return static_cast<size_t>(at - columns.begin());
}

size_t column_of(const Table& table, const std::string& flag, const std::string& name) {
  if (const auto column = find_column(table, name)) return *column;
  usage_error("{}: there is no column '{}'{}; the columns are: {}", flag, name,
              did_you_mean(name, table.columns), fmt::join(table.columns, ", "));
}

Table for_readers(const Table& table, Readers readers) {
  return columns_where(table, [&](size_t i) {
    const auto only = table.only.find(table.columns[i]);
    return only == table.only.end() || only->second == readers;
  });
}

Table with_columns(const Table& table, const std::vector<size_t>& columns) {
  Table part{{}, {}, table.links, table.only, table.keep};
  for (const size_t i : columns) part.columns.push_back(table.columns[i]);
  for (const auto& row : table.rows) {
    auto& cells = part.rows.emplace_back();
    for (const size_t i : columns) cells.push_back(row[i]);
  }
  return part;
}

Table columns_where(const Table& table, const std::function<bool(size_t)>& wanted) {
  std::vector<size_t> columns;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    if (wanted(i)) columns.push_back(i);
  }
  return with_columns(table, columns);
}

Table without_empty_columns(const Table& table) {
  if (table.rows.empty()) return table;
  return columns_where(table, [&](size_t i) {
    return std::ranges::any_of(table.rows, [i](const auto& row) { return !plain(row[i]).empty(); });
  });
}

void sort_rows(Table& table, size_t column, bool descending) {
  std::vector<std::pair<SortKey, size_t>> order;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    order.emplace_back(sort_key(table.rows[i][column]), i);
  }
  std::ranges::stable_sort(order, [descending](const auto& a, const auto& b) {
    return comes_before(a.first, b.first, descending);
  });
  std::vector<std::vector<Table::Cell>> rows;
  for (const auto& [key, i] : order) rows.push_back(std::move(table.rows[i]));
  table.rows = std::move(rows);
}

Table most_important(const Table& table, size_t most,
                     const std::function<bool(const std::vector<Table::Cell>&)>& matters) {
  std::vector<size_t> kept;
  for (const bool wanted : {true, false}) {
    for (size_t i = 0; i < table.rows.size() && kept.size() < most; ++i) {
      if (matters(table.rows[i]) == wanted) kept.push_back(i);
    }
  }
  std::ranges::sort(kept);
  Table part{table.columns, {}, table.links, table.only, table.keep};
  for (const size_t i : kept) part.rows.push_back(table.rows[i]);
  return part;
}

}  // namespace moegate
