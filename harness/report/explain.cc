// SPDX-License-Identifier: Apache-2.0
#include "harness/report/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "harness/base/text.h"
#include "harness/judge/comparison.h"
#include "harness/store/row_profiles.h"
#include "harness/store/rows.h"

namespace moegate {
namespace {

std::vector<Table::Cell> number_cells(const CauseNumber& n, const std::string& change) {
  const auto number = [](double x) { return Table::number("{:.6g}", x); };
  return {{n.name}, number(n.base), number(n.head), {n.unit}, {change, true}};
}

Table numbers_table(const Cause& cause) {
  Table table{{"Number", "Base", "Head", "Unit", "Change"}};
  for (const CauseNumber& n : cause.numbers)
    table.rows.push_back(number_cells(n, n.base != 0 ? percent(n.head / n.base - 1) : ""));
  return table;
}

/// A row's name, what else was found, and the numbers of both sides.
std::vector<Block> numbers_of_row(const CausedRow& row) {
  Paragraph head{{{code(row.key), plain(" "), code(row.variant)}}};
  if (!row.cause.also.empty()) {
    head.lines.push_back({plain(fmt::format("Also: {}.", fmt::join(row.cause.also, "; ")))});
  }
  return {std::move(head), Rows{numbers_table(row.cause)}};
}

using Effects = std::map<CaseId, Effect, CaseIdLess>;

/// By what the two are compared by; 0 where a side has no level.
double share_of_levels(const Side& base, const Side& head) {
  const Quantity quantity = compared(base, head);
  const double before = evidence_of(base.rounds(quantity)).level();
  const double after = evidence_of(head.rounds(quantity)).level();
  return before > 0 && after > 0 ? after / before - 1 : 0;
}

void judge_now(const RunInfo& base_run, const RunInfo& head_run, Sides base, const Sides& head,
               Effects& effects) {
  GateResult result =
      judge_runs(base_run, head_run, std::move(base), head, Limits::of(head_run.device.backend));
  for (const CaseVerdict& v : result.cases) {
    Effect& effect = effects.at(v.id);
    effect.equal = effect_of(v).equal;
    if (v.latency) effect.share = v.latency->effect;
  }
  for (const size_t open : unsettled(result)) effects.at(result.cases[open].id).equal = false;
}

/// Of rows that both sides have, and no others, under the same names.
Effects row_effects(Store& store, const RunInfo& base_run, const RunInfo& head_run, Sides base,
                    Sides head) {
  Effects effects;
  Transaction reading(store.database(), "BEGIN");  // one lock, not one for each row
  // Of verdicts of the two runs; an A/B's is believed first.
  Statement stored(store.database(),
                   "SELECT outcome, effect FROM verdict WHERE run_id = ?1 AND against IN (?2, ?3) "
                   "AND suite = ?4 AND key = ?5 AND variant = ?6 AND (effect IS NOT NULL OR "
                   "outcome = 'identical') ORDER BY against = ?3");
  const std::string by_ab = against_commit(base_run), by_gate = describe(base_run);
  const auto judged = [&](const CaseId& id, double share) -> std::optional<Effect> {
    stored.again();
    if (!stored.bind(head_run.id, by_ab, by_gate, id.suite, id.key, id.variant).step()) return {};
    if (stored.view(0) == name_of(Outcome::identical)) return Effect{share, true};
    return Effect{stored.real(1), stored.view(0) == name_of(Outcome::pass)};
  };
  for (auto before = base.begin(), row = head.begin(); row != head.end();) {
    const double share = share_of_levels(before->second, row->second);
    const std::optional<Effect> known = judged(row->first, share);
    effects.emplace_hint(effects.end(), row->first, known.value_or(Effect{share, false}));
    before = known ? base.erase(before) : std::next(before);
    row = known ? head.erase(row) : std::next(row);
  }
  if (!head.empty()) judge_now(base_run, head_run, std::move(base), head, effects);
  return effects;
}

constexpr size_t kMostTables = 10;

/// The rows that two runs both have, each under the name that it is shown by, in one order.
struct CommonRows {
  Sides base, head;
  std::vector<std::pair<std::string, std::string>> variants;  // their own names, of base and head
  size_t left_out = 0;                                        // that a side has no result of
};

/// By key, those of a key in their order. The map's nodes may leave it meanwhile.
using ByKey = std::unordered_map<std::string_view, std::vector<Sides::iterator>>;
ByKey by_key(Sides& sides) {
  ByKey keys;
  for (auto row = sides.begin(); row != sides.end(); ++row) keys[row->first.key].push_back(row);
  return keys;
}

/// Whether it says nothing that could differ: no process of it ended well.
bool has_no_result(const Side& side) {
  return side.level.n == 0 && side.status != Status::ok && side.status != Status::noisy;
}

void add_row(CommonRows& rows, Sides::node_type before, Sides::node_type after) {
  CaseId &base = before.key(), &head = after.key();
  rows.variants.emplace_back(base.variant, head.variant);
  if (base.variant != head.variant) head.variant = base.variant + " → " + head.variant;
  base.suite = head.suite;
  base.variant = head.variant;
  rows.base.insert(rows.base.end(), std::move(before));
  rows.head.insert(rows.head.end(), std::move(after));
}

/// By their names; where a case has one variant in each run, by that.
CommonRows common_rows(Sides base, Sides head, const Pattern& variants) {
  CommonRows rows;
  const ByKey bases = by_key(base), heads = by_key(head);
  for (auto next = head.begin(); next != head.end();) {
    const auto row = next++;
    const auto others = bases.find(row->first.key);
    if (others == bases.end()) continue;
    const std::string& variant = row->first.variant;
    const bool one_each = others->second.size() == 1 && heads.at(row->first.key).size() == 1;
    const auto is_other = [&](auto other) { return one_each || other->first.variant == variant; };
    const auto other = std::ranges::find_if(others->second, is_other);
    if (other == others->second.end()) continue;
    const std::string& before = (*other)->first.variant;
    if (!variants.found_in(before == variant ? variant : before + " → " + variant)) continue;
    if (has_no_result((*other)->second) || has_no_result(row->second)) {
      ++rows.left_out;
    } else {
      add_row(rows, base.extract(*other), head.extract(row));
    }
  }
  return rows;
}

/// As the run named them; else those that its rows are of, asked about or not.
std::vector<std::string> suites_of_run(Store& store, const RunInfo& run) {
  auto named = values_of<std::string>(
      store.database(),
      "SELECT value FROM json_each(CASE WHEN json_valid(?1) THEN ?1 END, '$.suites') "
      "WHERE type = 'text' AND typeof(key) = 'integer'",
      run.options);
  if (!named.empty()) return named;
  return values_of<std::string>(
      store.database(), "SELECT DISTINCT suite FROM run_case WHERE run_id = ?1 ORDER BY suite",
      run.id);
}

std::string profile_command(Store& store, const RunInfo& run) {
  std::string command = "moegate profile";
  for (const std::string& suite : suites_of_run(store, run)) {
    command += " --suite " + shell_word(suite);
  }
  return fmt::format("{} --db {}", command, shell_word(store.database().path()));
}

}  // namespace

std::vector<CausedRow> caused_rows(const GateResult& result) {
  std::vector<CausedRow> rows;
  for (const CaseVerdict& v : result.cases) {
    if (!v.cause) continue;
    rows.push_back({v.id.key, v.id.variant, effect_of(v).share, *v.cause});
  }
  std::ranges::stable_sort(rows, std::greater<>(), &CausedRow::effect);
  return rows;
}

void add_causes(Page& page, int rank, const std::vector<CausedRow>& rows) {
  if (rows.empty()) return;
  List list;
  for (const CausedRow& row : rows) {
    list.items.push_back({code(row.key), plain(" "), code(row.variant),
                          plain(fmt::format(" {}: {}", percent(row.effect), row.cause.sentence))});
  }
  page.add(rank, Heading{fmt::format("Why ({})", rows.size())}, std::move(list));
}

void add_cause_numbers(Page& page, int rank, const std::vector<CausedRow>& rows) {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].cause.numbers.empty()) continue;
    Section section{rank, numbers_of_row(rows[i])};
    section.folded = fmt::format("Numbers of row {} of {}", i + 1, rows.size());
    page.sections.push_back(std::move(section));
  }
}

Table cause_table(const std::vector<CausedRow>& rows) {
  Table table{
      {"case", "variant", "effect", "kind", "cause", "number", "base", "head", "unit", "change"}};
  for (const CausedRow& row : rows) {
    const auto first = Table::row(row.key, row.variant, Table::number("{:.5g}", row.effect),
                                  name_of(row.cause.kind), row.cause.sentence);
    if (row.cause.numbers.empty()) {
      table.rows.push_back(first);
      table.rows.back().resize(table.columns.size());
    }
    for (const CauseNumber& n : row.cause.numbers) {
      table.rows.push_back(first);
      const std::string share = n.base != 0 ? fmt::format("{:.4f}", n.head / n.base - 1) : "";
      std::ranges::move(number_cells(n, share), std::back_inserter(table.rows.back()));
    }
  }
  return table;
}

Error nothing_in_common(const RunInfo& base, const RunInfo& head, const ExplainQuery& query) {
  const std::string by =
      flags_text({{"filter", query.case_pattern}, {"variant", query.variant_pattern}});
  return {Exit::coverage, fmt::format("{} and {} have no row in common{}", describe(base),
                                      describe(head), by.empty() ? "" : " that matches " + by)};
}

Explained explain_runs(Store& store, const ExplainQuery& query) {
  const Pattern cases = compile_pattern("--filter", query.case_pattern);
  const Pattern variants = compile_pattern("--variant", query.variant_pattern);
  Explained explained{store.run_info(query.base), store.run_info(query.head), {}, 0, {}};
  const CaseFilter asked = [&](const std::string& key) { return cases.found_in(key); };
  const auto read = [&](Store& from, int64_t run) {
    RowProfiles profiles;
    Sides sides =
        collect([&](const auto& add) { profiles = read_row_profiles(from, run, asked, add); });
    return std::pair(std::move(sides), std::move(profiles));
  };
  auto [base, head] = of_two_runs(store, query.base, query.head, read);
  auto& [base_sides, before] = base;
  auto& [head_sides, after] = head;
  CommonRows rows = common_rows(std::move(base_sides), std::move(head_sides), variants);
  if (rows.variants.empty() && rows.left_out == 0) {
    throw nothing_in_common(explained.base, explained.head, query);
  }
  explained.left_out = rows.left_out;
  bool base_lacks = false, head_lacks = false;
  auto names = rows.variants.begin();
  for (const auto& [id, effect] : row_effects(store, explained.base, explained.head,
                                              std::move(rows.base), std::move(rows.head))) {
    const RowProfile& b = before.at({id.key, names->first});
    const RowProfile& h = after.at({id.key, names->second});
    ++names;
    explained.rows.push_back({id.key, id.variant, effect.share, explain(b, h, effect)});
    base_lacks = base_lacks || (!b.counted && !effect.equal);
    head_lacks = head_lacks || (!h.counted && !effect.equal);
  }
  std::ranges::stable_sort(explained.rows, std::greater<>(), &CausedRow::effect);
  const auto add = [&](bool lacks, const RunInfo& run) {
    if (!lacks || run.device.backend == Backend::host) return;
    // Its own program, which may be another than this one.
    const std::string by = run.git_sha.empty() ? "its program" : "the program of " + run.git_sha;
    explained.to_count.all.push_back(
        {fmt::format("To count {}, with {}", describe(run), by), profile_command(store, run)});
  };
  add(base_lacks, explained.base);
  add(head_lacks, explained.head);
  return explained;
}

Page explain_page(const Explained& explained) {
  Page page;
  page.add(0, paragraph(fmt::format("{} against {}, on {}", describe(explained.head),
                                    describe(explained.base), explained.head.device.name)));
  add_causes(page, 0, explained.rows);
  if (explained.left_out > 0) {
    page.add(0,
             paragraph(fmt::format(
                 "{} rows lack a result on one side or both; `moegate gate --against` judges them.",
                 explained.left_out)));
  }
  const size_t tables = std::min(kMostTables, explained.rows.size());
  for (size_t i = 0; i < tables; ++i) {
    const CausedRow& row = explained.rows[i];
    if (!row.cause.numbers.empty()) page.sections.push_back({0, numbers_of_row(row)});
  }
  if (tables < explained.rows.size()) {
    page.add(0, paragraph(fmt::format("The numbers of {} of {} rows are above; --format csv has "
                                      "all of them, and --filter chooses rows.",
                                      tables, explained.rows.size())));
  }
  if (!explained.to_count.all.empty()) page.add(0, explained.to_count);
  return page;
}

}  // namespace moegate
