// SPDX-License-Identifier: Apache-2.0
// The flags that the measuring commands share: which cases, which variants, which device, and how
// they are measured.
#pragma once

#include <boost/program_options.hpp>

#include "harness/campaign/plan.h"

namespace moegate {

/// --suite --filter --kernel --axis --seed --device --tiles --case-timeout --shard
boost::program_options::options_description selection_flags();
/// Reads them. Throws Error(usage).
RunOptions read_selection(const boost::program_options::variables_map& values);

/// --cache --launch --flush --flush-factor --timer --min-samples --max-samples --precision --budget
boost::program_options::options_description measuring_flags();
/// Reads them into `options`. Throws Error(usage).
void read_measuring(const boost::program_options::variables_map& values, RunOptions& options);

/// Throws Error(usage) naming the flag when its value is below `least`.
void at_least(const char* flag, double value, double least);

/// What the user typed, quoted for a shell: "moegate run --suite tiny".
std::string command_line(const std::string& command, const std::vector<std::string>& args);

}  // namespace moegate
