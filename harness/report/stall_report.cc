// SPDX-License-Identifier: Apache-2.0
#include "harness/report/stall_report.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "harness/base/error.h"
#include "harness/judge/stall_lines.h"

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
               "head at", "line"},
              {}};
  for (const StallLine& l : lines) {
    if (table.rows.size() == most) break;
    table.rows.push_back({{l.kernel},
                          {l.instruction},
                          {l.reason},
                          {fmt::format("{:.1f}", 100 * l.base_share), true},
                          {fmt::format("{:.1f}", 100 * l.head_share), true},
                          {fmt::format("{:+.1f}", 100 * l.change()), true},
                          {offset_text(l.base_offset)},
                          {offset_text(l.head_offset)},
                          {l.line}});
  }
  return table;
}

void require_stalls(const RunInfo& run) {
  if (run.task == "stalls") return;
  usage_error(
      "{} holds no samples of stalls but task '{}'; take them with `moegate profile --stalls`",
      describe(run), run.task);
}

}  // namespace

std::vector<Section> stall_sections(const std::vector<Level>& base, const std::vector<Level>& head,
                                    size_t most) {
  const StallRows before = stall_rows(base);
  std::vector<Section> sections;
  for (const auto& [id, now] : stall_rows(head)) {
    const auto was = before.find(id);
    if (was == before.end()) continue;
    Section& section = sections.emplace_back(Section{.rank = 1, .blocks = {}});
    const auto& [suite, key, variant] = id;
    Paragraph what{{{code(key), plain(" "), code(variant)},
                    {plain(sampled_text("base", was->second) + "; " + sampled_text("head", now))}}};
    if (sum_of(was->second, "pc_rows_without_sass") + sum_of(now, "pc_rows_without_sass") > 0) {
      what.lines.push_back(
          {plain("Some instructions have no text: nvdisasm was not found, or could "
                 "not read the kernel; their offsets were compared.")});
    }
    section.blocks.emplace_back(std::move(what));
    Table table = stall_table(align_stalls(was->second, now), most);
    if (table.rows.empty()) {
      section.blocks.emplace_back(Paragraph{{{plain("No warp was seen waiting.")}}});
    } else {
      section.blocks.emplace_back(Rows{std::move(table)});
    }
  }
  return sections;
}

Page stall_page(Store& store, int64_t base, int64_t head, size_t most) {
  const RunInfo before = store.run_info(base), after = store.run_info(head);
  require_stalls(before);
  require_stalls(after);
  Page page;
  page.sections =
      stall_sections(store.levels_with_launches(base), store.levels_with_launches(head), most);
  if (page.sections.empty()) {
    usage_error("{} and {} have no case and variant in common", describe(before), describe(after));
  }
  const std::string first = fmt::format(
      "Where warps wait, {} beside {}: the {} instructions whose share of all samples changed "
      "most.",
      describe(before), describe(after), most);
  page.sections.insert(page.sections.begin(),
                       Section{.rank = 0, .blocks = {Paragraph{{{plain(first)}}}}});
  return page;
}

}  // namespace moegate
