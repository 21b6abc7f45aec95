// SPDX-License-Identifier: Apache-2.0
// Waivers: failures that somebody owns, bounded in size and in time. A waived row is still run and
// judged; beyond its waiver's bound it fails all the same. Read from an INI file, one section
// each.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "harness/base/text.h"
#include "harness/judge/gate.h"

namespace moegate {

struct Waiver {
  /// regret: a choice is slower than the best one (`moegate tune --check`); no gate sees that.
  enum class Metric { latency, accuracy, coverage, regret };

  std::string id;          // the section: "W-0031"
  Pattern cases, variant;  // each must match the whole key, the whole name
  int max_cases = 0;       // rows of a run that they may match, failing or not
  std::string klass;       // device class, exactly
  Metric metric = Metric::latency;
  /// latency: slower than the baseline by at most this share; regret: than the best choice.
  double max_regression = 0;
  std::string reason, issue, owner;
  std::chrono::sys_days created, expires;  // the last day on which it holds
};

/// The current day, UTC.
std::chrono::sys_days today();

/// The waivers of an INI text. Throws Error(usage) naming `name`, the section and the field for
/// anything unknown, missing, given twice, or cut short by a '#', for a waiver created after
/// `day`, a life of more than 90 days (latency, regret) or 14 days (accuracy, coverage), a
/// max_regression of more than 25 %, and a pattern that matches everything.
std::vector<Waiver> parse_waivers(const std::string& text, const std::string& name,
                                  std::chrono::sys_days day = today());
std::vector<Waiver> read_waivers(const std::filesystem::path& path);
/// Of these the ones of choices (metric regret), or those of a gate. None where the path is empty.
std::vector<Waiver> read_waivers(const std::filesystem::path& path, bool of_choices);

/// A failing row whose failures are all within waivers of `klass` becomes Outcome::waived; a wrong
/// output never does. Problems (Exit::waiver): a waiver that expired or matches more than max_cases
/// rows, or of a full run more than 2 %, which waives nothing, and more than 2 % of a suite's rows
/// waived (one always may be). Notes: waivers used, and in a `full` run those that no row needed.
void apply_waivers(GateResult& result, const std::vector<Waiver>& waivers, const std::string& klass,
                   std::chrono::sys_days day, bool full);

}  // namespace moegate
