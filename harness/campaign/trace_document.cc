// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/trace_document.h"

#include "harness/base/error.h"
#include "harness/base/escape.h"

namespace moegate {
namespace {

/// The member of a trace that has to be there. Throws Error(usage) naming where.
const nlohmann::json& required_member(const std::string& where, const nlohmann::json& of,
                                      const char* name, bool (nlohmann::json::*is)() const noexcept,
                                      const char* what) {
  const auto found = of.is_object() ? of.find(name) : of.end();
  const bool there = of.is_object() && found != of.end() && ((*found).*is)();
  if (!there) {
    usage_error("{}: is no trace of FlashInfer-Bench's schema: it has no '{}' that is {}", where,
                name, what);
  }
  return *found;
}

TraceInput read_input(const nlohmann::json& json) {
  const auto text = [&](const char* name) {
    const auto found = json.is_object() ? json.find(name) : json.end();
    const bool there = json.is_object() && found != json.end() && found->is_string();
    return there ? found->get<std::string>() : "";
  };
  TraceInput input{TraceInput::Kind::other, {}, text("path"), text("tensor_key")};
  const std::string type = text("type");
  if (type == "random") input.kind = TraceInput::Kind::random;
  if (type == "scalar" && json.contains("value")) {
    input.kind = TraceInput::Kind::scalar;
    if (json["value"].is_number()) input.value = json["value"].get<double>();
  }
  if (type == "safetensors" && !input.path.empty() && !input.tensor_key.empty()) {
    input.kind = TraceInput::Kind::safetensors;
  }
  return input;
}

}  // namespace

TraceWorkload read_trace(const std::string& where, const nlohmann::json& trace) {
  const nlohmann::json& workload =
      required_member(where, trace, "workload", &nlohmann::json::is_object, "an object");
  const nlohmann::json& axes =
      required_member(where, workload, "axes", &nlohmann::json::is_object, "an object");
  const nlohmann::json& inputs =
      required_member(where, workload, "inputs", &nlohmann::json::is_object, "an object");
  TraceWorkload read{
      required_member(where, trace, "definition", &nlohmann::json::is_string, "a text"), {}, {}};
  for (const auto& [name, value] : axes.items()) {
    constexpr uint64_t kLargest = uint64_t{1} << 53;
    if (!value.is_number_unsigned() || value.get<uint64_t>() > kLargest) {
      usage_error("{}: axis '{}' of the workload is no whole number from 0", where,
                  one_line(valid_utf8(name)));
    }
    read.axes[name] = value.get<int64_t>();
  }
  for (const auto& [name, input] : inputs.items()) read.inputs[name] = read_input(input);
  return read;
}

void count_leaves(const nlohmann::json& value, const std::string& path, FieldCounts& counts) {
  constexpr size_t kLongestPath = 200;  // names of any length, each within the one before
  if (path.size() > kLongestPath) {
    ++counts[path.substr(0, kLongestPath) + "..."];
  } else if (value.is_object()) {
    for (const auto& [name, inner] : value.items()) {
      count_leaves(inner, path.empty() ? name : path + "." + name, counts);
    }
  } else if (value.is_array()) {
    for (const nlohmann::json& inner : value) count_leaves(inner, path + "[]", counts);
  } else if (!value.is_null()) {
    ++counts[path];
  }
}

}  // namespace moegate
