// SPDX-License-Identifier: Apache-2.0
// The table of a run's options. A row spells an option once: its flag, its key in the stored JSON, its member. With
// the worker's rows (worker/worker_options.h) it is all that a run can be told.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/campaign/plan.h"

namespace moegate {

/// The rows of what is not the worker's. A row without a key is another spelling of an axis.
std::span<const Option<RunOptions>> run_options();

/// Calls `does(row, object)` for each row of both tables with the options that the row is of.
template <class Run, class F>
void for_each_option(Run& run, F&& does) {
  for (const auto& row : run_options()) does(row, run);
  for (const auto& row : worker_options()) does(row, run.worker);
}

/// The flags of a group, or of all groups, that repeat what the options say: " --suite tiny --rounds 3". Empty
/// `group`: all.
std::string repeating_flags(const RunOptions& run, const std::string& group);

/// Gives a parameter its values. Throws Error(usage) naming the flag when it has some already.
void set_axis(RunOptions& run, const char* flag, const std::string& name,
              std::vector<std::string> values);

/// Splits "a=b" for --axis and --tag. Throws Error(usage) naming the flag.
std::pair<std::string, std::string> split_assignment(const std::string& flag,
                                                     const std::string& text);
/// Splits at commas. An empty part is an Error(usage) naming the flag.
std::vector<std::string> parse_list(const std::string& flag, const std::string& text);

}  // namespace moegate
