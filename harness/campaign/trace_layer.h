// SPDX-License-Identifier: Apache-2.0
// What a definition of FlashInfer-Bench's trace schema is here: an MoE layer, whose parts are operators.
// - topk_sort, where its name says `ds_routing` or `renorm` and it has routing_logits
// - moe_gate_up and moe_down, where the weights are bf16, or fp8 with a scale factor for each 128 x 128
// - fused_moe, where they are fp8
// A rank with a share of the experts has the rows of its experts, each as a token with one choice.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/campaign/suite_text.h"
#include "harness/campaign/trace_document.h"
#include "harness/campaign/trace_routing.h"

namespace moegate {

struct MoeLayer {
  std::string name;
  std::string tokens_axis;         // the one axis that workloads give
  int64_t experts = 0, local = 0;  // of the layer, of the rank
  int64_t topk = 0;
  int64_t groups = 1, topk_groups = 1;
  int64_t hidden = 0, inter = 0;
  std::string scoring;       // of topk_sort; empty: its definition does not name one that is there
  std::string logits;        // input that holds them; empty: there is none
  std::string logits_dtype;  // "fp32", "fp16", "bf16"
  std::string ids;           // input that holds the chosen experts; empty: there is none
  std::string dtype;         // of the GEMMs: "fp8", "bf16"; empty: of no operator that is there
  std::set<std::string> read;        // what was read of the definition, as field paths
  std::vector<std::string> lacking;  // parts that have no operator, in one clause each

  RouterRule rule() const { return {experts, topk, scoring == "noaux_tc", groups, topk_groups}; }
};

/// Nothing, and `why` in one clause, for what is no MoE layer with a part that has an operator.
std::optional<MoeLayer> read_layer(const nlohmann::json& definition, std::string& why);

/// A routing: `spec` is what a suite says of it. Of a recorded one `rank` is that of the rank's rows, if the rank has
/// a share of the experts, and `rank_rows` how many there are.
struct LayerRouting {
  std::string spec = "uniform", rank;
  int64_t rank_rows = 0;
};

/// The cases of a layer that so many tokens reach. `scale` is the factor on routing weights. What an operator does not
/// take is left out and named in `faults`.
std::vector<SuiteCase> cases_of_layer(const MoeLayer& layer, int64_t tokens, double scale,
                                      const LayerRouting& routing,
                                      std::vector<std::string>& faults);

}  // namespace moegate
