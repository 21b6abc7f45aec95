// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "harness/base/escape.h"
#include "harness/base/text.h"
#include "harness/report/page.h"

namespace moegate {
namespace {

constexpr size_t kNoteBytes = 120;  // of what says how much is left out, at most

/// A line that would start a heading, a list or a rule gets a backslash that stops it.
std::string no_block_start(std::string text) {
  static const re2::RE2 mark(R"(^(#+|\++|-+|=+)( |$))"), number(R"(^(\d+)([.)])( |$))");
  text.erase(0, text.find_first_not_of(' '));
  re2::RE2::Replace(&text, mark, R"(\\\1\2)");
  re2::RE2::Replace(&text, number, R"(\1\\\2\3)");
  return text;
}

std::string markdown_line(const Line& line) {
  std::string text;
  bool in_bold = false;
  for (const Span& span : line) {
    if (span.text.empty()) continue;
    if (span.bold != in_bold) text += "**";
    in_bold = span.bold;
    text += span.code ? markdown_code(span.text) : markdown_escaped(span.text);
  }
  return no_block_start(in_bold ? text + "**" : text);
}

std::string see(const Page& page) {
  return page.elsewhere.empty() ? "" : "; see " + page.elsewhere;
}

/// Rows of the section that can go one by one: those of its first table or list.
size_t rows_of(const Section& section) {
  for (const Block& block : section.blocks) {
    if (const auto* list = std::get_if<List>(&block)) return list->items.size();
    if (const auto* rows = std::get_if<Rows>(&block))
      return rows->table.rows.size() - std::min(rows->kept_at_end, rows->table.rows.size());
  }
  return 0;
}

/// Writes blocks; the first table or list has `left` of its rows.
class Writer {
 public:
  explicit Writer(size_t left) : left_(left) {}

  std::string operator()(const Heading& heading) {
    return "### " + markdown_escaped(heading.text) + "\n";
  }
  std::string operator()(const Paragraph& paragraph) {
    std::string text;
    for (const Line& line : paragraph.lines)
      text += (text.empty() ? "" : "\n") + markdown_line(line);
    return (paragraph.small ? "<sub>" + text + "</sub>" : text) + "\n";
  }
  std::string operator()(const List& list) {
    const size_t n = take(list.items.size());
    std::string text;
    for (size_t i = 0; i < n; ++i) text += "- " + markdown_line(list.items[i]) + "\n";
    return text;
  }
  std::string operator()(const Rows& rows) {
    const auto& all = rows.table.rows;
    const size_t end = std::min(rows.kept_at_end, all.size());
    const size_t n = take(all.size() - end);
    Table table{rows.table.columns, {all.begin(), all.begin() + static_cast<ptrdiff_t>(n)}};
    table.rows.insert(table.rows.end(), all.end() - static_cast<ptrdiff_t>(end), all.end());
    return render(table, Format::md);
  }
  std::string operator()(const Commands& commands) {
    std::string text;
    for (const auto& command : commands.all) {
      if (command.text.empty()) continue;
      text += markdown_escaped(command.purpose) + ": " + markdown_code(command.text) + "\n";
    }
    return text;
  }
  std::string operator()(const Chart& chart) {
    return markdown_escaped(chart.title) + "\n\n" + render(chart.table, Format::md);
  }
  std::string operator()(const LevelChart& chart) {
    return markdown_escaped(chart.title) + "\n\n" + markdown_escaped(level_line(chart)) + "\n";
  }

 private:
  size_t take(size_t rows) {
    const size_t n = std::min(rows, left_);
    left_ = kAnyBytes;  // the next is whole
    return n;
  }
  size_t left_;
};

bool has_rows(const Block& block) {
  return std::holds_alternative<Rows>(block) || std::holds_alternative<List>(block);
}

/// The section with so many of its rows, its blocks apart by an empty line.
std::string written(const Page& page, const Section& section, size_t rows) {
  size_t left_out = rows_of(section) - rows;
  Writer writer(rows);
  std::string text;
  for (const Block& block : section.blocks) {
    const std::string next = std::visit(writer, block);
    if (next.empty()) continue;
    text += (text.empty() ? "" : "\n") + next;
    if (left_out == 0 || !has_rows(block)) continue;
    text += fmt::format("\n{} more left out for size{}.\n", left_out, see(page));
    left_out = 0;
  }
  if (section.folded.empty() || text.empty()) return text;
  return fmt::format("<details><summary>{}</summary>\n\n{}\n</details>\n",
                     xml_escaped(section.folded), text);
}

/// Most rows with which the section takes at most `room` bytes; nothing when one is too many.
std::optional<size_t> fitting_rows(const Page& page, const Section& section, size_t room) {
  const auto fits = [&](size_t rows) { return written(page, section, rows).size() <= room; };
  const size_t all = rows_of(section);
  if (fits(all)) return all;
  constexpr size_t kRowBytes = 4;  // at least: "- \n" and a character
  size_t most = 0, too_many = std::min(all, room / kRowBytes + 1);
  while (most + 1 < too_many) {
    const size_t middle = (most + too_many) / 2;
    (fits(middle) ? most : too_many) = middle;
  }
  return most > 0 ? std::optional(most) : std::nullopt;
}

struct LeftOut {
  size_t first = kAnyBytes;  // index
  size_t tables = 0, rows = 0, paragraphs = 0;

  void add(size_t index, const Section& section) {
    first = std::min(first, index);
    const bool table = std::any_of(section.blocks.begin(), section.blocks.end(),
                                   [](const Block& b) { return std::holds_alternative<Rows>(b); });
    if (table) rows += rows_of(section);
    ++(table ? tables : paragraphs);
  }
};

std::string note_of(const Page& page, const LeftOut& left_out) {
  std::string text;
  if (left_out.tables > 0) {
    text = fmt::format("{} with {}", count_of(left_out.tables, "more table"),
                       count_of(left_out.rows, "row"));
  }
  if (left_out.paragraphs > 0)
    text += (text.empty() ? "" : " and ") + count_of(left_out.paragraphs, "more paragraph");
  return fmt::format("{} left out for size{}.\n", text, see(page));
}

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) {
    if (!text.empty()) all += (all.empty() ? "" : "\n") + text;
  }
  return all;
}

/// The sections' texts where not all of them fit; none when rank 0 does not.
std::vector<std::string> fitted(const Page& page, size_t max_bytes) {
  std::vector<std::string> texts(page.sections.size());
  LeftOut left_out;
  size_t used = kNoteBytes + page.elsewhere.size();
  std::vector<size_t> order(page.sections.size());  // in which they get their space
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return page.sections[i].rank; });
  bool full = false;  // nothing comes after a table that is cut: what is missing is the end
  for (const size_t i : order) {
    const Section& section = page.sections[i];
    std::optional<size_t> rows;
    if ((!full || section.rank == 0) && used < max_bytes)
      rows = fitting_rows(page, section, max_bytes - used - 1);  // 1: the empty line
    if (!rows && section.rank == 0) return {};
    if (rows_of(section) > 0 && rows.value_or(0) < rows_of(section)) full = true;
    if (rows) {
      texts[i] = written(page, section, *rows);
      used += texts[i].size() + 1;
    } else {
      left_out.add(i, section);
    }
  }
  if (left_out.first < texts.size()) texts[left_out.first] = note_of(page, left_out);
  return texts;
}

}  // namespace

std::string to_markdown(const Page& page, size_t max_bytes) {
  const std::string all = joined(mapped(page.sections, [&](const Section& section) {
    return written(page, section, rows_of(section));
  }));
  return all.size() <= max_bytes ? all : joined(fitted(page, max_bytes));
}

}  // namespace moegate
