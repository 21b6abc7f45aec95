// SPDX-License-Identifier: Apache-2.0
// A verdict inside a GitHub Actions job: annotations and the step's summary.
#pragma once

#include <filesystem>
#include <string>

#include "harness/report/gate_report.h"

namespace moegate {

/// Workflow commands: an ::error for each of the ten worst failures, at its row of the baseline
/// file where it has one (a path relative to `workspace`), and one ::warning for the rest.
std::string annotations(const GateReport& report, const std::filesystem::path& workspace);

/// Where a reviewer would change what a row is judged against: the line of its values in a
/// baseline file, from 1; 0 when it is not there.
int baseline_line(const std::filesystem::path& baseline, const CaseId& id);

/// Appends the report to a step's summary; the whole file stays below the 1 MiB beyond which it
/// would be dropped entirely. Throws Error(usage) when it cannot be written.
void append_summary(const GateReport& report, const std::filesystem::path& summary);

/// Annotations to stderr, where runners read them too and a --format json does not, and the summary
/// to $GITHUB_STEP_SUMMARY where that is set.
void publish_to_github(const GateReport& report);

}  // namespace moegate
