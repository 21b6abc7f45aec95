// SPDX-License-Identifier: Apache-2.0
#include "harness/site/page_json.h"

#include <fmt/format.h>
#include <boost/algorithm/string/replace.hpp>
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
  const bool bare = cell.mark.empty() && !cell.bold;
  if (bare && cell.number && is_json_number(cell.text)) {
    out += cell.text;
  } else if (bare && !cell.number) {
    append_string(out, cell.text);
  } else {
    out += fmt::format(R"({{"t":{}{}{}{}}})", json_string(cell.text),
                       cell.number ? R"(,"n":1)" : "", cell.bold ? R"(,"b":1)" : "",
                       cell.mark.empty() ? "" : R"(,"m":)" + json_string(cell.mark));
  }
}

/// The cells of a column; one where all are the same.
std::string column_json(const Table& table, size_t column) {
  std::string out = "[", first, cell;
  bool same = true;
  for (const auto& row : table.rows) {
    cell.clear();
    append_cell(cell, row[column]);
    if (out.size() == 1) first = cell;
    if (out.size() > 1) out += ',';
    same = same && cell == first;
    out += cell;
  }
  if (same) out = "[" + first;
  out += ']';
  return out;
}

std::string table_json(const Table& table, SharedArrays& shared) {
  const std::string columns = shared.share(json_list(table.columns, append_string));
  std::vector<std::string> cells;
  for (size_t i = 0; i < table.columns.size(); ++i)
    cells.push_back(shared.share(column_json(table, i)));
  return fmt::format(
      R"({{"columns":{}{},"n":{},"cells":[{}]}})", columns,
      table.links.empty() ? "" : R"(,"links":)" + json_object(table.links, append_string),
      table.rows.size(), fmt::join(cells, ","));
}

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
  out += json_list(line, [](std::string& spans, const Span& span) {
    spans += fmt::format(R"({{"t":{}{}{}{}}})", json_string(span.text),
                         span.code ? R"(,"c":1)" : "", span.bold ? R"(,"b":1)" : "",
                         span.link.empty() ? "" : R"(,"l":)" + json_string(span.link));
  });
}

/// What charts of both kinds begin with.
template <class AnyChart>
std::string chart_json(const char* kind, const AnyChart& chart) {
  const auto signal = [](std::string& out, const std::string& value) {
    is_json_number(value) ? void(out += value) : append_string(out, value);
  };
  return fmt::format(R"({{"{}":{},"title":{},"signals":{})", kind,
                     json_string(chart_name(chart.file)), json_string(chart.title),
                     json_object(chart.signals, signal));
}

class BlockWriter {
 public:
  BlockWriter(std::string& out, SharedArrays& shared) : out_(out), shared_(shared) {}

  void operator()(const Heading& heading) {
    out_ += fmt::format(R"({{"h":{}}})", json_string(heading.text));
  }
  void operator()(const Paragraph& paragraph) {
    out_ += R"({"p":)" + json_list(paragraph.lines, append_line);
    out_ += paragraph.small ? R"(,"small":1})" : "}";
  }
  void operator()(const List& items) {
    out_ += R"({"l":)" + json_list(items.items, append_line) + "}";
  }
  void operator()(const Rows& rows) {
    const auto append = [&](std::string& out, const Table& t) { out += table_json(t, shared_); };
    out_ += R"({"t":)";
    append(out_, rows.table);
    if (!rows.opened.empty()) out_ += R"(,"o":)" + json_list(rows.opened, append);
    out_ += '}';
  }
  void operator()(const Commands& commands) {
    const auto append = [](std::string& out, const Commands::Command& command) {
      out += json_list(std::array{command.purpose, command.text}, append_string);
    };
    out_ += R"({"k":)" + json_list(commands.all, append) + "}";
  }
  void operator()(const Chart& chart) {
    out_ += chart_json("c", chart) + R"(,"t":)" + table_json(chart.table, shared_) + "}";
  }
  void operator()(const LevelChart& chart) {
    out_ += fmt::format(R"({},"unit":{},"runs":)", chart_json("y", chart), json_string(chart.unit));
    const auto append_run = [](std::string& out, const LevelChart::Run& run) {
      out += json_list(std::array{run.id, run.started, run.commit}, append_string);
    };
    out_ += shared_.share_of(chart.runs.get(), [&] { return json_list(*chart.runs, append_run); });
    append_shared("at", chart, [](const Point& p) { return p.run; });
    append_shared("processes", chart, [](const Point& p) { return p.processes; });
    append_shared("code", chart, [](const Point& p) { return static_cast<int>(p.code); });
    out_ += R"(,"level":)" + json_list(chart.points, [](std::string& out, const Point& p) {
              append_value(out, std::exp(p.log));
            });
    out_ += R"(,"reach":)" + json_list(chart.points, [](std::string& out, const Point& p) {
              append_value(out, std::round(p.reach / kReachUnit));
            });
    out_ += R"(,"steps":)" + json_list(chart.steps, [&](std::string& out, const auto& step) {
              out += fmt::format("[{},", step.first);
              append_value(out, 100 * step.second);
              out += chart.of_environment.contains(step.first) ? ",1]" : "]";
            });
    out_ += '}';
  }

 private:
  using Point = LevelChart::Point;

  /// Adds an array of a whole number for each point. Most are those of other rows, too.
  template <class Number>
  void append_shared(const char* name, const LevelChart& chart, const Number& number) {
    out_ += fmt::format(R"(,"{}":)", name);
    out_ += shared_.share(json_list(chart.points, [&](std::string& out, const Point& p) {
      out += fmt::format_int(number(p)).c_str();
    }));
  }

  std::string& out_;
  SharedArrays& shared_;
};

}  // namespace

std::string shown_text(const std::string& text) {
  return one_line(valid_utf8(text));
}

std::string json_string(const std::string& text) {
  std::string out;
  append_string(out, text);
  return out;
}

void append_string(std::string& out, const std::string& text) {
  // Names and numbers, nearly all of what there is, need no escapes.
  if (std::ranges::all_of(text, is_plain)) {
    out += '"';
    out += text;
    out += '"';
    return;
  }
  std::string dumped = nlohmann::json(shown_text(text)).dump(-1, ' ', true);
  boost::replace_all(dumped, "<", "\\u003c");
  boost::replace_all(dumped, ">", "\\u003e");
  boost::replace_all(dumped, "&", "\\u0026");
  out += dumped;
}

std::string SharedArrays::share(std::string array) {
  return array.size() <= kShortArray ? array : std::to_string(number_of(std::move(array)));
}

size_t SharedArrays::number_of(std::string array) {
  const auto [at, fresh] = numbers_.try_emplace(std::move(array), arrays_.size());
  if (fresh) arrays_.push_back(&at->first);
  return at->second;
}

std::string SharedArrays::json() const {
  return json_list(arrays_, [](std::string& out, const std::string* array) { out += *array; });
}

std::string json_table(const Table& table) {
  SharedArrays shared;
  const std::string packed = table_json(table, shared);
  return fmt::format(R"({{"shared":{},"table":{}}})", shared.json(), packed);
}

std::string chart_name(const std::string& file) {
  return std::filesystem::path(file).stem().stem().string();  // without .vg.json
}

void PagesJson::add(const std::string& name, const Page& page, const std::string& title) {
  pages_ += fmt::format(R"({}{}:{{"title":{},"blocks":[)", pages_.empty() ? "" : ",",
                        json_string(name), json_string(title));
  for (const Section& section : page.sections) {
    for (const Block& block : section.blocks) {
      if (pages_.back() != '[') pages_ += ',';
      std::visit(BlockWriter(pages_, shared_), block);
    }
  }
  pages_ += "]}";
}

std::string PagesJson::json() const {
  return fmt::format(R"({{"shared":{},"pages":{{{}}}}})", shared_.json(), pages_);
}

}  // namespace moegate
