// SPDX-License-Identifier: Apache-2.0
#include "harness/report/pr_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "harness/base/error.h"
#include "harness/base/stats.h"
#include "harness/base/table.h"
#include "harness/base/text.h"
#include "harness/judge/ratchet.h"
#include "harness/store/rows.h"
#include "harness/values/roofline.h"

namespace moegate {
namespace {

// The numbers behind the tables: what became of each row, its speed-up and interval, and the
// geomean of a table.

/// uncompared: wrong, missing, new, not comparable.
enum class PrKind { faster, slower, same, inconclusive, uncompared };

struct PrRow {
  const CaseVerdict* verdict;
  const PrCase* facts;
  PrKind kind;
  std::optional<double> log_speedup;  // absent where nothing was compared
  const Side* base;                   // null: not measured there
  const Side* head;
};

/// The rows of one table share these: suite, model, op, config, variant.
using PrGroup = std::array<std::string, 5>;

struct PrGeomean {
  int n = 0;  // rows with a speed-up
  double log_speedup = 0;
  bool all_identical = true;
  std::optional<Interval> interval;  // of the logarithm
};

PrKind kind_of(const CaseVerdict& v) {
  if (v.outcome == Outcome::identical) return PrKind::same;
  if (v.outcome == Outcome::inconclusive && !v.latency) return PrKind::inconclusive;
  if (v.outcome == Outcome::wrong || !v.latency) return PrKind::uncompared;
  const Outcome latency = latency_outcome(v);
  if (latency == Outcome::improved) return PrKind::faster;
  if (latency == Outcome::regressed) return PrKind::slower;
  return latency == Outcome::pass ? PrKind::same : PrKind::inconclusive;
}

PrRow row_of(const CaseVerdict& v, const PrTables& tables) {
  static const PrCase unknown;
  const PrCase* facts = find_or_null(tables.cases, v.id.key);
  PrRow row{.verdict = &v,
            .facts = facts ? facts : &unknown,
            .kind = kind_of(v),
            .base = find_or_null(tables.base_sides, v.id),
            .head = find_or_null(tables.head_sides, v.id)};
  if (v.outcome == Outcome::identical) row.log_speedup = 0;
  if (v.outcome != Outcome::identical && row.kind != PrKind::uncompared && v.latency)
    row.log_speedup = -std::log1p(v.latency->effect);
  return row;
}

/// Every row that can have a speed-up, by table, tokens ascending. The rows point into `tables`.
std::map<PrGroup, std::vector<PrRow>> group_rows(const PrTables& tables) {
  std::map<PrGroup, std::vector<PrRow>> groups;
  for (const CaseVerdict& v : tables.result.cases) {
    const PrRow row = row_of(v, tables);
    groups[{v.id.suite, row.facts->model, row.facts->op, row.facts->config, v.id.variant}]
        .push_back(row);
  }
  for (auto& [group, rows] : groups) {
    std::ranges::stable_sort(rows, {}, [](const PrRow& row) { return row.facts->tokens; });
  }
  return groups;
}

/// Two-sided 95 % interval of the log speed-up, of the judgement; nothing without a spread.
std::optional<Interval> log_interval(const PrRow& row) {
  if (!row.log_speedup || !row.verdict->latency) return std::nullopt;
  if (row.verdict->outcome == Outcome::identical) return std::nullopt;
  const Judgement& j = *row.verdict->latency;
  if (!(j.df > 0)) return std::nullopt;
  const double reach = student_975(j.df) * j.se;
  return Interval{*row.log_speedup - reach, *row.log_speedup + reach};
}

/// Over every row with a speed-up. The interval is Student's over the rounds that all timed rows
/// have (another set of rows has another mean), of the mean over the rows, identical ones as 0;
/// nothing below two such rounds.
PrGeomean geomean_of(const std::vector<PrRow>& rows) {
  PrGeomean g;
  std::map<int, std::vector<double>> rounds;  // log speed-ups
  size_t timed = 0;
  for (const PrRow& row : rows) {
    if (!row.log_speedup) continue;
    ++g.n;
    g.log_speedup += *row.log_speedup;
    if (row.verdict->outcome == Outcome::identical || !row.base || !row.head) continue;
    ++timed;
    const Quantity quantity = compared(*row.base, *row.head);
    for (const auto& [round, level] : row.head->rounds(quantity)) {
      if (const double* base = find_or_null(row.base->rounds(quantity), round))
        rounds[round].push_back(std::log(*base / level));
    }
  }
  if (g.n == 0) return g;
  g.log_speedup /= g.n;
  g.all_identical = timed == 0;
  std::vector<double> speedups;
  for (const auto& [round, values] : rounds) {
    if (values.size() == timed)  // another set of rows would have another mean
      speedups.push_back(std::exp(mean(values) * static_cast<double>(timed) / g.n));
  }
  if (speedups.size() < 2) return g;
  const Interval rounds_say = geometric_mean_interval(speedups);
  const double reach = std::log(rounds_say.high / rounds_say.low) / 2;
  g.interval = Interval{g.log_speedup - reach, g.log_speedup + reach};
  return g;
}

// What the tables of a pull request are made of, from the store.

/// "op/experts=256,tokens=8,topk=8" -> "experts=256 topk=8": all but the tokens.
std::string config_of(const std::string& key) {
  const size_t slash = key.find('/');
  if (slash == std::string::npos) return "";
  std::vector<std::string> params = split_list(key.substr(slash + 1));
  std::erase_if(params, [](const auto& p) { return p.empty() || p.starts_with("tokens="); });
  return fmt::format("{}", fmt::join(params, " "));
}

void read_cases(Store& store, int64_t run, std::map<std::string, PrCase>& cases) {
  Statement q(store.database(),
              "SELECT key, section, op, json_extract(params, '$.tokens') AS tokens, flops, "
              "read_bytes, write_bytes "
              "FROM run_case JOIN bench_case USING (case_id) WHERE run_id = ?1");
  q.bind(run);
  const Columns c(q);
  while (q.step()) {
    const std::string key = c.text("key");
    // SQLite reads the number at the start of a text.
    cases[key] = {.model = c.text("section"),
                  .op = c.text("op"),
                  .config = config_of(key),
                  .tokens = c.is_null("tokens") ? -1 : c.integer("tokens"),
                  .cost = {.flops = c.real("flops"),
                           .read_bytes = c.real("read_bytes"),
                           .write_bytes = c.real("write_bytes")}};
  }
}

/// `only`: the one variant that counts; `shown`: what it is called. Both empty: all, as they are.
Sides read_side(Store& store, const RunInfo& run, const std::string& only,
                const std::string& shown) {
  Sides all = collect(store.each_level(run.id));
  if (only.empty()) return all;
  Sides sides;
  for (auto& [id, side] : all) {
    if (id.variant == only) sides[{id.suite, id.key, shown}] = std::move(side);
  }
  if (sides.empty()) {
    usage_error("{} holds no result of variant '{}'; `moegate list kernels` shows the variants",
                describe(run), only);
  }
  return sides;
}

constexpr double kComputeBound = 100;     // operations per byte from which a rate is in TFLOPS
constexpr double kNoticeableBits = 0.25;  // of accuracy that a gain in speed may not cost silently

std::string text_of(const std::optional<Interval>& log_interval) {
  if (!log_interval) return "";
  return fmt::format("{:.3f}–{:.3f}", std::exp(log_interval->low), std::exp(log_interval->high));
}

/// Geometric mean of the spans of the processes that are behind the level; 0: there are none.
double us_of(const Side* side) {
  return side ? evidence_of(side->times).level() : 0;
}

std::string us_text(double us) {
  if (us <= 0) return "";
  return us < 100 ? fmt::format("{:.2f}", us) : fmt::format("{:.1f}", us);
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

Table::Cell number(std::string text) {
  return {.text = std::move(text), .number = true};
}

/// "≈3.650x": the number that there is.
std::string uncertain_speedup(const CaseVerdict& v) {
  const double speedup = v.latency                  ? 1 / (1 + v.latency->effect)
                         : v.base > 0 && v.head > 0 ? v.base / v.head
                                                    : 0;
  return speedup > 0 ? fmt::format("≈{:.3f}x", speedup) : "~";
}

Table::Cell speedup_cell(const PrRow& row) {
  if (row.kind == PrKind::uncompared) return number(name_of(row.verdict->outcome));
  if (row.verdict->outcome == Outcome::identical) return number("=");
  if (row.kind == PrKind::inconclusive) return number(uncertain_speedup(*row.verdict));
  if (row.kind == PrKind::same) return number("~");
  Table::Cell cell = number(fmt::format("{:.3f}x", std::exp(*row.log_speedup)));
  if (row.kind == PrKind::slower) {
    cell.mark = "▼";
    return cell;
  }
  cell.bold = true;
  const auto bits = bits_of(row);
  if (bits && !(*bits <= kNoticeableBits)) cell.mark = "⚠";  // NaN is costly
  return cell;
}

bool is_compute_bound(const Cost& cost) {
  return cost.flops > kComputeBound * (cost.read_bytes + cost.write_bytes);
}

std::string rate_text(const Cost& cost, double us) {
  if (us <= 0) return "";
  if (is_compute_bound(cost)) return fmt::format("{:.1f}", cost.flops / us / 1e6);
  const double bytes = cost.read_bytes + cost.write_bytes;
  return bytes > 0 ? fmt::format("{:.1f}", bytes / us / 1e3) : "";
}

/// "71.2 (mem)": share of the roofline, and which of the two roofs it is.
std::string ceiling_text(const Cost& cost, double us, const PrTables& tables) {
  const Roofline roof = roofline(cost, tables.ceilings, tables.head.device.cache_bytes);
  if (us <= 0 || !(roof.floor_s() > 0)) return "";
  return fmt::format("{:.1f} ({})", 100e6 * roof.floor_s() / us,
                     roof.flops_s > roof.bytes_s ? "comp" : "mem");
}

Table::Cell speedup_cell(const PrGeomean& g) {
  if (g.n == 0) return number("");
  if (g.all_identical) return number("=");
  Table::Cell cell = number(fmt::format("{:.3f}x", std::exp(g.log_speedup)));
  cell.bold = g.interval && g.interval->low > 0;
  if (cell.bold) return cell;
  if (!g.interval || !(g.interval->high < 0)) return number("~");
  cell.mark = "▼";
  return cell;
}

/// One unit for the column where the rows agree on it, else one in each cell.
std::string rate_column(const std::vector<PrRow>& rows) {
  const auto compute = [](const PrRow& row) { return is_compute_bound(row.facts->cost); };
  if (std::ranges::all_of(rows, compute)) return "TFLOPS";
  return std::ranges::none_of(rows, compute) ? "GB/s" : "rate";
}

std::vector<Table::Cell> cells_of(const PrRow& row, const PrTables& tables, bool name_the_unit) {
  const Cost& cost = row.facts->cost;
  const double after = us_of(row.head);
  std::string achieved = rate_text(cost, after);
  if (name_the_unit && !achieved.empty()) achieved += is_compute_bound(cost) ? " TFLOPS" : " GB/s";
  const std::string tokens = row.facts->tokens < 0 ? "" : std::to_string(row.facts->tokens);
  return Table::row(number(tokens), number(us_text(us_of(row.base))), number(us_text(after)),
                    speedup_cell(row), number(text_of(log_interval(row))), number(achieved),
                    number(ceiling_text(cost, after, tables)), number(bits_text(row)));
}

/// A row per case, and their geomean, which stays when rows go; none of no rows.
Rows speedup_table(const std::vector<PrRow>& rows, const PrTables& tables) {
  const std::string rate = rate_column(rows);
  Table table{{"tokens", "Before (us)", "After (us)", "Speedup", "95 % CI", rate, "% of ceiling",
               "accuracy change (bits)"}};
  for (const PrRow& row : rows) table.rows.push_back(cells_of(row, tables, rate == "rate"));
  const PrGeomean g = geomean_of(rows);
  if (g.n == 0) return {std::move(table), /*kept_at_end=*/0};
  Table::Cell name = number(fmt::format("geomean ({})", g.n));
  name.bold = true;
  table.rows.push_back({name, number(""), number(""), speedup_cell(g), number(text_of(g.interval)),
                        number(""), number(""), number("")});
  return {std::move(table), /*kept_at_end=*/1};
}

std::string counts_line(const std::vector<PrRow>& rows) {
  const auto count = [&](PrKind kind) { return std::ranges::count(rows, kind, &PrRow::kind); };
  std::string text =
      fmt::format("{} faster / {} slower / {} same / {} inconclusive", count(PrKind::faster),
                  count(PrKind::slower), count(PrKind::same), count(PrKind::inconclusive));
  if (count(PrKind::uncompared) > 0)
    text += fmt::format(" / {} not compared", count(PrKind::uncompared));
  return text;
}

Section speedup_section(const PrGroup& group, const std::vector<PrRow>& rows,
                        const PrTables& tables) {
  const auto& [suite, model, op, config, variant] = group;
  Line title = {plain(op + " · "), code(variant), plain(fmt::format(" · {} ({})", model, suite))};
  if (!config.empty()) title.push_back(plain(" · " + config));
  for (Span& span : title) span.bold = true;
  return {
      1,
      {Paragraph{{title}}, Paragraph{{{plain(counts_line(rows))}}}, speedup_table(rows, tables)}};
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

void add_commit(Line& line, const char* side, const RunInfo& run) {
  const auto theirs = run.tags.find(kCommitTag);  // of another repository, whose kernels these are
  if (theirs != run.tags.end()) {
    const auto repository = run.tags.find(kRepositoryTag);
    const std::string name = repository == run.tags.end() ? "commit" : repository->second;
    line.push_back(plain(fmt::format("{} {} {} by", side, name, theirs->second)));
    side = " moegate";
  }
  line.push_back(plain(fmt::format("{} {}", side, run.git_sha.empty() ? "unknown" : run.git_sha)));
  if (run.dirty) line.insert(line.end(), {plain(" "), bold("DIRTY")});
}

/// How it was measured, and how to read the tables.
Paragraph footer(const PrTables& tables) {
  const RunInfo& head = tables.head;
  const Limits& limits = tables.limits;
  Line line = {plain(fmt::format(
      "Protocol {}, {}, timer {}, {} processes per arm in drawn order, one {} ({}), {}, ",
      head.protocol, head.flush == "none" ? "no flush" : "cold, flush " + head.flush, head.timer,
      processes_text(tables), head.device.name, head.device.uuid, head.device.driver))};
  add_commit(line, "base", tables.base);
  add_commit(line, ", head", head);
  std::string text = fmt::format(
      ". Speedup = before / after. = marks identical code or output. ~ marks a change that was not "
      "told from ±{:.3g} % (error rate {:g} for all rows together), ≈ a number that is not "
      "certain. ",
      100 * limits.margin, limits.alpha);
  if (head.device.backend == Backend::host) {
    text +=
        "On a host, before and after are spans. The speed-up compares their ratios to the "
        "yardstick, which is timed beside each sample. ";
  }
  if (tables.result.judged > 0) {
    text += fmt::format("{} of {} rows are blind to {:.3g} %. ", tables.result.blind,
                        tables.result.judged, 100 * limits.blind_at);
  }
  text += "To repeat: ";
  line.insert(line.end(), {plain(text), code(head.command)});
  return {{line}, /*small=*/true};
}

}  // namespace

PrTables read_pr_tables(Store& store, int64_t base, int64_t head,
                        const std::optional<VariantPair>& pair) {
  PrTables tables;
  tables.base = store.run_info(base);
  tables.head = store.run_info(head);
  if (tables.base.device.uuid != tables.head.device.uuid) {
    usage_error("{} was measured on {}, {} on {}; a table needs both on one device: use ci/ab",
                describe(tables.base), tables.base.device.uuid, describe(tables.head),
                tables.head.device.uuid);
  }
  const std::string shown = pair ? pair->first + " → " + pair->second : "";
  tables.base_sides = read_side(store, tables.base, pair ? pair->first : "", shown);
  tables.head_sides = read_side(store, tables.head, pair ? pair->second : "", shown);
  read_cases(store, base, tables.cases);
  read_cases(store, head, tables.cases);
  tables.ceilings = store.ceilings(tables.head.device);
  return tables;
}

std::vector<Section> pr_sections(const PrTables& tables) {
  std::vector<Section> sections;
  for (const auto& [group, rows] : group_rows(tables))
    sections.push_back(speedup_section(group, rows, tables));
  sections.push_back({0, {footer(tables)}});
  return sections;
}

}  // namespace moegate
