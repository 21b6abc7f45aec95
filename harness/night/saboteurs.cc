// SPDX-License-Identifier: Apache-2.0
#include "harness/night/saboteurs.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/base/subprocess.h"
#include "harness/campaign/recording.h"

namespace moegate {
namespace {

bool is_saboteur(const VariantDescription& variant) {
  return variant.expected.status != Status::ok;
}

/// The rows of operators that have saboteurs.
Plan with_saboteurs(Plan plan) {
  std::set<std::string> operators;
  for (const VariantDescription& v : plan.hello.variants) {
    if (is_saboteur(v)) operators.insert(v.op);
  }
  std::erase_if(plan.cases, [&](const PlannedCase& c) { return !operators.contains(c.spec.op); });
  if (plan.cases.empty()) {
    usage_error(
        "selftest: none of the selected variants is a saboteur; they are in the program "
        "moegate_saboteurs, and their suite is tests/saboteurs/saboteurs.suite");
  }
  return plan;
}

const VariantDescription& describe(const Hello& hello, const std::string& op,
                                   const std::string& variant) {
  return *std::ranges::find_if(
      hello.variants, [&](const VariantDescription& v) { return v.op == op && v.name == variant; });
}

std::string exit_of(const Result& result) {
  Tally tally;
  tally.counts[result.status] = 1;
  return std::to_string(static_cast<int>(tally.exit()));
}

}  // namespace

bool TriedSaboteur::as_expected() const {
  if (expected.status == Status::ok) return result.measured();
  return result.status == expected.status && result.why.find(expected.why) != std::string::npos;
}

std::vector<TriedSaboteur> release_saboteurs(const RunOptions& options, WorkerSource& source) {
  const InterruptGuard guard;
  Prepared prepared = prepare(options, source);
  const Plan plan = with_saboteurs(std::move(prepared.plan));
  std::vector<TriedSaboteur> all;
  Progress progress(plan.rows().size());
  for (const PlannedCase& c : plan.cases) {
    for (const std::string& variant : c.variants) {
      const VariantDescription& described = describe(plan.hello, c.spec.op, variant);
      progress.step(c.spec.key() + " " + variant);
      prepared.lanes.seat(0).retire();  // what one left behind is not the next one's
      CaseData data;
      Result result =
          prepared.lanes.seat(0).worker().run({c.spec, variant, {}}, options.case_timeout_s, data);
      if (result.status == Status::unsupported) continue;
      all.push_back({.key = c.spec.key(),
                     .variant = variant,
                     .help = described.help,
                     .expected = described.expected,
                     .result = std::move(result)});
    }
  }
  return all;
}

Table saboteur_table(const std::vector<TriedSaboteur>& all) {
  Table table;
  table.columns = {"Variant", "What it does", "Called", "Exit", "Because", ""};
  for (const TriedSaboteur& s : all) {
    const std::string verdict =
        s.as_expected()
            ? ""
            : fmt::format("MISSED: should be {} '{}'", name_of(s.expected.status), s.expected.why);
    table.rows.push_back({{s.variant},
                          {s.help},
                          {name_of(s.result.status)},
                          {exit_of(s.result), true},
                          {s.result.why},
                          {verdict}});
  }
  return table;
}

}  // namespace moegate
