// SPDX-License-Identifier: Apache-2.0
// A verdict for people (a page), for machines (JSON), and as rows of the store.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "harness/base/table.h"
#include "harness/judge/comparison.h"
#include "harness/judge/gate.h"
#include "harness/report/page.h"
#include "harness/store/store.h"

namespace moegate {

struct GateReport {
  GateResult result;
  Exit exit = Exit::ok;
  RunInfo run;  // the one that was judged
  std::string db;
  Limits limits;
  std::string throttle;     // clock-throttle reasons seen, with counts; empty for none
  std::vector<Section> ab;  // tables for the pull request, ranked as in pr_table.h; else empty
  std::string next;         // a command to paste: how to bless this run
};

/// Outcomes that fail a gate, and the order in which they are shown.
inline const std::vector<Outcome> kFailures = {Outcome::regressed, Outcome::wrong, Outcome::missing,
                                               Outcome::environment};

/// The rows with one of these outcomes in their order, regressions by their lower bound: by how
/// bad they are at least. They point into `result`.
std::vector<const CaseVerdict*> worst_first(const GateResult& result,
                                            const std::vector<Outcome>& outcomes);

/// First the verdict; then waivers and baselines, failures, waived rows, the tables of an A/B or
/// else improvements, counts, provenance. Short of space, failures stay longest of the tables.
Page gate_page(const GateReport& report);

/// A word of a verdict, and what it means: a sentence as in GUIDE.md.
struct Word {
  const char* word;
  const char* means;  // {} stands for the change at which a row is blind
};
std::span<const Word> words();
/// Explains in one line the words that the page uses; adds nothing where it uses none.
void add_words(Page& page, int rank, const std::string& blind_at);

/// verdict.json; its "schema" changes only when a field's meaning does.
std::string verdict_json(const GateReport& report);
/// A line for every row, for --format csv.
Table verdict_table(const GateResult& result);

/// Replaces the verdict rows of a run against the same baselines in one transaction.
void store_verdicts(Store& store, int64_t run, const GateResult& result);

/// "sw_power_cap in 2 of 3 processes"; empty when no process was throttled.
std::string throttle_summary(Store& store, int64_t run);

// What an A/B measured and decided, as the one report that gate, compare and ab print.

/// Judges both runs, accuracy and coverage included; the caller knows the exit code.
GateReport report_of(Store& store, const std::string& db, const Comparison& comparison,
                     const std::function<Limits(Backend)>& limits);

}  // namespace moegate
