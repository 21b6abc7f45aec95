// SPDX-License-Identifier: Apache-2.0
#include "harness/report/pr_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "harness/base/table.h"
#include "harness/judge/ratchet.h"
#include "harness/report/pr_rows.h"
#include "harness/values/roofline.h"

namespace moegate {
namespace {

constexpr size_t kMaxBytes = 60'000;      // forges reject comments beyond 65,536 characters
constexpr double kComputeBound = 100;     // operations per byte from which a rate is in TFLOPS
constexpr double kNoticeableBits = 0.25;  // of accuracy that a gain in speed may not cost silently

/// Plain text inside markdown and HTML.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '\n' || c == '\r') {
      out += ' ';
    } else {
      if (std::string("\\`*_[]~|&").find(c) != std::string::npos) out += '\\';
      out += c;
    }
  }
  return out;
}

/// A code span; two back-ticks around a text that has one.
std::string code(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return text.find('`') == std::string::npos ? "`" + text + "`" : "`` " + text + " ``";
}

std::string text_of(const std::optional<Interval>& log_interval) {
  if (!log_interval) return "";
  return fmt::format("{:.3f}–{:.3f}", std::exp(log_interval->low), std::exp(log_interval->high));
}

std::string us_text(const double* us) {
  if (!us || !(*us > 0)) return "";
  return *us < 100 ? fmt::format("{:.2f}", *us) : fmt::format("{:.1f}", *us);
}

std::optional<double> bits_of(const PrRow& row) {
  if (!row.base || !row.head) return std::nullopt;
  return accuracy_change_bits(*row.base, *row.head);
}

std::string bits_text(const PrRow& row) {
  const auto bits = bits_of(row);
  if (!bits) return "";
  return *bits == 0 ? "=" : fmt::format("{:+.2f}", *bits);  // zero: bit-identical
}

std::string speedup_text(const PrRow& row) {
  if (row.kind == PrKind::uncompared) return name_of(row.verdict->outcome);
  if (row.verdict->outcome == Outcome::identical) return "=";
  if (row.kind == PrKind::slower) return fmt::format("{:.3f}x ▼", std::exp(*row.log_speedup));
  if (row.kind != PrKind::faster) return "~";
  const auto bits = bits_of(row);
  const bool costly = bits && !(*bits <= kNoticeableBits);  // NaN is costly
  return fmt::format("**{:.3f}x**{}", std::exp(*row.log_speedup), costly ? " ⚠" : "");
}

bool is_compute_bound(const Cost& cost) {
  return cost.flops > kComputeBound * (cost.read_bytes + cost.write_bytes);
}

std::string rate_text(const Cost& cost, const double* us) {
  if (!us || !(*us > 0)) return "";
  if (is_compute_bound(cost)) return fmt::format("{:.1f}", cost.flops / *us / 1e6);
  const double bytes = cost.read_bytes + cost.write_bytes;
  return bytes > 0 ? fmt::format("{:.1f}", bytes / *us / 1e3) : "";
}

/// "71.2 (mem)": share of the roofline, and which of the two roofs it is.
std::string ceiling_text(const Cost& cost, const double* us, const PrTables& tables) {
  const Roofline roof = roofline(cost, tables.ceilings, tables.head.device.cache_bytes);
  if (!us || !(*us > 0) || !(roof.floor_s() > 0)) return "";
  return fmt::format("{:.1f} ({})", 100e6 * roof.floor_s() / *us,
                     roof.flops_s > roof.bytes_s ? "comp" : "mem");
}

std::string speedup_text(const PrGeomean& g) {
  if (g.n == 0) return "";
  if (g.all_identical) return "=";
  const std::string text = fmt::format("{:.3f}x", std::exp(g.log_speedup));
  if (g.interval && g.interval->low > 0) return "**" + text + "**";
  if (g.interval && g.interval->high < 0) return text + " ▼";
  return "~";
}

/// One unit for the column where the rows agree on it, else one in each cell.
std::string rate_column(const std::vector<PrRow>& rows) {
  const auto compute =
      static_cast<size_t>(std::count_if(rows.begin(), rows.end(), [](const PrRow& row) {
        return is_compute_bound(row.facts->cost);
      }));
  if (compute == rows.size()) return "TFLOPS";
  return compute == 0 ? "GB/s" : "rate";
}

Table table_of(const std::vector<PrRow>& rows, const PrTables& tables) {
  const std::string rate = rate_column(rows);
  Table table;
  table.columns = {"tokens",  "Before (us)", "After (us)",   "Speedup",
                   "95 % CI", rate,          "% of ceiling", "accuracy change (bits)"};
  const auto add = [&](const std::array<std::string, 8>& cells) {
    table.rows.emplace_back();
    for (const std::string& text : cells) table.rows.back().push_back({text, true});
  };
  for (const PrRow& row : rows) {
    const Cost& cost = row.facts->cost;
    const double* after = find(tables.head_us, row.verdict->id);
    std::string achieved = rate_text(cost, after);
    if (rate == "rate" && !achieved.empty())
      achieved += is_compute_bound(cost) ? " TFLOPS" : " GB/s";
    add({row.facts->tokens < 0 ? "" : fmt::format("{}", row.facts->tokens),
         us_text(find(tables.base_us, row.verdict->id)), us_text(after), speedup_text(row),
         text_of(log_interval(row)), achieved, ceiling_text(cost, after, tables), bits_text(row)});
  }
  const PrGeomean g = geomean_of(rows);
  add({fmt::format("**geomean ({})**", g.n), "", "", speedup_text(g), text_of(g.interval), "", "",
       ""});
  return table;
}

std::string counts_line(const std::vector<PrRow>& rows) {
  const auto count = [&](PrKind kind) {
    return std::count_if(rows.begin(), rows.end(), [&](const PrRow& r) { return r.kind == kind; });
  };
  std::string text =
      fmt::format("{} faster / {} slower / {} same / {} inconclusive", count(PrKind::faster),
                  count(PrKind::slower), count(PrKind::same), count(PrKind::inconclusive));
  if (count(PrKind::uncompared) > 0)
    text += fmt::format(" / {} not compared", count(PrKind::uncompared));
  return text;
}

std::string section_of(const PrGroup& group, const std::vector<PrRow>& rows,
                       const PrTables& tables) {
  const auto& [suite, model, op, config, variant] = group;
  std::string title = fmt::format("**{} · {} · {} ({})", escaped(op), code(variant), escaped(model),
                                  escaped(suite));
  if (!config.empty()) title += " · " + escaped(config);
  return fmt::format("{}**\n\n{}\n\n{}\n", title, counts_line(rows),
                     render(table_of(rows, tables), Format::md));
}

/// "3", or "4–16" where some cases were measured more often.
std::string processes_text(const PrTables& tables) {
  std::set<int> n;
  for (const Sides* sides : {&tables.base_sides, &tables.head_sides}) {
    for (const auto& [id, side] : *sides) {
      if (side.level.n > 0) n.insert(side.level.n);
    }
  }
  if (n.empty()) return "no";
  return n.size() == 1 ? fmt::format("{}", *n.begin())
                       : fmt::format("{}–{}", *n.begin(), *n.rbegin());
}

std::string commit_text(const RunInfo& run) {
  return fmt::format("{}{}", run.git_sha.empty() ? "unknown" : escaped(run.git_sha),
                     run.dirty ? " **DIRTY**" : "");
}

std::string footer(const PrTables& tables) {
  const RunInfo& head = tables.head;
  const Limits& limits = tables.limits;
  std::string text = fmt::format(
      "<sub>Protocol {}, {}, timer {}, {} processes per arm in ABBA order, one {} ({}), "
      "{}, ",
      head.protocol, head.flush == "none" ? "no flush" : "cold, flush " + head.flush, head.timer,
      processes_text(tables), escaped(head.device.name), escaped(head.device.uuid),
      escaped(head.device.driver));
  text += fmt::format("base {}, head {}. Speedup = before / after; = is identical code or output, ",
                      commit_text(tables.base), commit_text(head));
  text += fmt::format("\\~ is not distinguished from ±{:.3g} % (family-wise error {:g}). ",
                      100 * limits.margin, limits.alpha);
  if (head.device.backend == Backend::host) {
    text +=
        "On a host, before and after are spans as they were; the speed-up is that of the ratio to "
        "the yardstick variant, which is timed beside each sample. ";
  }
  text +=
      fmt::format("{} of {} cases blind at {:.3g} %. To repeat: {}</sub>\n", tables.result.blind,
                  tables.result.judged, 100 * limits.blind_at, code(head.command));
  return text;
}

}  // namespace

std::string markdown(const PrTables& tables) {
  const std::string last = footer(tables);
  std::string text;
  size_t left_out = 0;
  for (const auto& [group, rows] : group_rows(tables)) {
    const std::string section = section_of(group, rows, tables);
    // Nothing after the first that does not fit, so that what is missing is the end.
    if (left_out > 0 || text.size() + section.size() + last.size() > kMaxBytes) {
      ++left_out;
    } else {
      text += section;
    }
  }
  if (left_out > 0) text += fmt::format("{} more tables did not fit in a comment.\n\n", left_out);
  return text + last;
}

}  // namespace moegate
