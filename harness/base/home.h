// SPDX-License-Identifier: Apache-2.0
// Where the tool's data lives: the folder that holds suites/, reports/ and baselines/.
#pragma once

#include <filesystem>

namespace moegate {

/// MOEGATE_HOME if set, else the nearest folder above the program that holds suites/ and reports/:
/// the source tree for a build inside it, the prefix for an installed one. Throws
/// Error(environment).
std::filesystem::path home();

/// The nearest folder above another program that holds suites/ and reports/, whatever MOEGATE_HOME
/// says; empty where there is none.
std::filesystem::path home_of(const std::filesystem::path& program);

}  // namespace moegate
