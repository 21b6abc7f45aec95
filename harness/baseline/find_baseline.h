// SPDX-License-Identifier: Apache-2.0
// Which baseline a run meets, in folders of baselines that the commands choose.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "harness/baseline/baseline.h"
#include "harness/judge/gate.h"
#include "harness/values/run.h"

namespace moegate {

/// FOLDER/CLASS/SUITE.tsv, blessed or a candidate. Throws for a name that leads elsewhere.
std::filesystem::path baseline_path(const std::filesystem::path& folder, const std::string& klass,
                                    const std::string& suite);

/// blessings.tsv beside a baseline or a folder above. Throws Error(usage) where there is none.
std::filesystem::path ledger_of(const std::filesystem::path& baseline);

struct BaselinePlaces {
  /// One baseline file, or a folder that holds SUITE.tsv or CLASS/SUITE.tsv.
  std::filesystem::path blessed;
  /// The folder of candidates, which stand in for what nobody blessed; empty: none are kept.
  std::filesystem::path candidates;
};

/// The file that a suite meets. A candidate's file may not be there yet: the first run makes it.
struct BaselineFile {
  std::filesystem::path path;  // empty: there is nothing to compare with
  bool blessed = false;
};

/// A blessed file, else a candidate's, else none.
BaselineFile find_baseline(const BaselinePlaces& places, const std::string& klass,
                           const std::string& suite);

struct Expected {
  std::map<std::string, Expectation> suites;
  /// Of the suites that have a file: what it says about itself, the program to replay included.
  std::map<std::string, BaselineHeader> headers;
  bool all_blessed = true;
};

/// A run that set out to measure the whole of its suites, and that only its time ended.
struct CutRun {
  bool cut = false;
  std::set<std::string> suites;  // of rows that it left out
};

/// Reads the baselines of the run's suites; a candidate takes the run's rows that it lacks. Throws
/// Error when one does not compare, as expect_baseline() does.
Expected find_baselines(const BaselinePlaces& places, const RunInfo& run, const Sides& sides,
                        const CutRun& cut = {});

/// What is known of a suite's rows before a run of it by `program` (a hash; empty: with kernels
/// from elsewhere): of the blessed file, or of the candidate as earlier runs left it. Nothing is
/// written. A file that cannot be read says nothing here; the gate will.
Expectation known_rows(const BaselinePlaces& places, const std::string& klass,
                       const std::string& suite, const std::string& program);

// What a run is judged against, read from files: a blessed baseline, or a candidate. A candidate
// stands in for a baseline that nobody blessed yet. The gate records it itself, and only rows that
// are fit for a baseline enter it.

/// Throws Error unless `path` is blessed, of this suite, and compares.
Expectation expect_baseline(const Baseline& baseline, const std::filesystem::path& path,
                            const RunInfo& run, const std::string& suite);

/// The rows that earlier runs left in the candidate file at `path`, as read from it; of a file that
/// is not there, none. This run's fit rows that the file lacks are written to it; a row that is
/// there stays as it is. Each row names its run in `by`, so no run is judged against its own rows.
/// Without rows of other runs there is nothing to compare with, and the note says what was recorded
/// or why not. An incomplete run, a run with a failed result, and another GPU of the class add
/// nothing. Of a run that only its time ended (`cut`) the rows of at least two processes are added,
/// so that the candidate grows from night to night; what was begun without any is a file without
/// rows, and a next such run is Expectation::stalled. Throws Error like expect_baseline().
Expectation expect_candidate(Baseline candidate, const std::filesystem::path& path,
                             const RunInfo& run, const std::string& suite, const Sides& sides,
                             bool cut = false);

}  // namespace moegate
