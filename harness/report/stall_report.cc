// SPDX-License-Identifier: Apache-2.0
#include "harness/report/explain.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "harness/base/text.h"
#include "harness/cause/stall_lines.h"

namespace moegate {
namespace {

using StallRows = std::map<std::tuple<std::string, std::string, std::string>, Result>;

/// By suite, key and variant; stalls and metrics of processes one after the other.
StallRows stall_rows(const std::vector<Level>& levels) {
  StallRows rows;
  for (const Level& level : levels) {
    const Result& r = level.result;
    Result& all = rows[{level.suite, level.key, level.variant}];
    if (all.kernels.empty()) all.kernels = r.kernels;
    all.stalls.insert(all.stalls.end(), r.stalls.begin(), r.stalls.end());
    all.metrics.insert(all.metrics.end(), r.metrics.begin(), r.metrics.end());
  }
  return rows;
}

double sum_of(const Result& r, const std::string& metric) {
  double sum = 0;
  for (const Metric& m : r.metrics) {
    if (m.name == metric && m.ordinal == Metric::kWholeLaunch) sum += m.value;
  }
  return sum;
}

std::string sampled_text(const char* side, const Result& r) {
  std::string text = fmt::format("{}: {:.0f} samples of {:.0f} launches", side,
                                 sum_of(r, "pc_samples"), sum_of(r, "pc_launches"));
  if (sum_of(r, "pc_samples_dropped") > 0) {
    text += fmt::format(", {:.0f} dropped", sum_of(r, "pc_samples_dropped"));
  }
  if (sum_of(r, "pc_buffer_full") > 0) text += ", the buffer was full";
  return text;
}

std::string offset_text(const std::optional<int64_t>& offset) {
  return offset ? fmt::format("{:04x}", *offset) : "";
}

Table stall_table(const std::vector<StallLine>& lines, size_t most) {
  Table table{{"kernel", "instruction", "reason", "base %", "head %", "points", "base at",
               "head at", "line"}};
  for (const StallLine& l : lines) {
    if (table.rows.size() == most) break;
    table.add(l.kernel, l.instruction, l.reason, Table::number("{:.1f}", 100 * l.base_share),
              Table::number("{:.1f}", 100 * l.head_share),
              Table::number("{:+.1f}", 100 * l.change()), offset_text(l.base_offset),
              offset_text(l.head_offset), l.line);
  }
  return table;
}

std::vector<Level> levels_asked_about(Store& store, int64_t run, const ExplainQuery& query) {
  const Pattern cases = compile_pattern("--filter", query.case_pattern);
  const Pattern variants = compile_pattern("--variant", query.variant_pattern);
  std::vector<Level> levels = store.levels(run, /*launches=*/true);
  std::erase_if(levels, [&](const Level& level) {
    return !cases.found_in(level.key) || !variants.found_in(level.variant);
  });
  return levels;
}

void add_stalls(Page& page, const std::vector<Level>& base, const std::vector<Level>& head,
                size_t most) {
  const StallRows before = stall_rows(base);
  for (const auto& [id, now] : stall_rows(head)) {
    const auto was = before.find(id);
    if (was == before.end()) continue;
    const auto& [suite, key, variant] = id;
    Paragraph what{{{code(key), plain(" "), code(variant)},
                    {plain(sampled_text("base", was->second) + "; " + sampled_text("head", now))}}};
    if (sum_of(was->second, "pc_rows_without_sass") + sum_of(now, "pc_rows_without_sass") > 0) {
      what.lines.push_back(
          {plain("Some instructions have no text: nvdisasm was not found, or could "
                 "not read the kernel; their offsets were compared.")});
    }
    Table table = stall_table(align_stalls(was->second, now), most);
    if (table.rows.empty()) {
      page.add(1, std::move(what), paragraph("No warp was seen waiting."));
    } else {
      page.add(1, std::move(what), Rows{std::move(table)});
    }
  }
}

}  // namespace

bool are_of_stalls(const RunInfo& base, const RunInfo& head) {
  constexpr std::string_view kStalls = "stalls";
  return base.task == kStalls && head.task == kStalls;
}

Page stall_page(Store& store, const ExplainQuery& query, size_t most) {
  const RunInfo before = store.run_info(query.base), after = store.run_info(query.head);
  Page page;
  page.add(0, paragraph(fmt::format("Where warps wait, {} beside {}: the {} instructions whose "
                                    "share of all samples changed most.",
                                    describe(before), describe(after), most)));
  add_stalls(page, levels_asked_about(store, query.base, query),
             levels_asked_about(store, query.head, query), most);
  if (page.sections.size() == 1) throw nothing_in_common(before, after, query);
  return page;
}

}  // namespace moegate
