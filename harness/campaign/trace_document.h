// SPDX-License-Identifier: Apache-2.0
// One trace of FlashInfer-Bench's schema, as far as a suite needs it.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace moegate {

/// Where a workload has an input from.
struct TraceInput {
  enum class Kind { random, scalar, safetensors, other };
  Kind kind = Kind::other;
  std::optional<double> value;   // scalar
  std::string path, tensor_key;  // safetensors
};

struct TraceWorkload {
  std::string definition;
  std::map<std::string, int64_t> axes;
  std::map<std::string, TraceInput> inputs;
};

/// The workload of a trace; its result is not read. `where` is what messages begin with. Throws Error(usage) for what
/// is no trace: without a definition's name, or a workload with axes that are whole numbers and with inputs.
TraceWorkload read_trace(const std::string& where, const nlohmann::json& trace);

/// How often each field was there, by its path: "evaluation.environment.libs.cuda", "tags[]".
using FieldCounts = std::map<std::string, size_t>;

/// Counts every value. What is null says nothing.
void count_leaves(const nlohmann::json& value, const std::string& path, FieldCounts& counts);

}  // namespace moegate
