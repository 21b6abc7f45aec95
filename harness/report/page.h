// SPDX-License-Identifier: Apache-2.0
// A report as values: what it says, in which order, and what goes first when space is short. Texts
// are raw; a renderer escapes them, and to_markdown() fits the page to a size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "harness/base/table.h"
#include "harness/base/terminal.h"

namespace moegate {

/// A stretch of a line that is set in one way.
struct Span {
  std::string text;
  bool code = false;
  bool bold = false;
  std::string link;  // page of a site that it leads to (site.h); elsewhere unused
};
using Line = std::vector<Span>;

inline Span plain(std::string text) {
  return {.text = std::move(text)};
}
inline Span bold(std::string text) {
  return {.text = std::move(text), .bold = true};
}
inline Span code(std::string text) {
  return {.text = std::move(text), .code = true};
}
inline Span linked(std::string text, std::string page) {
  return {.text = std::move(text), .link = std::move(page)};
}

struct Heading {
  std::string text;
};

struct Paragraph {
  std::vector<Line> lines;
  bool small = false;  // small print
};

inline Paragraph paragraph(std::string text) {
  return {{{plain(std::move(text))}}};
}

struct List {
  std::vector<Line> items;
};

struct Rows {
  Table table;
  size_t kept_at_end = 0;          // rows at the end that stay when others go: a mean, a total
  std::vector<Table> opened = {};  // what each row opens to in a browser; empty: none does
};

/// Commands to paste, each with what it is for: "To repeat".
struct Commands {
  struct Command {
    std::string purpose, text;
  };
  std::vector<Command> all;
};

/// A table that is drawn where one can draw, and is a table elsewhere.
struct Chart {
  std::string file;   // its specification (site_files.h)
  std::string title;  // says what is better
  Table table;
  std::vector<std::pair<std::string, std::string>> signals = {};  // of the file, with values
};

/// The level of one row over many runs: a chart that is kept in numbers, for a year
/// of ten thousand rows has 10^7 of its points. Where it is drawn, it gets its table,
/// too (reports/pages/unpack.js).
struct LevelChart {
  struct Run {
    std::string id, started, commit;
  };
  enum class Code { unknown, same, changed };  // beside the point before
  struct Point {
    uint32_t run = 0;   // index
    float log = 0;      // of the level
    float reach = 0;    // half of the interval of `log`; NaN: there is none
    int processes = 0;  // that measured it
    Code code = Code::unknown;
  };
  std::string file, title, unit;  // as of a Chart
  std::vector<std::pair<std::string, std::string>> signals;
  std::shared_ptr<const std::vector<Run>> runs;  // of all charts of a site
  std::vector<Point> points;                     // by run
  std::map<size_t, double> steps;                // at these points: the change, 0.08 is 8 % slower
  std::set<size_t> of_environment = {};          // which of these steps the environment made
};

using Block = std::variant<Heading, Paragraph, List, Rows, Commands, Chart, LevelChart>;

/// Blocks that stay or go together. Where the space is too short, the last rows or items of its
/// first table or list go before the section does.
struct Section {
  int rank = 0;  // the highest goes first, the later first among equals; 0 always stays
  std::vector<Block> blocks;
  /// Title under which it is out of sight until asked for, in words of the program's own: names
  /// from elsewhere belong into the blocks. Empty: in sight.
  std::string folded = {};
};

struct Page {
  std::vector<Section> sections;
  std::string elsewhere;  // where all of it can be read, "verdict.json"; empty: nowhere

  template <class... Blocks>
  void add(int rank, Blocks&&... blocks) {
    std::vector<Block>& added = sections.emplace_back(Section{rank, {}}).blocks;
    (added.emplace_back(std::forward<Blocks>(blocks)), ...);
  }
};

// A page as text for a terminal.

/// All of the page, folded sections too: a terminal scrolls. No line is longer than the screen is
/// wide but those of commands, which are there to be pasted.
std::string to_text(const Page& page, const Screen& screen);

// A history where nothing can be drawn.

/// "▁▁▂▇ 9.9 … 10.8 us, newest at the right", of the logarithms of levels. Without any: "nothing".
std::string level_line(const std::vector<double>& logs, const std::string& unit);
std::string level_line(const LevelChart& chart);

// A page as markdown: page_markdown.cc is the one place of report/ that knows its syntax and the
// sizes it may have.

/// Sizes in bytes that a forge takes: it refuses comments from 65,536 characters, and drops a
/// step's summary from 1 MiB. A file may have any size.
constexpr size_t kCommentBytes = 60'000;
constexpr size_t kSummaryBytes = (size_t{1} << 20) - 1;
constexpr size_t kAnyBytes = std::string::npos;

/// At most `max_bytes`. What does not fit is left out by rank and counted in the text: rows from
/// the end of a table first, then whole sections. Empty when not even the sections of rank 0 fit.
std::string to_markdown(const Page& page, size_t max_bytes);

}  // namespace moegate
