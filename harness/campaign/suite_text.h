// SPDX-License-Identifier: Apache-2.0
// Cases written as a .suite file, for suite.h to read.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace moegate {

struct SuiteCase {
  std::string op;
  std::map<std::string, std::string> params;  // those that are not at their default
};

/// Why a suite cannot say this, in one clause; empty when it can.
std::string fault_of_case(const SuiteCase& c);

/// Cases on their way into a file: those that differ in their tokens alone share a section.
class SuiteText {
 public:
  /// A case that fault_of_case() has nothing against; one that is there already changes nothing. `source` is what its
  /// section is named by: the operator itself, or what a comment then names.
  void add(const std::string& source, const SuiteCase& c);
  size_t cases() const { return cases_.size(); }
  /// Its first line is `about`. In the order in which the sections began.
  std::string text(const std::string& about) const;

 private:
  struct Section {
    std::string source;
    SuiteCase but_tokens;
    std::vector<std::string> tokens;  // empty: the operator has none
  };
  std::vector<Section> sections_;
  std::map<std::string, size_t> by_content_;
  std::set<std::string> cases_;  // by content and tokens
};

}  // namespace moegate
