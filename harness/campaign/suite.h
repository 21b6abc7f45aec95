// SPDX-License-Identifier: Apache-2.0
// Reads .suite files: INI, one section per model, every list an axis. See suites/README.md.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "harness/kernel/description.h"

namespace moegate {

/// Values that replace a parameter's in every case: --axis tokens=1,8 or --cache both.
using Axes = std::map<std::string, std::vector<std::string>>;

/// Loads a suite by name (looked up in the suites folder) or by path (contains '/' or ends in
/// .suite) and calls `add` with each case of the product of its axes, section by section, first
/// axis slowest, as often as it is written. Which operators there are, and their parameters,
/// `operators` says. Throws Error(usage) naming file, section and parameter for: an unreadable
/// file, a malformed line, a section without op, an unknown operator, a parameter that it does not
/// have, a missing one, an empty value list, an axis no case has, a repeated section or key.
void for_each_case(const std::string& name, const Axes& axes,
                   const std::vector<OpDescription>& operators,
                   const std::function<void(Case)>& add);
/// All of them, those with the same key once.
std::vector<Case> load_suite(const std::string& name, const Axes& axes,
                             const std::vector<OpDescription>& operators);

/// What a suite's [run] says of a run of it alone: flags, if not typed, and the reports at its end.
struct Recipe {
  std::vector<std::pair<std::string, std::string>> flags;  // name, value
  std::vector<std::string> reports;
};
/// Throws Error(usage) as load_suite() does for the file, and for a key that [run] does not have.
Recipe recipe_of(const std::string& suite);

/// The same suites as paths, where a name is of a suite of another program's home, as in an A/B of
/// two checkouts; a name that is of none there stays what it is.
std::vector<std::string> suites_of(const std::string& program, std::vector<std::string> names);

/// Names of the suites in the suites folder, sorted, and the comment on the first line of each.
std::vector<std::pair<std::string, std::string>> list_suites();

}  // namespace moegate
