// SPDX-License-Identifier: Apache-2.0
#include "harness/report/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "harness/base/pattern.h"
#include "harness/base/text.h"
#include "harness/judge/comparison.h"
#include "harness/store/row_profiles.h"

namespace moegate {
namespace {

constexpr size_t kMostTables = 10;

/// A row of both runs.
struct CommonRow {
  CaseId base, head;
  std::string shown;  // its variant
};

std::map<std::string, std::vector<CaseId>> by_key(const Sides& sides) {
  std::map<std::string, std::vector<CaseId>> keys;
  for (const auto& [id, side] : sides) keys[id.key].push_back(id);
  return keys;
}

/// By their names; where a case has one variant in each run, by that.
std::vector<CommonRow> common_rows(const Sides& base, const Sides& head) {
  std::vector<CommonRow> rows;
  const auto bases = by_key(base);
  for (const auto& [key, ids] : by_key(head)) {
    const auto others = bases.find(key);
    if (others == bases.end()) continue;
    if (ids.size() == 1 && others->second.size() == 1) {
      const CaseId &before = others->second[0], &after = ids[0];
      const bool same = before.variant == after.variant;
      rows.push_back(
          {before, after, same ? after.variant : before.variant + " → " + after.variant});
      continue;
    }
    for (const CaseId& id : ids) {
      const auto other = std::ranges::find(others->second, id.variant, &CaseId::variant);
      if (other != others->second.end()) rows.push_back({*other, id, id.variant});
    }
  }
  return rows;
}

/// How much slower the head is, by what the two are compared by; 0 where a side has no level.
double effect_of(const Side& base, const Side& head) {
  const auto level = [quantity = compared(base, head)](const Side& side) {
    std::vector<double> levels;
    for (const auto& [round, value] : side.rounds(quantity)) levels.push_back(value);
    return Evidence::of(levels).level();
  };
  const double before = level(base), after = level(head);
  return before > 0 && after > 0 ? after / before - 1 : 0;
}

/// As the run named them; else those that its rows are of, asked about or not.
std::vector<std::string> suites_of_run(Store& store, const RunInfo& run) {
  const auto options = nlohmann::json::parse(run.options, nullptr, /*allow_exceptions=*/false);
  if (options.is_object() && options.contains("suites") && options["suites"].is_array()) {
    std::vector<std::string> named;
    for (const auto& suite : options["suites"]) {
      if (suite.is_string()) named.push_back(suite);
    }
    if (!named.empty()) return named;
  }
  Statement q(store.database(),
              "SELECT DISTINCT suite FROM run_case WHERE run_id = ?1 ORDER BY suite");
  q.bind(run.id);
  std::vector<std::string> names;
  while (q.step()) names.push_back(q.text(0));
  return names;
}

std::string profile_command(Store& store, const RunInfo& run) {
  std::string command = "moegate profile";
  for (const std::string& suite : suites_of_run(store, run)) {
    command += " --suite " + shell_word(suite);
  }
  return fmt::format("{} --db {}", command, shell_word(store.database().path()));
}

/// What would count a run's rows: its own program, which may be another than this one.
std::string purpose_of(const RunInfo& run) {
  const std::string by = run.git_sha.empty() ? "its program" : "the program of " + run.git_sha;
  return fmt::format("To count {}, with {}", describe(run), by);
}

}  // namespace

Explained explain_runs(Store& store, const ExplainQuery& query) {
  const Pattern cases = compile_pattern("--case", query.case_pattern);
  const Pattern variants = compile_pattern("--variant", query.variant_pattern);
  Explained explained{store.run_info(query.base), store.run_info(query.head), {}, {}};
  const CaseFilter asked = [&](const std::string& key) { return cases.found_in(key); };
  RowProfiles before, after;
  const Sides base =
      collect([&](const auto& add) { before = read_row_profiles(store, query.base, asked, add); });
  const Sides head =
      collect([&](const auto& add) { after = read_row_profiles(store, query.head, asked, add); });
  bool base_lacks = false, head_lacks = false;
  for (const CommonRow& row : common_rows(base, head)) {
    if (!variants.found_in(row.shown)) continue;
    const RowProfile& b = before.at({row.base.key, row.base.variant});
    const RowProfile& h = after.at({row.head.key, row.head.variant});
    const double effect = effect_of(base.at(row.base), head.at(row.head));
    explained.rows.push_back({row.head.key, row.shown, effect, explain(b, h, effect)});
    base_lacks = base_lacks || !b.counted;
    head_lacks = head_lacks || !h.counted;
  }
  if (explained.rows.empty()) {
    throw Error(Exit::coverage, fmt::format("{} and {} have no row in common that matches --case "
                                            "'{}' --variant '{}'",
                                            describe(explained.base), describe(explained.head),
                                            query.case_pattern, query.variant_pattern));
  }
  std::ranges::stable_sort(explained.rows, std::greater<>(), &CausedRow::effect);
  const auto add = [&](bool lacks, const RunInfo& run) {
    if (!lacks || run.device.backend == Backend::host) return;
    explained.to_count.all.push_back({purpose_of(run), profile_command(store, run)});
  };
  add(base_lacks, explained.base);
  add(head_lacks, explained.head);
  return explained;
}

Page explain_page(const Explained& explained) {
  Page page;
  page.sections.push_back(
      {0,
       {Paragraph{{{plain(fmt::format("{} against {}, on {}", describe(explained.head),
                                      describe(explained.base), explained.head.device.name))}}}}});
  add_causes(page, 0, explained.rows);
  const size_t tables = std::min(kMostTables, explained.rows.size());
  for (size_t i = 0; i < tables; ++i) {
    const CausedRow& row = explained.rows[i];
    if (!row.cause.numbers.empty()) page.sections.push_back({0, numbers_of_row(row)});
  }
  if (tables < explained.rows.size()) {
    page.sections.push_back(
        {0,
         {Paragraph{{{plain(fmt::format(
             "Numbers of {} of {} rows are above; all of them: --format csv, or --case.", tables,
             explained.rows.size()))}}}}});
  }
  if (!explained.to_count.all.empty()) page.sections.push_back({0, {explained.to_count}});
  return page;
}

}  // namespace moegate
