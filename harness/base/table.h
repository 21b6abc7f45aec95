// SPDX-License-Identifier: Apache-2.0
// A table of text cells and its four spellings: text for a terminal, aligned markdown, CSV (RFC 4180),
// JSON.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace moegate {

/// What a cell says of its row, by its colour where there are colours.
enum class Tone { plain, good, bad, doubtful };

struct Table {
  /// A text as it is; each spelling escapes it.
  struct Cell {
    std::string text;
    bool number = false;  // right-aligned in markdown, unquoted in JSON
    bool bold = false;    // in markdown
    std::string mark;     // a sign that follows the text: after its bold in markdown, "x ⚠"
    Tone tone = Tone::plain;
    bool none = false;  // of a query without a value here: null in JSON
  };
  std::vector<std::string> columns;
  std::vector<std::vector<Cell>> rows;
  /// By columns' names: the page of a site (site/site.h) that their cells lead to, such as
  /// "night={run}". {NAME} is the text of the row's cell under NAME; one that is empty leads nowhere.
  std::map<std::string, std::string> links = {};
};

enum class Format { text, md, csv, json };
/// "text", "md", "csv", "json"; throws Error(usage) naming the choices.
Format parse_format(const std::string& name);
/// For people: text where standard output is a terminal, else md, which scripts rely on.
Format format_for_people();

/// What is drawn as text fits standard output (table_text.h). md shows every cell as it is (escape.h); json is an array of objects.
std::string render(const Table& table, Format format);

}  // namespace moegate
