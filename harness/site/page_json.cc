// SPDX-License-Identifier: Apache-2.0
#include "harness/site/page_json.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <iterator>

namespace moegate {
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
