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

struct BaselinePlaces {
  /// One baseline file, or a folder that holds SUITE.tsv or CLASS/SUITE.tsv.
  std::filesystem::path blessed;
  /// The folder of candidates, which stand in for what nobody blessed; empty: none are kept.
  std::filesystem::path candidates;
};

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

/// Reads the baselines of the run's suites. A candidate takes the run's rows that it lacks, and
/// with its first ones the run's environment. Throws Error when one is not blessed, not of its
/// suite, or does not compare.
Expected find_baselines(const BaselinePlaces& places, const RunInfo& run, const Sides& sides,
                        const EnvironmentItems& environment, const CutRun& cut = {});

/// What is known of a suite's rows before a run of it by `program` (a hash; empty: with kernels
/// from elsewhere): of the blessed file, or of the candidate as earlier runs left it. Nothing is
/// written. A file that cannot be read says nothing here; the gate will.
Expectation known_rows(const BaselinePlaces& places, const std::string& klass,
                       const std::string& suite, const std::string& program);

}  // namespace moegate
