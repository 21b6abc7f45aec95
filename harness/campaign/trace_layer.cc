// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/trace_layer.h"

#include <fmt/format.h>

#include "harness/base/text.h"

namespace moegate {
namespace {

constexpr int64_t kMostTokens = 65536, kMostExperts = 1024, kMostChoices = 16;
constexpr int64_t kScaleGroup = 128;  // of fp8 scale factors

/// Null where it is missing, or `of` is no object.
const nlohmann::json* member_of(const nlohmann::json* of, const std::string& name) {
  if (!of || !of->is_object()) return nullptr;
  const auto found = of->find(name);
  return found == of->end() ? nullptr : &*found;
}

/// One definition, and what was read of it.
class LayerReader {
 public:
  LayerReader(const nlohmann::json& definition, MoeLayer& layer)
      : axes_(member_of(&definition, "axes")),
        inputs_(member_of(&definition, "inputs")),
        layer_(layer) {
    layer_.name = definition.value("name", "");
    layer_.read = {"name", "op_type", "type"};
  }

  /// Why it is no layer; empty when it is.
  std::string read() {
    if (!find_tokens_axis()) return "it has not one axis that workloads give, but none or several";
    read_sizes();
    if (layer_.experts < 1 || layer_.topk < 1 || layer_.hidden < 1 || layer_.inter < 1) {
      return "it names no number of experts, of choices, hidden or inner size";
    }
    if (const std::string why = impossible_sizes(); !why.empty()) return why;
    read_routing();
    read_products();
    if (layer_.scoring.empty() && layer_.dtype.empty()) return joined(layer_.lacking);
    return "";
  }

 private:
  static std::string joined(const std::vector<std::string>& clauses) {
    std::string text;
    for (const std::string& clause : clauses) text += (text.empty() ? "" : "; ") + clause;
    return text;
  }

  bool find_tokens_axis() {
    int found = 0;
    static const nlohmann::json kNone = nlohmann::json::object();
    const nlohmann::json& axes = axes_ && axes_->is_object() ? *axes_ : kNone;
    for (const auto& [name, axis] : axes.items()) {
      const nlohmann::json* const type = member_of(&axis, "type");
      if (!type) continue;
      layer_.read.insert("axes." + name + ".type");
      if (*type != "var") continue;
      layer_.tokens_axis = name;
      ++found;
    }
    return found == 1;
  }

  /// Of the first axis that is there; 0: none is, or it is no size.
  int64_t size_of_axis(std::initializer_list<const char*> names) {
    constexpr int64_t kLargest = 1 << 24;
    for (const std::string name : names) {
      const nlohmann::json* const value = member_of(member_of(axes_, name), "value");
      if (!value) continue;
      layer_.read.insert("axes." + name + ".value");
      const bool fits = value->is_number_unsigned() && value->get<uint64_t>() <= kLargest;
      return fits ? value->get<int64_t>() : 0;
    }
    return 0;
  }

  /// What the name says, "topk8" for example: older definitions say it nowhere else.
  int64_t size_in_name(const std::string& mark) const {
    const size_t at = layer_.name.find(mark);
    if (at == std::string::npos) return 0;
    const size_t start = at + mark.size();
    const size_t end = layer_.name.find_first_not_of("0123456789", start);
    const size_t digits = (end == std::string::npos ? layer_.name.size() : end) - start;
    return parse_number<int64_t>(layer_.name.substr(start, digits)).value_or(0);
  }

  void read_sizes() {
    const auto either = [](int64_t a, int64_t b) { return a > 0 ? a : b; };
    const int64_t experts = size_of_axis({"num_experts"});
    const int64_t local = size_of_axis({"num_local_experts"});
    layer_.experts = either(experts, local);
    layer_.local = either(local, experts);
    layer_.topk = either(size_of_axis({"top_k", "topk"}), size_in_name("_topk"));
    layer_.groups = either(size_of_axis({"n_group"}), either(size_in_name("_ng"), 1));
    layer_.topk_groups = either(size_of_axis({"topk_group"}), either(size_in_name("_kg"), 1));
    layer_.hidden = size_of_axis({"hidden_size", "hidden_dim"});
    layer_.inter = size_of_axis({"intermediate_size", "intermediate_dim"});
  }

  std::string impossible_sizes() const {
    const MoeLayer& l = layer_;
    if (l.experts > kMostExperts || l.local > l.experts || l.topk > l.experts ||
        l.topk > kMostChoices) {
      return fmt::format(
          "{} experts, {} of them of the rank, and {} chosen are not what an operator takes",
          l.experts, l.local, l.topk);
    }
    const int64_t width = l.groups > 0 && l.experts % l.groups == 0 ? l.experts / l.groups : 0;
    const bool groups_fit = l.groups == 1 || (width > 1 && l.topk_groups <= l.groups &&
                                              l.topk <= l.topk_groups * width);
    return groups_fit ? ""
                      : fmt::format("{} of {} groups do not fit {} experts", l.topk_groups,
                                    l.groups, l.experts);
  }

  std::string dtype_of_input(const std::string& input) {
    const nlohmann::json* const dtype = member_of(member_of(inputs_, input), "dtype");
    if (!dtype || !dtype->is_string()) return "";
    layer_.read.insert("inputs." + input + ".dtype");
    return dtype->get<std::string>();
  }

  /// How many axes an input has.
  size_t rank_of_input(const std::string& input) {
    const nlohmann::json* const shape = member_of(member_of(inputs_, input), "shape");
    if (!shape || !shape->is_array()) return 0;
    layer_.read.insert("inputs." + input + ".shape[]");
    return shape->size();
  }

  void read_routing() {
    static const std::map<std::string, std::string> kLogits = {
        {"float32", "fp32"}, {"float16", "fp16"}, {"bfloat16", "bf16"}};
    if (rank_of_input("topk_ids") == 2) layer_.ids = "topk_ids";
    if (rank_of_input("routing_logits") == 2) layer_.logits = "routing_logits";
    const auto dtype = kLogits.find(dtype_of_input(layer_.logits));
    if (dtype == kLogits.end() || layer_.experts < 2) {
      layer_.lacking.push_back("topk_sort: it has no routing_logits");
      return;
    }
    layer_.logits_dtype = dtype->second;
    if (layer_.name.find("_ds_routing") != std::string::npos) {
      layer_.scoring = "noaux_tc";
    } else if (layer_.name.find("_renorm") != std::string::npos) {
      layer_.scoring = "topk_softmax";
    } else {
      layer_.lacking.push_back("topk_sort: its name says neither ds_routing nor renorm");
    }
  }

  /// fp8 with a scale factor for each 128 of K and N, or bf16.
  void read_products() {
    const std::string weights = member_of(inputs_, "w1") ? "w1" : "gemm1_weights";
    const std::string dtype = dtype_of_input(weights);
    const bool fp8 = dtype == "float8_e4m3fn" || dtype == "float8_e4m3";
    const bool blocks = fp8 && rank_of_input("gemm1_weights_scale") == 3;
    const int64_t scales = size_of_axis({"num_hidden_blocks"});
    if (blocks && (scales == 0 || scales * kScaleGroup == layer_.hidden)) {
      layer_.dtype = "fp8";
    } else if (dtype == "bfloat16" && rank_of_input(weights) == 3) {
      layer_.dtype = "bf16";
    } else {
      layer_.lacking.push_back(
          fmt::format("fused_moe, moe_gate_up, moe_down: none has weights of {}{}",
                      dtype.empty() ? "an unknown type" : dtype,
                      blocks ? " in such blocks"
                      : fp8  ? " with such scale factors"
                             : ""));
    }
  }

  const nlohmann::json* axes_;
  const nlohmann::json* inputs_;
  MoeLayer& layer_;
};

using SuiteParams = std::map<std::string, std::string>;

/// What a part of the layer takes; empty when it takes this.
std::string fault_of_part(const std::string& op, const MoeLayer& layer, int64_t tokens) {
  if (tokens < 1 || tokens > kMostTokens) {
    return fmt::format("{} with {} tokens left out: it takes 1 to {}", op, tokens, kMostTokens);
  }
  const bool hidden = layer.hidden % kScaleGroup == 0, inter = layer.inter % kScaleGroup == 0;
  const bool fits = op == "moe_gate_up" ? hidden : op == "moe_down" ? inter : hidden && inter;
  if (op == "topk_sort" || layer.dtype == "bf16" || fits) return "";
  return fmt::format("{} with hidden = {}, inter = {} left out: it takes multiples of {}", op,
                     layer.hidden, layer.inter, kScaleGroup);
}

SuiteParams params_of_router(const MoeLayer& layer, int64_t tokens, double scale,
                             const std::string& routing) {
  SuiteParams params = {{"tokens", std::to_string(tokens)},
                        {"experts", std::to_string(layer.experts)},
                        {"topk", std::to_string(layer.topk)},
                        {"hidden", std::to_string(layer.hidden)},
                        {"scoring", layer.scoring}};
  if (layer.scoring == "noaux_tc" && layer.groups > 1) {
    params["groups"] = std::to_string(layer.groups);
    params["topk-groups"] = std::to_string(layer.topk_groups);
  }
  if (scale != 1) params["scale"] = fmt::format("{}", scale);
  if (layer.logits_dtype != "fp32") params["dtype"] = layer.logits_dtype;
  if (routing != "uniform") params["routing"] = routing;
  return params;
}

/// Those of the products and of the whole: what reaches the rank, where it has a share of the experts. At even loads
/// each of its rows is taken for a token of its own, as in suites/deepseek-r1.suite.
SuiteParams params_of_products(const MoeLayer& layer, int64_t tokens, const LayerRouting& routing) {
  const bool share = layer.local < layer.experts, recorded = !routing.rank.empty();
  const int64_t even = (tokens * layer.topk * layer.local + layer.experts - 1) / layer.experts;
  const int64_t rows = recorded ? routing.rank_rows : even;
  const std::string& spec = !share ? routing.spec : recorded ? routing.rank : "uniform";
  SuiteParams params = {{"tokens", std::to_string(share ? rows : tokens)},
                        {"experts", std::to_string(layer.local)},
                        {"topk", std::to_string(share ? 1 : layer.topk)},
                        {"hidden", std::to_string(layer.hidden)},
                        {"inter", std::to_string(layer.inter)}};
  if (spec != "uniform") params["routing"] = spec;
  return params;
}

}  // namespace

std::optional<MoeLayer> read_layer(const nlohmann::json& definition, std::string& why) {
  const nlohmann::json* const type = member_of(&definition, "op_type");
  const nlohmann::json* const older = member_of(&definition, "type");
  const nlohmann::json* const name = member_of(&definition, "name");
  const nlohmann::json* const op_type = type ? type : older;
  if (!name || !name->is_string() || !op_type || *op_type != "moe") {
    why = "it is no MoE layer";
    return std::nullopt;
  }
  MoeLayer layer;
  why = LayerReader(definition, layer).read();
  if (!why.empty()) return std::nullopt;
  return layer;
}

std::vector<SuiteCase> cases_of_layer(const MoeLayer& layer, int64_t tokens, double scale,
                                      const LayerRouting& routing,
                                      std::vector<std::string>& faults) {
  std::vector<SuiteCase> cases;
  const auto add = [&](const std::string& op, const SuiteParams& params, int64_t rows) {
    const std::string fault = fault_of_part(op, layer, rows);
    if (fault.empty()) {
      cases.push_back({op, params});
    } else {
      faults.push_back(fault);
    }
  };
  if (!layer.scoring.empty()) {
    add("topk_sort", params_of_router(layer, tokens, scale, routing.spec), tokens);
  }
  if (layer.dtype.empty()) return cases;
  SuiteParams products = params_of_products(layer, tokens, routing);
  const int64_t rows = *parse_number<int64_t>(products.at("tokens"));
  if (layer.dtype == "fp8") add("fused_moe", products, rows);
  if (layer.dtype != "fp8") products["dtype"] = layer.dtype;
  add("moe_gate_up", products, rows);
  add("moe_down", products, rows);
  return cases;
}

}  // namespace moegate
