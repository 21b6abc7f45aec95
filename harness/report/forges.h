// SPDX-License-Identifier: Apache-2.0
// This file writes what CI systems read: annotations and the step's summary of a GitHub Actions
// job, and JUnit XML.
#pragma once

#include <filesystem>
#include <string>

#include "harness/report/gate_report.h"

namespace moegate {

/// Workflow commands: an ::error for each of the ten worst failures, at its row of the baseline
/// file where it has one (a path relative to `workspace`), and one ::warning for the rest.
std::string annotations(const GateReport& report, const std::filesystem::path& workspace);

/// Appends the report to a step's summary; the whole file stays below the 1 MiB beyond which it
/// would be dropped entirely. Throws Error(usage) when it cannot be written.
void append_summary(const GateReport& report, const std::filesystem::path& summary);

/// Annotations to stderr, which runners read too, and the summary to $GITHUB_STEP_SUMMARY if set.
void publish_to_github(const GateReport& report);

// A verdict as JUnit XML, for CI systems that show test results.

/// One testsuite per suite and operator, one testcase per row. Regressed, wrong
/// and missing rows are failures of type latency, accuracy and coverage; a crash, time-out or
/// dead timer is an error; what could not be decided is skipped, never passed; what is waived
/// passes with the property `waiver`. Times are seconds of span; a host's ratios are none.
std::string junit_xml(const GateReport& report);

}  // namespace moegate
