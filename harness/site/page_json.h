// SPDX-License-Identifier: Apache-2.0
// This file writes pages and tables as JSON, for the scripts of reports/pages/ that draw them.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "harness/base/table.h"
#include "harness/report/page.h"

namespace moegate {

// A table as JSON, by columns: what repeats is written once. reports/pages/unpack.js reads it.

/// A text as pages show it: one line of valid UTF-8, without characters that show nothing but act.
std::string shown_text(const std::string& text);

/// That as a JSON string of ASCII without '<', '>' and '&': it can stand in a script and in HTML.
std::string json_string(const std::string& text);
void append_string(std::string& out, const std::string& text);

/// A JSON array. `append` is called with the text so far and with each item.
template <class Items, class Append>
std::string json_list(const Items& items, const Append& append) {
  std::string out = "[";
  for (const auto& item : items) {
    if (out.size() > 1) out += ',';
    append(out, item);
  }
  out += ']';
  return out;
}

/// A JSON object of pairs of a name and a value, which `append` appends.
template <class Pairs, class Append>
std::string json_object(const Pairs& pairs, const Append& append) {
  std::string out = json_list(pairs, [&](std::string& fields, const auto& pair) {
    append_string(fields, pair.first);
    fields += ':';
    append(fields, pair.second);
  });
  out.front() = '{';
  out.back() = '}';
  return out;
}

/// JSON arrays that the pages of a file have in common. In a page the number of one stands for it.
class SharedArrays {
 public:
  /// The number of an array, or a short one itself.
  std::string share(std::string array);
  /// Of the array that `make` returns, which is called once for an `owner`, whose address stays.
  template <class Make>
  std::string share_of(const void* owner, const Make& make) {
    auto at = of_owner_.find(owner);
    if (at == of_owner_.end()) at = of_owner_.emplace(owner, number_of(make())).first;
    return std::to_string(at->second);
  }
  /// All of them, "[[...],...]".
  std::string json() const;

 private:
  size_t number_of(std::string array);

  std::unordered_map<std::string, size_t> numbers_;
  std::vector<const std::string*> arrays_;  // keys of numbers_
  std::unordered_map<const void*, size_t> of_owner_;
};

/// {"shared": [...], "table": {"columns": [names], "links": {column: page}, "n": rows, "cells":
/// [[a column's], ...]}}. A column that has one cell, of a table with more rows, says the same in
/// all of them. A cell is a number, a text, or an object where it has more: t its text, n whether
/// it is a number, b whether it is bold, m its mark. An array may be a number: see SharedArrays.
std::string json_table(const Table& table);

/// What a chart is called in a page: its file without folder and ".vg.json".
std::string chart_name(const std::string& file);

class PagesJson {
 public:
  /// Adds {"title": ..., "blocks": [...]} under a name, every section in its order. A block is an
  /// object with one of h (heading), p (lines of a paragraph), l (items), t (table; o: tables that
  /// its rows open to), k (commands), c (chart), y (levels).
  void add(const std::string& name, const Page& page, const std::string& title);
  /// {"shared": [...], "pages": {...}}
  std::string json() const;

 private:
  SharedArrays shared_;
  std::string pages_;
};

}  // namespace moegate
