// SPDX-License-Identifier: Apache-2.0
// A verdict as JUnit XML, for CI systems that show test results.
#pragma once

#include <string>

#include "harness/report/gate_report.h"

namespace moegate {

/// One testsuite per suite and operator, one testcase per row. Regressed, wrong
/// and missing rows are failures of type latency, accuracy and coverage; a crash, time-out or
/// dead timer is an error; what could not be decided is skipped, never passed; what is waived
/// passes with the property `waiver`. Times are seconds of span; a host's ratios are none.
std::string junit_xml(const GateReport& report);

}  // namespace moegate
