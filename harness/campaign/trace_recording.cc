// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/trace_recording.h"

#include <fmt/ranges.h>

#include <cmath>
#include <filesystem>

#include "harness/base/files.h"
#include "harness/base/sha256.h"

namespace moegate {
namespace {

constexpr const char* kEven = "; imported with routing = uniform";

const TraceInput* input_of(const TraceWorkload& workload, const std::string& name) {
  const auto found = workload.inputs.find(name);
  return found == workload.inputs.end() ? nullptr : &found->second;
}

bool is_recorded(const TraceInput* input) {
  return input && input->kind == TraceInput::Kind::safetensors;
}

void mark_read(const std::string& input, std::initializer_list<const char*> fields,
               std::set<std::string>& read) {
  for (const char* field : fields) read.insert("workload.inputs." + input + "." + field);
}

/// Whole numbers that an expert's can be; nothing when one is none.
std::optional<IntTable> whole_numbers(const NumberTensor& tensor) {
  IntTable table{tensor.shape[0], tensor.shape[1], {}};
  for (const double value : tensor.values) {
    if (!(std::abs(value) < 1e15) || value != std::floor(value)) return std::nullopt;
    table.values.push_back(static_cast<int64_t>(value));
  }
  return table;
}

}  // namespace

TensorSource tensors_below(const std::string& root) {
  constexpr size_t kLongest = size_t{256} << 20;
  struct Last {
    std::string path, bytes;
  };
  // Logits and bias of a workload are in one file.
  return [root, last = Last()](const std::string& path,
                               const std::string& key) mutable -> std::optional<NumberTensor> {
    namespace fs = std::filesystem;
    const fs::path inside = fs::path(path).lexically_normal();
    if (inside.empty() || inside.is_absolute() || *inside.begin() == "..") return std::nullopt;
    const fs::path file = fs::path(root) / inside;
    if (!is_file(file)) return std::nullopt;
    if (last.path != file.string()) last = {file.string(), read_file(file, kLongest)};
    if (last.bytes.starts_with("version https://git-lfs")) return std::nullopt;
    return read_safetensors(last.path, last.bytes, key);
  };
}

double Recorder::scale_of(const TraceWorkload& workload, std::set<std::string>& read) const {
  const std::string name = "routed_scaling_factor";
  const TraceInput* const input = input_of(workload, name);
  const bool usable = input && input->value && *input->value >= 1e-6 && *input->value <= 1e6;
  if (!usable) return 1;
  mark_read(name, {"type", "value"}, read);
  return *input->value;
}

LayerRouting Recorder::routing_of(const MoeLayer& layer, const TraceWorkload& workload,
                                  int64_t tokens, std::set<std::string>& read,
                                  std::vector<std::string>& faults) {
  LayerRouting routing;
  const auto ids = read_ids(layer, workload, tokens, read, faults);
  if (!ids) return routing;
  routing.spec = keep(*ids);
  if (layer.local == layer.experts) return routing;
  const std::string name = "local_expert_offset";
  const TraceInput* const offset = input_of(workload, name);
  if (!offset || !offset->value || !(*offset->value >= 0) ||
      *offset->value > static_cast<double>(layer.experts - layer.local)) {
    faults.push_back("local_expert_offset is no expert: even loads for the rank's share");
    return routing;
  }
  mark_read(name, {"type", "value"}, read);
  const IntTable rows = rows_of_rank(*ids, static_cast<int64_t>(*offset->value), layer.local);
  routing.rank = keep(rows);
  routing.rank_rows = rows.rows;
  return routing;
}

std::optional<IntTable> Recorder::read_ids(const MoeLayer& layer, const TraceWorkload& workload,
                                           int64_t tokens, std::set<std::string>& read,
                                           std::vector<std::string>& faults) const {
  const TraceInput* const chosen = input_of(workload, layer.ids);
  const TraceInput* const logits = input_of(workload, layer.logits);
  if (tokens < 1) return std::nullopt;
  if (is_recorded(chosen)) {
    const auto tensor = read_tensor(layer.ids, *chosen, {tokens, layer.topk}, read, faults);
    if (!tensor) return std::nullopt;
    auto ids = whole_numbers(*tensor);
    const std::string fault = ids ? fault_of_routing(*ids, layer.experts) : "it has fractions";
    if (fault.empty()) return ids;
    faults.push_back(fmt::format("{} is no routing: {}{}", layer.ids, fault, kEven));
    return std::nullopt;
  }
  if (!is_recorded(logits)) return std::nullopt;
  if (layer.scoring.empty()) {
    faults.push_back(fmt::format("{} cannot be routed by an unknown rule{}", layer.logits, kEven));
    return std::nullopt;
  }
  const auto scores = read_tensor(layer.logits, *logits, {tokens, layer.experts}, read, faults);
  if (!scores) return std::nullopt;
  const std::string name = "routing_bias";
  const TraceInput* const bias = layer.rule().sigmoid ? input_of(workload, name) : nullptr;
  if (!bias) return chosen_experts(layer.rule(), scores->values, {});
  if (!is_recorded(bias)) {
    faults.push_back("routing_bias is not recorded: taken as 0");
    return chosen_experts(layer.rule(), scores->values, {});
  }
  const auto added = read_tensor(name, *bias, {layer.experts}, read, faults);
  if (!added) return std::nullopt;
  return chosen_experts(layer.rule(), scores->values, added->values);
}

std::optional<NumberTensor> Recorder::read_tensor(const std::string& name, const TraceInput& input,
                                                  const std::vector<int64_t>& shape,
                                                  std::set<std::string>& read,
                                                  std::vector<std::string>& faults) const {
  mark_read(name, {"type", "path", "tensor_key"}, read);
  auto tensor = tensors_(input.path, input.tensor_key);
  if (tensor && tensor->shape == shape) return tensor;
  const std::string why = tensor
                              ? fmt::format("has shape [{}], not [{}]",
                                            fmt::join(tensor->shape, ", "), fmt::join(shape, ", "))
                              : "is in a file that is not there";
  faults.push_back(fmt::format("{} {}{}", name, why, kEven));
  return std::nullopt;
}

std::string Recorder::keep(const IntTable& ids) {
  std::string bytes = npy_bytes(ids);
  const std::string name = "routing-" + sha256(bytes).substr(0, 12) + ".npy";
  recordings_.emplace(name, std::move(bytes));
  return "replay:" + folder_ + "/" + name;
}

}  // namespace moegate
