// SPDX-License-Identifier: Apache-2.0
// What is asked of variants that choose a configuration, before anything is measured: at which
// token counts the choice changes, and what they could choose from.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "harness/campaign/plan.h"
#include "harness/kernel/choice.h"
#include "harness/kernel/registry.h"

namespace moegate {

/// Of every run of a check.
constexpr const char* kCheckLabel = "tune --check";

/// A case in which a variant chose.
struct Chosen {
  Case spec;
  std::string variant;
  Choice choice;
  std::string fault;  // why it has no choice
  std::vector<Configuration> candidates;
};

struct Questions {
  std::vector<Chosen> choices;
  std::vector<std::string> notes;  // what was left out, a sentence each
};

/// Turns what the user selected into a run of the variants that choose: those of --module
/// (`elsewhere`), else the program's. Throws Error(usage) where there are none.
RunOptions checking_run(RunOptions run, const Registry& registry, bool elsewhere);
/// Asks about the cases of the suite, and about those on both sides of each token count where the
/// choice changes, up to the largest count of the suite.
Questions ask_choosers(const std::vector<PlannedCase>& suite, const Registry& registry,
                       const DeviceFacts& device);
/// Where a choice changes: pairs of neighbours among the token counts of `entries`.
std::vector<std::pair<int, int>> switches(const std::map<int, std::string>& entries);

/// One configuration that an operator of a cell could run.
struct ChoiceOption {
  std::string group;  // parameters that all operators of a cell have in common
  std::string name;
  RowName row;
};
struct ChoicePart {
  ChoiceOption shipped;
  std::vector<ChoiceOption> others;
};
/// What one choice decides: operators that share parameters of it, else one operator.
struct Cell {
  std::string layer;  // what it shares with cells of other token counts and routings
  std::vector<const Chosen*> asked;
  std::vector<ChoicePart> parts;
};

/// By what the cells of several token counts share, and the tokens.
using Cells = std::map<std::pair<std::string, int>, Cell>;

/// The cells. All of their rows become the plan's.
Cells cells_of(const std::vector<Chosen>& all, Plan& plan);

}  // namespace moegate
