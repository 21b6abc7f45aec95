// SPDX-License-Identifier: Apache-2.0
// The flags that gate and compare share, and what both do with a verdict.
#pragma once

#include <boost/program_options.hpp>

#include "harness/report/gate_report.h"

namespace moegate {

/// --margin --fail-at
boost::program_options::options_description limit_flags();

/// --margin --fail-at --fail-on --format --report --junit --github --verdict
boost::program_options::options_description judging_flags();

/// The backend's default limits with --margin and --fail-at applied. Throws Error(usage).
Limits read_limits(const boost::program_options::variables_map& values, Backend backend);

/// "1%" -> 0.01. Throws Error(usage) naming the flag; the sign is required, so that 0.01 is never
/// taken for a hundredth of a percent.
double parse_share(const std::string& flag, const std::string& text);

/// For a verdict to be stored beside its run; a store that may only be read (a CI artifact) is
/// read.
Store open_for_verdict(const std::string& path);

/// Stores the verdict rows, prints in --format, writes --report, --junit, --github and, as the last
/// act, --verdict.
void publish(Store& store, const GateReport& report,
             const boost::program_options::variables_map& values);

}  // namespace moegate
