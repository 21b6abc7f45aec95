// SPDX-License-Identifier: Apache-2.0
#include "harness/site/page_json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <utility>

#include "harness/base/escape.h"
#include "harness/base/text.h"

namespace moegate {
namespace {

constexpr size_t kShortArray = 16;  // bytes: sharing it would save nothing

bool is_plain(unsigned char c) {
  return c >= ' ' && c < 0x7f && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&';
}

void append_cell(std::string& out, const Table::Cell& cell) {
  const bool bare = cell.mark.empty() && !cell.bold;
  if (bare && cell.number && is_json_number(cell.text)) {
    out += cell.text;
    return;
  }
  if (bare && !cell.number) return append_string(out, cell.text);
  out += "{\"t\":";
  append_string(out, cell.text);
  if (cell.number) out += ",\"n\":1";
  if (cell.bold) out += ",\"b\":1";
  if (!cell.mark.empty()) {
    out += ",\"m\":";
    append_string(out, cell.mark);
  }
  out += '}';
}

/// The cells of a column; one where all are the same.
std::string column_of(const Table& table, size_t column) {
  std::string out = "[", first, cell;
  bool same = true;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    cell.clear();
    append_cell(cell, table.rows[i][column]);
    if (i == 0) first = cell;
    same = same && cell == first;
    if (i > 0) out += ',';
    out += cell;
  }
  if (same && !table.rows.empty()) out = "[" + first;
  return out + "]";
}

}  // namespace

std::string shown_text(const std::string& text) {
  return one_line(valid_utf8(text));
}

std::string json_string(const std::string& text) {
  const std::string dumped = nlohmann::json(shown_text(text)).dump(-1, ' ', true);
  std::string out;
  for (const char c : dumped) {
    const bool markup = c == '<' || c == '>' || c == '&';
    out += markup ? fmt::format("\\u{:04x}", static_cast<unsigned>(c)) : std::string(1, c);
  }
  return out;
}

/// Names and numbers, nearly all of what there is, need no escapes.
void append_string(std::string& out, const std::string& text) {
  if (!std::all_of(text.begin(), text.end(), is_plain)) {
    out += json_string(text);
    return;
  }
  out += '"';
  out += text;
  out += '"';
}

bool is_json_number(const std::string& text) {
  const size_t digits = text.starts_with('-') ? 1 : 0;
  if (text.size() <= digits || text[digits] < '0' || text[digits] > '9') return false;
  if (text[digits] == '0' && text.size() > digits + 1 && text[digits + 1] != '.') return false;
  if (text.back() == '.') return false;
  const auto value = parse_number<double>(text);
  return value && std::isfinite(*value);
}

void SharedArrays::append(std::string& out, std::string array) {
  if (array.size() <= kShortArray) {
    out += array;
  } else {
    out += std::to_string(number_of(std::move(array)));
  }
}

size_t SharedArrays::number_of(std::string array) {
  const auto [at, fresh] = numbers_.try_emplace(std::move(array), arrays_.size());
  if (fresh) arrays_.push_back(&at->first);
  return at->second;
}

std::string SharedArrays::json() const {
  std::string out;
  append_list(out, arrays_, [&](const std::string* array) { out += *array; });
  return out;
}

void append_table(std::string& out, const Table& table, SharedArrays& shared) {
  std::string columns;
  append_list(columns, table.columns,
              [&](const std::string& name) { append_string(columns, name); });
  out += "{\"columns\":";
  shared.append(out, std::move(columns));
  if (!table.links.empty()) {
    out += ",\"links\":{";
    for (const auto& [column, page] : table.links) {
      if (out.back() != '{') out += ',';
      append_string(out, column);
      out += ':';
      append_string(out, page);
    }
    out += '}';
  }
  out += fmt::format(",\"n\":{},\"cells\":[", table.rows.size());
  for (size_t i = 0; i < table.columns.size(); ++i) {
    if (i > 0) out += ',';
    shared.append(out, column_of(table, i));
  }
  out += "]}";
}

std::string json_table(const Table& table) {
  SharedArrays shared;
  std::string packed;
  append_table(packed, table, shared);
  return fmt::format("{{\"shared\":{},\"table\":{}}}", shared.json(), packed);
}

namespace {

constexpr double kReachUnit = 1e-5;  // of the logarithm of a level: its fifth digit

/// A number of five digits; null where there is none.
void append_value(std::string& out, double value) {
  if (std::isfinite(value)) {
    fmt::format_to(std::back_inserter(out), "{:.5g}", value);
  } else {
    out += "null";
  }
}

void append_line(std::string& out, const Line& line) {
  append_list(out, line, [&](const Span& span) {
    out += "{\"t\":";
    append_string(out, span.text);
    if (span.code) out += ",\"c\":1";
    if (span.bold) out += ",\"b\":1";
    if (!span.link.empty()) {
      out += ",\"l\":";
      append_string(out, span.link);
    }
    out += '}';
  });
}

void append_signals(std::string& out,
                    const std::vector<std::pair<std::string, std::string>>& signals) {
  out += ",\"signals\":{";
  for (const auto& [name, value] : signals) {
    if (out.back() != '{') out += ',';
    append_string(out, name);
    out += ':';
    is_json_number(value) ? void(out += value) : append_string(out, value);
  }
  out += '}';
}

/// Writes a block; one without content is none.
class BlockWriter {
 public:
  BlockWriter(std::string& out, SharedArrays& shared) : out_(out), shared_(shared) {}

  void operator()(const Heading& heading) {
    out_ += "{\"h\":";
    append_string(out_, heading.text);
    out_ += '}';
  }
  void operator()(const Paragraph& paragraph) {
    out_ += "{\"p\":";
    append_list(out_, paragraph.lines, [&](const Line& line) { append_line(out_, line); });
    out_ += paragraph.small ? ",\"small\":1}" : "}";
  }
  void operator()(const List& items) {
    out_ += "{\"l\":";
    append_list(out_, items.items, [&](const Line& line) { append_line(out_, line); });
    out_ += '}';
  }
  void operator()(const Rows& rows) {
    out_ += "{\"t\":";
    append_table(out_, rows.table, shared_);
    if (!rows.opened.empty()) {
      out_ += ",\"o\":";
      append_list(out_, rows.opened,
                  [&](const Table& table) { append_table(out_, table, shared_); });
    }
    out_ += '}';
  }
  void operator()(const Commands& commands) {
    out_ += "{\"k\":";
    append_list(out_, commands.all, [&](const Commands::Command& command) {
      out_ += '[';
      append_string(out_, command.purpose);
      out_ += ',';
      append_string(out_, command.text);
      out_ += ']';
    });
    out_ += '}';
  }
  void operator()(const Chart& chart) {
    begin_chart("c", chart.file, chart.title);
    append_signals(out_, chart.signals);
    out_ += ",\"t\":";
    append_table(out_, chart.table, shared_);
    out_ += '}';
  }
  void operator()(const LevelChart& chart) {
    begin_chart("y", chart.file, chart.title);
    append_signals(out_, chart.signals);
    out_ += ",\"unit\":";
    append_string(out_, chart.unit);
    out_ += ",\"runs\":";
    shared_.append_of(out_, chart.runs.get(), [&] { return runs_of(*chart.runs); });
    append_points(chart);
    out_ += '}';
  }

 private:
  using Point = LevelChart::Point;

  void begin_chart(const char* kind, const std::string& file, const std::string& title) {
    out_ += fmt::format("{{\"{}\":", kind);
    append_string(out_, chart_name(file));
    out_ += ",\"title\":";
    append_string(out_, title);
  }
  static std::string runs_of(const std::vector<LevelChart::Run>& runs) {
    std::string out;
    append_list(out, runs, [&](const LevelChart::Run& run) {
      append_list(out, std::array{run.id, run.started, run.commit},
                  [&](const std::string& text) { append_string(out, text); });
    });
    return out;
  }
  /// Adds an array of what `write` appends for each point. Most are those of other rows, too.
  template <class Write>
  void append_shared(const char* name, const LevelChart& chart, const Write& write) {
    std::string array;
    append_list(array, chart.points, [&](const Point& point) { write(array, point); });
    out_ += fmt::format(",\"{}\":", name);
    shared_.append(out_, std::move(array));
  }
  void append_points(const LevelChart& chart) {
    const auto whole = [](std::string& out, int64_t n) { out += fmt::format_int(n).c_str(); };
    append_shared("at", chart, [&](std::string& out, const Point& p) { whole(out, p.run); });
    append_shared("processes", chart,
                  [&](std::string& out, const Point& p) { whole(out, p.processes); });
    append_shared("code", chart,
                  [&](std::string& out, const Point& p) { whole(out, static_cast<int>(p.code)); });
    out_ += ",\"level\":";
    append_list(out_, chart.points, [&](const Point& p) { append_value(out_, std::exp(p.log)); });
    out_ += ",\"reach\":";
    append_list(out_, chart.points,
                [&](const Point& p) { append_value(out_, std::round(p.reach / kReachUnit)); });
    out_ += ",\"steps\":";
    append_list(out_, chart.steps, [&](const std::pair<const size_t, double>& step) {
      out_ += fmt::format("[{},", step.first);
      append_value(out_, 100 * step.second);
      out_ += ']';
    });
  }

  std::string& out_;
  SharedArrays& shared_;
};

}  // namespace

std::string chart_name(const std::string& file) {
  return std::filesystem::path(file).stem().stem().string();  // without .vg.json
}

void PagesJson::add(const std::string& name, const Page& page, const std::string& title) {
  if (!pages_.empty()) pages_ += ',';
  append_string(pages_, name);
  pages_ += ":{\"title\":";
  append_string(pages_, title);
  pages_ += ",\"blocks\":[";
  for (const Section& section : page.sections) {
    for (const Block& block : section.blocks) {
      if (pages_.back() != '[') pages_ += ',';
      std::visit(BlockWriter(pages_, shared_), block);
    }
  }
  pages_ += "]}";
}

std::string PagesJson::json() const {
  return fmt::format("{{\"shared\":{},\"pages\":{{{}}}}}", shared_.json(), pages_);
}

}  // namespace moegate
