// SPDX-License-Identifier: Apache-2.0
// What commands print: pages, the end of a run, and what gate, ab and nightly do with a verdict.
#pragma once

#include <map>
#include <string>

#include "harness/base/table.h"
#include "harness/campaign/recording.h"
#include "harness/night/night_gate.h"
#include "harness/report/gate_report.h"
#include "harness/report/page.h"

namespace moegate {

/// Where a verdict goes beside standard output and the store.
struct PublishOptions {
  Format format = Format::text;  // of standard output
  /// Files by their endings: .md (report), .html (page), .xml (JUnit), .json (verdict).
  std::map<std::string, std::string> outputs = {};
  bool github = false;
};

/// What was verified, or, of Task::controls, a table of how often each spoilt output was rejected.
std::string summary_of_check(const Tally& tally, Task task);

/// What outputs showed that their own rounding does not explain, beside what is allowed; a row for
/// each output of a variant, the worst of its cases.
Table precision_table(const Tally& tally);
/// Of every variant that was asked: whether a token's output depends on its batch, and where.
Table invariance_table(const Tally& tally);

/// For a verdict to be stored beside its run. What may only be read (a CI artifact) is read.
Store open_for_verdict(const std::string& path);

GateReport report_of(Store& store, const std::string& db, Verdict verdict);

/// Stores the verdict's rows, prints it, writes report, page, JUnit, GitHub's annotations and, as
/// the last act, verdict.json. An output that cannot be written does not keep back the others; then
/// throws why the first of them could not.
void publish(Store& store, const GateReport& report, const PublishOptions& options);

// A page on standard output.

/// In a format for people: text as wide as the screen, or markdown, whole.
void print_page(const Page& page, Format format);

// What `run` ends with: what was measured, and where to look further.

/// Prints the rows of the report `summary`, forty at most with those first that are not ok, then
/// one line of counts. Where the table cannot be made, standard error says why: the run is stored.
void print_run(const std::string& db, const Tally& tally);

}  // namespace moegate
