// SPDX-License-Identifier: Apache-2.0
// The suite of a model's MoE layers, as text: a section for each operator of the layer, with the
// token counts and routings of the suites in suites/, and each number's field in a comment.
#pragma once

#include <optional>
#include <string>

#include "harness/commands/model_config.h"
#include "harness/kernel/registry.h"

namespace moegate {

/// Over how many ranks the experts are split, where that is asked for.
struct Ranks {
  std::optional<int> tp;  // every expert's width
  std::optional<int> ep;  // whole experts
};

/// A section that cannot be is a comment: why, and which numbers of ranks work. `name` begins the
/// names of sections. Without ranks there are sections of TP 1.
std::string suite_text(const MoeModel& model, const std::string& name, const Ranks& ranks,
                       const Registry& registry);

}  // namespace moegate
