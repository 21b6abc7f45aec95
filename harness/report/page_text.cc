// SPDX-License-Identifier: Apache-2.0
#include "harness/report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "harness/base/escape.h"
#include "harness/base/table.h"
#include "harness/base/terminal.h"

namespace moegate {
namespace {

std::string text_of(const Line& line) {
  std::string text;
  for (const Span& span : line) text += span.text;
  return one_line(text);
}

class TextWriter {
 public:
  explicit TextWriter(const Screen& screen) : screen_(screen) {}

  std::string operator()(const Heading& heading) const { return strong(heading.text); }
  std::string operator()(const Paragraph& paragraph) const {
    std::string text;
    for (const Line& line : paragraph.lines) {
      const bool leads = !line.empty() && line.front().bold;
      text += leads ? strong(text_of(line)) : lines(text_of(line), "", "");
    }
    return text;
  }
  std::string operator()(const List& list) const {
    std::string text;
    for (const Line& item : list.items) text += lines(text_of(item), "- ", "  ");
    return text;
  }
  std::string operator()(const Rows& rows) const { return table_of(rows.table); }
  std::string operator()(const Commands& commands) const {
    std::string text;
    for (const auto& command : commands.all) {
      if (command.text.empty()) continue;
      text += lines(one_line(command.purpose) + ":", "", "") + "  " + one_line(command.text) + "\n";
    }
    return text;
  }
  std::string operator()(const Chart& chart) const {
    return strong(chart.title) + table_of(chart.table);
  }
  std::string operator()(const LevelChart& chart) const {
    return strong(chart.title) + lines(level_line(chart), "", "");
  }

  std::string strong(const std::string& text) const {
    const std::string all = lines(one_line(text), "", "");
    if (!screen_.colour || all.empty()) return all;
    return "\033[1m" + all.substr(0, all.size() - 1) + "\033[0m\n";
  }

 private:
  std::string table_of(const Table& table) const {
    return render_text(without_empty_columns(table), screen_);
  }
  std::string lines(const std::string& text, const std::string& first,
                    const std::string& next) const {
    std::string out;
    for (const std::string& line : wrapped(text, screen_.width - first.size()))
      out += (out.empty() ? first : next) + line + "\n";
    return out;
  }
  Screen screen_;
};

}  // namespace

std::string level_line(const std::vector<double>& logs, const std::string& unit) {
  constexpr double kLeastSpan = 0.05;  // what is less is drawn nearly flat
  if (logs.empty()) return "nothing";
  const auto [low, high] = std::ranges::minmax(logs);
  return fmt::format("{} {:.5g} … {:.5g} {}, newest at the right", sparkline(logs, kLeastSpan),
                     std::exp(low), std::exp(high), unit);
}

std::string level_line(const LevelChart& chart) {
  std::vector<double> logs;
  for (const LevelChart::Point& point : chart.points) logs.push_back(point.log);
  return level_line(logs, chart.unit);
}

std::string to_text(const Page& page, const Screen& screen) {
  const TextWriter writer(screen);
  std::string all;
  for (const Section& section : page.sections) {
    std::string title = section.folded.empty() ? "" : writer.strong(section.folded);
    for (const Block& block : section.blocks) {
      const std::string text = std::visit(writer, block);
      if (text.empty()) continue;
      for (const std::string& part : {std::exchange(title, ""), text}) {
        if (!part.empty()) all += (all.empty() ? "" : "\n") + part;
      }
    }
  }
  return all;
}

}  // namespace moegate
