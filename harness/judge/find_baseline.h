// SPDX-License-Identifier: Apache-2.0
// Which baseline a run meets: the one place that knows where baseline files lie.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "harness/judge/gate.h"
#include "harness/values/run.h"

namespace moegate {

/// FOLDER/CLASS/SUITE.tsv, where a suite's baseline is blessed and its candidate is recorded.
std::filesystem::path baseline_path(const std::filesystem::path& folder, const std::string& klass,
                                    const std::string& suite);

/// The ledger that a baseline file is recorded in: blessings.tsv beside it or one folder above.
/// Throws Error(usage) where there is none.
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

/// What a run is judged against.
struct Expected {
  std::map<std::string, Expectation> suites;
  /// Of the suites that have a file: what it says about itself, the program to replay included.
  std::map<std::string, BaselineHeader> headers;
  bool all_blessed = true;
};

/// Reads the baselines of the run's suites; a candidate takes the run's rows that it lacks. Throws
/// Error when one does not compare, as expect_baseline() does.
Expected find_baselines(const BaselinePlaces& places, const RunInfo& run, const Sides& sides);

}  // namespace moegate
