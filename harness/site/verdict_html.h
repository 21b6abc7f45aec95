// SPDX-License-Identifier: Apache-2.0
// A verdict as one file for a browser: the page of gate_report.h, with charts and every row.
#pragma once

#include <string>

#include "harness/report/gate_report.h"

namespace moegate {

/// The sentence and what gate_page() says, then the sorted changes with their bounds, before
/// against now, and all rows.
std::string verdict_html(const GateReport& report);

}  // namespace moegate
