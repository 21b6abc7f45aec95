// SPDX-License-Identifier: Apache-2.0
#include "harness/report/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>

#include "harness/base/text.h"
#include "harness/report/row_effects.h"
#include "harness/store/row_profiles.h"

namespace moegate {
namespace {

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

/// Moves rows of two runs together.
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

Error nothing_in_common(const RunInfo& base, const RunInfo& head, const ExplainQuery& query) {
  return {Exit::coverage,
          fmt::format("{} and {} have no row in common that matches --filter '{}' --variant '{}'",
                      describe(base), describe(head), query.case_pattern, query.variant_pattern)};
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
  if (explained.left_out > 0) {
    page.sections.push_back(
        {0,
         {Paragraph{{{plain(fmt::format("Left out: {} rows without a result on one side or both; "
                                        "`moegate compare` says what they come to.",
                                        explained.left_out))}}}}});
  }
  const size_t tables = std::min(kMostTables, explained.rows.size());
  for (size_t i = 0; i < tables; ++i) {
    const CausedRow& row = explained.rows[i];
    if (!row.cause.numbers.empty()) page.sections.push_back({0, numbers_of_row(row)});
  }
  if (tables < explained.rows.size()) {
    page.sections.push_back(
        {0,
         {Paragraph{{{plain(fmt::format(
             "Numbers of {} of {} rows are above; all of them: --format csv, or --filter.", tables,
             explained.rows.size()))}}}}});
  }
  if (!explained.to_count.all.empty()) page.sections.push_back({0, {explained.to_count}});
  return page;
}

}  // namespace moegate
