// SPDX-License-Identifier: Apache-2.0
#include "harness/report/page_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "harness/base/escape.h"
#include "harness/base/text.h"

namespace moegate {
namespace {

/// Appends `items`, a comma between two of them.
template <class Items, class Write>
void list(std::string& out, const Items& items, const Write& write) {
  out += '[';
  bool first = true;
  for (const auto& item : items) {
    if (!first) out += ',';
    first = false;
    write(item);
  }
  out += ']';
}

bool is_plain(unsigned char c) {
  return c >= ' ' && c < 0x7f && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&';
}

/// Names and numbers, nearly all of what there is, need no escapes.
void append_string(std::string& out, const std::string& text) {
  const bool plain_text = std::all_of(text.begin(), text.end(), is_plain);
  out += plain_text ? '"' + text + '"' : json_string(text);
}

/// Whether JSON has it as a number: "12" and "-3.5e-7", but no "+1.2 %", "007" or "inf".
bool is_json_number(const std::string& text) {
  const size_t digits = text.starts_with('-') ? 1 : 0;
  if (text.size() <= digits || text[digits] < '0' || text[digits] > '9') return false;
  if (text[digits] == '0' && text.size() > digits + 1 && text[digits + 1] != '.') return false;
  if (text.back() == '.') return false;
  const auto value = parse_number<double>(text);
  return value && std::isfinite(*value);
}

void append_cell(std::string& out, const Table::Cell& cell) {
  const bool bare = cell.mark.empty() && cell.link.empty() && !cell.bold;
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
  if (!cell.link.empty()) {
    out += ",\"l\":";
    append_string(out, cell.link);
  }
  out += '}';
}

void append_table(std::string& out, const Table& table) {
  out += "{\"columns\":";
  list(out, table.columns, [&](const std::string& name) { append_string(out, name); });
  out += ",\"rows\":";
  list(out, table.rows, [&](const std::vector<Table::Cell>& row) {
    list(out, row, [&](const Table::Cell& cell) { append_cell(out, cell); });
  });
  out += '}';
}

void append_line(std::string& out, const Line& line) {
  list(out, line, [&](const Span& span) {
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

/// Writes a block; one without content is none.
class BlockWriter {
 public:
  explicit BlockWriter(std::string& out) : out_(out) {}

  void operator()(const Heading& heading) {
    out_ += "{\"h\":";
    append_string(out_, heading.text);
    out_ += '}';
  }
  void operator()(const Paragraph& paragraph) {
    out_ += "{\"p\":";
    list(out_, paragraph.lines, [&](const Line& line) { append_line(out_, line); });
    out_ += paragraph.small ? ",\"small\":1}" : "}";
  }
  void operator()(const List& items) {
    out_ += "{\"l\":";
    list(out_, items.items, [&](const Line& line) { append_line(out_, line); });
    out_ += '}';
  }
  void operator()(const Rows& rows) {
    out_ += "{\"t\":";
    append_table(out_, rows.table);
    out_ += '}';
  }
  void operator()(const Commands& commands) {
    out_ += "{\"k\":";
    list(out_, commands.all, [&](const Commands::Command& command) {
      list(out_, std::vector{command.purpose, command.text},
           [&](const std::string& text) { append_string(out_, text); });
    });
    out_ += '}';
  }
  void operator()(const Chart& chart) {
    out_ += "{\"c\":";
    append_string(out_, chart_name(chart));
    out_ += ",\"title\":";
    append_string(out_, chart.title);
    out_ += ",\"signals\":{";
    for (size_t i = 0; i < chart.signals.size(); ++i) {
      if (i > 0) out_ += ',';
      append_string(out_, chart.signals[i].first);
      out_ += ':';
      const std::string& value = chart.signals[i].second;
      is_json_number(value) ? void(out_ += value) : append_string(out_, value);
    }
    out_ += "},\"t\":";
    append_table(out_, chart.table);
    out_ += '}';
  }

 private:
  std::string& out_;
};

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

std::string chart_name(const Chart& chart) {
  return std::filesystem::path(chart.file).stem().stem().string();  // without .vg.json
}

std::string json_table(const Table& table) {
  std::string out;
  append_table(out, table);
  return out;
}

std::string to_json(const Page& page, const std::string& title) {
  std::string out = "{\"title\":";
  append_string(out, title);
  out += ",\"blocks\":[";
  bool first = true;
  for (const Section& section : page.sections) {
    for (const Block& block : section.blocks) {
      if (!first) out += ',';
      first = false;
      std::visit(BlockWriter(out), block);
    }
  }
  return out + "]}";
}

}  // namespace moegate
