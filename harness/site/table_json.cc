// SPDX-License-Identifier: Apache-2.0
#include "harness/site/table_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
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

}  // namespace moegate
