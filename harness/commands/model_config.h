// SPDX-License-Identifier: Apache-2.0
// What the config.json of a model says of its MoE layers. Each number has the name of its field.
// Knows nothing of operators but the router's parameters, and nothing of suites.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace moegate {

/// A number, and the field that it is from.
struct Stated {
  int64_t value = 0;
  std::string from;

  friend bool operator==(const Stated&, const Stated&) = default;
};

/// A parameter's value, and the field that it is from, or why it is so.
struct SuiteValue {
  std::string key, value = {}, from = {};
};

struct MoeLayers {
  std::vector<int> which;  // from 0; empty where the config does not count its layers
  Stated experts, topk, inter;
  /// The field of a shared expert of the same width, which engines compute as one more expert that
  /// every token has; empty where there is none.
  std::string shared;
};

struct MoeModel {
  std::string path;  // of the file
  std::string type;  // model_type; "" where the file has none
  Stated hidden;
  std::vector<MoeLayers> layers;  // at least one
  /// Of topk_sort, beside the sizes and the scale; empty where none fits.
  std::vector<SuiteValue> router;
  SuiteValue scale;    // a factor on the layer's output; key empty where there is none
  bool fp8 = false;    // with scale factors per block of 128 x 128; else bf16
  bool mxfp4 = false;  // shipped so; beside it bf16
  std::vector<std::string>
      notes;  // sentences on what is there and becomes no section, or is assumed
};

/// Reads a config.json, or that of a folder; of a multimodal model the part about text. Fields of a
/// known model_type are looked up by the names that it uses, others by every known name.
/// Throws Error(usage) naming the path and what is missing, no number, or said twice in two ways.
MoeModel read_model(const std::string& path);

}  // namespace moegate
