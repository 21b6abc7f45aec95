// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/model_config.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <tuple>
#include <utility>

#include "harness/base/error.h"
#include "harness/base/files.h"
#include "harness/base/formats.h"
#include "harness/base/text.h"
#include "harness/commands/templates.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Names = std::vector<std::string>;

/// Of templates/model/families.ini: what a type of model calls its numbers, and how it chooses
/// experts where no field says so. The last one has no types and is any other's.
IniSection family_of(const std::string& type) {
  constexpr const char* kFamilies = "model/families.ini";
  std::vector<IniSection> all = parse_ini(kFamilies, template_text(kFamilies)).sections;
  return *std::find_if(all.begin() + 1, all.end() - 1, [&](const IniSection& family) {
    return std::ranges::count(family.find("types")->values, type) > 0;
  });
}

class ConfigFile {
 public:
  explicit ConfigFile(const fs::path& path) : path_(path.string()) {
    whole_ = parse_json(path_, read_file(path_));
    if (!whole_.is_object()) usage_error("{}: is no config.json: it is no object", path_);
    for (const char* name : {"text_config", "language_config", "llm_config"}) {
      const json* part = member(whole_, name);
      if (text_.is_null() && part != nullptr && part->is_object()) text_ = *part;
    }
    type_ = text("model_type");
    family_ = family_of(type_);
    if (const IniEntry* router = family_.find("router")) router_ = router->values[0];
  }

  MoeModel read() const;

 private:
  static const json* member(const json& of, const std::string& name) {
    const auto at = of.is_object() ? of.find(name) : of.end();
    return at == of.end() || at->is_null() ? nullptr : &*at;
  }
  /// Of the part about text, else of the whole; null where it is absent or null.
  const json* find(const std::string& name) const {
    const json* own = member(text_, name);
    return own != nullptr ? own : member(whole_, name);
  }
  std::string text(const std::string& name) const {
    const json* value = find(name);
    return value != nullptr && value->is_string() ? value->get<std::string>() : "";
  }
  /// Whether it is there and neither false nor 0.
  bool is_set(const std::string& name) const {
    const json* value = find(name);
    return value != nullptr && *value != false && *value != 0;
  }
  /// What stands for a layer, where it is a list by layer; the value itself, where it is none.
  const json& of_layer(const json& value, const std::string& name, int layer) const {
    if (!value.is_array()) return value;
    if (static_cast<int>(value.size()) == layer_count())
      return value.at(static_cast<size_t>(layer));
    usage_error("{}: {} has {} values, but num_hidden_layers is {}; one of them is wrong", path_,
                name, value.size(), layer_count());
  }
  int64_t whole_number(const json& value, const std::string& name) const {
    if (value.is_number_integer() && value >= 0 && value <= 1 << 24) return value.get<int64_t>();
    usage_error("{}: {} = {} is no whole number from 0 to 2^24", path_, name, value.dump());
  }
  /// 0 where the config does not say it.
  int layer_count() const {
    const json* count = find("num_hidden_layers");
    return count == nullptr ? 0 : static_cast<int>(whole_number(*count, "num_hidden_layers"));
  }
  int64_t number(const std::string& name, int layer, int64_t if_absent) const {
    const json* value = find(name);
    return value == nullptr ? if_absent : whole_number(of_layer(*value, name, layer), name);
  }
  bool has_in_list(const std::string& name, int layer) const {
    const json* list = find(name);
    return list != nullptr && std::ranges::count(*list, json(layer)) > 0;
  }

  bool is_known() const { return family_.find("types") != nullptr; }
  Stated one_of(const char* what, const Names& names, int layer) const;
  Stated width(int layer) const;
  bool is_moe(int layer) const;
  MoeLayers numbers(int layer, MoeModel& model) const;
  std::vector<MoeLayers> layers(MoeModel& model) const;

  std::string shared(int64_t width, int layer, MoeModel& model) const;
  std::vector<SuiteValue> router(MoeModel& model) const;
  std::vector<SuiteValue> biased_sigmoid(const std::string& from) const;
  SuiteValue renorm() const;
  SuiteValue scale() const;
  bool is_fp8(MoeModel& model) const;

  std::string path_;
  json whole_, text_;
  std::string type_;
  IniSection family_;
  std::string router_;  // empty: by fields
};

// --- numbers of layers

Stated ConfigFile::one_of(const char* what, const Names& names, int layer) const {
  std::vector<Stated> found;
  for (const std::string& name : names) {
    if (find(name) != nullptr) found.push_back({number(name, layer, 0), name});
  }
  if (found.empty()) {
    usage_error("{}: has no {} (model_type '{}', looked for {}); is it the config of an MoE model?",
                path_, what, type_, fmt::join(names, ", "));
  }
  const auto differs = [&](const Stated& other) { return other.value != found[0].value; };
  if (std::ranges::none_of(found, differs)) return found[0];
  const auto line = [](const Stated& one) { return fmt::format("{} = {}", one.from, one.value); };
  usage_error("{}: which are the {} of model_type '{}': {}? Remove all but one of them from a copy",
              path_, what, type_, fmt::join(mapped(found, line), ", "));
}

/// Where both are there, intermediate_size is that of dense layers.
Stated ConfigFile::width(int layer) const {
  const char* name =
      find("moe_intermediate_size") != nullptr ? "moe_intermediate_size" : "intermediate_size";
  return one_of("width of an expert", {name}, layer);
}

bool ConfigFile::is_moe(int layer) const {
  if (find("moe_layers") != nullptr) return has_in_list("moe_layers", layer);
  for (const char* name : {"interleave_moe_layer_step", "decoder_sparse_step"}) {
    const int64_t step = number(name, layer, 1);
    if (step == 0 || (layer + 1) % step != 0) return false;
  }
  if (has_in_list("mlp_only_layers", layer)) return false;
  const json* frequency = find("moe_layer_freq");
  const int64_t step = number("moe_layer_freq", layer, 1);
  if (frequency != nullptr && frequency->is_array()) return step != 0;  // 1 of an MoE layer
  return layer >= number("first_k_dense_replace", layer, 0) && (step == 0 || layer % step == 0);
}

MoeLayers ConfigFile::numbers(int layer, MoeModel& model) const {
  MoeLayers layers;
  layers.experts = one_of("number of experts", family_.find("experts")->values, layer);
  layers.topk = one_of("number of experts of a token", family_.find("topk")->values, layer);
  layers.inter = width(layer);
  layers.shared = shared(layers.inter.value, layer, model);
  return layers;
}

std::vector<MoeLayers> ConfigFile::layers(MoeModel& model) const {
  if (layer_count() == 0) return {numbers(0, model)};
  std::vector<MoeLayers> all;
  for (int layer = 0; layer < layer_count(); ++layer) {
    if (!is_moe(layer)) continue;
    const MoeLayers own = numbers(layer, model);
    if (own.experts.value < 2) continue;  // a dense layer in a list by layer
    const auto same = std::ranges::find_if(all, [&](const MoeLayers& other) {
      return std::tie(other.experts, other.topk, other.inter, other.shared) ==
             std::tie(own.experts, own.topk, own.inter, own.shared);
    });
    MoeLayers& of = same == all.end() ? all.emplace_back(own) : *same;
    of.which.push_back(layer);
  }
  if (all.empty()) usage_error("{}: none of its {} layers is an MoE layer", path_, layer_count());
  return all;
}

// --- shared experts

/// Of many layers the same.
void note_once(MoeModel& model, const std::string& note) {
  if (std::ranges::count(model.notes, note) == 0) model.notes.push_back(note);
}

/// The field of one that is as wide as the others; else empty, and a note says what is there.
std::string ConfigFile::shared(int64_t width, int layer, MoeModel& model) const {
  if (router_ == "on_input") return "one, as every model of this type has";
  if (is_set("shared_expert_intermediate_size")) {
    note_once(model,
              "Its shared expert (shared_expert_intermediate_size) is gated, and stays a layer of "
              "its own");
    return "";
  }
  for (const char* name : {"n_shared_experts", "num_shared_experts", "num_shared_expert"}) {
    const int64_t count = number(name, layer, 0);
    const bool is_hunyuan = std::string(name) == "num_shared_expert";
    if (count == 0 || (is_hunyuan && !is_set("use_mixed_mlp_moe"))) continue;
    const int64_t each = is_hunyuan ? number("intermediate_size", layer, width) : width;
    if (count * each == width) return name;
    note_once(model, fmt::format("Shared experts ({} = {}) are {} wide in all, not {}, and stay a "
                                 "layer of their own",
                                 name, count, count * each, width));
  }
  const char* name = "shared_intermediate_size";
  if (number(name, layer, 0) == width) return name;
  if (is_set(name)) {
    note_once(model, fmt::format("A shared expert ({}) stays a layer of its own", name));
  }
  return "";
}

// --- the router

SuiteValue ConfigFile::renorm() const {
  const char* name = "norm_topk_prob";
  if (find(name) != nullptr) return {"renorm", is_set(name) ? "1" : "0", name};
  return {"renorm", "1", "no field says so"};
}

SuiteValue ConfigFile::scale() const {
  const char* name = "routed_scaling_factor";
  const json* factor = find(name);
  if (factor == nullptr || *factor == 1) return {};
  if (!factor->is_number()) usage_error("{}: {} = {} is no number", path_, name, factor->dump());
  return {"scale", fmt::format("{}", factor->get<double>()), name};
}

std::vector<SuiteValue> ConfigFile::biased_sigmoid(const std::string& from) const {
  std::vector<SuiteValue> values = {{"scoring", "noaux_tc", from}, renorm()};
  for (const auto& [key, name] : {std::pair("groups", "n_group"), {"topk-groups", "topk_group"}}) {
    if (find(name) != nullptr) {
      values.push_back({key, fmt::format("{}", number(name, 0, 1)), name});
    }
  }
  return values;
}

/// Empty where no operator does it, and a note says why.
std::vector<SuiteValue> ConfigFile::router(MoeModel& model) const {
  const auto none = [&](const std::string& why) {
    model.notes.push_back("No section of its router: " + why);
    return std::vector<SuiteValue>();
  };
  const std::string method = text("topk_method"), scoring = text("scoring_func");
  if (router_ == "on_input") {
    return none("it takes the sigmoid of the logits, and its weights scale the experts' input");
  }
  if (router_ == "of_chosen") {
    model.notes.push_back(
        "Of its grouped GEMMs only those in MXFP4 (-w4-) have biases and swiglu_limit");
    return {{"scoring", "topk_softmax", "softmax over the chosen logits"},
            {"bias", "1", "as this type has"}};
  }
  if (router_ == "sigmoid") return biased_sigmoid("sigmoid and bias, as this type has");
  if (scoring == "sigmoid" || method == "noaux_tc") {
    if (method == "noaux_tc") return biased_sigmoid("topk_method");
    if (is_set("use_routing_bias")) return biased_sigmoid("scoring_func, use_routing_bias");
    return none("scoring_func is sigmoid, without a bias that a field names");
  }
  if (!scoring.empty() && scoring != "softmax") return none("scoring_func is " + scoring);
  if (method == "group_limited_greedy") return none("topk_method is " + method);
  const char* known = is_known() ? "as this type has" : "assumed";
  const SuiteValue softmax = {"scoring", "softmax", scoring.empty() ? known : "scoring_func"};
  if (router_ == "softmax") return {softmax, {"renorm", "1", known}};
  return {softmax, renorm()};
}

// --- weights

bool ConfigFile::is_fp8(MoeModel& model) const {
  const json* config = find("quantization_config");
  if (config == nullptr || !config->is_object()) return false;
  const json* block = member(*config, "weight_block_size");
  const std::string method = config->value("quant_method", json("?")).dump();
  if (method == "\"fp8\"" && block != nullptr && *block == json({128, 128})) return true;
  model.mxfp4 = method == "\"mxfp4\"";
  if (model.mxfp4) return false;
  std::string also = block == nullptr ? "" : ", weight_block_size = " + block->dump();
  if (const json* bits = member(*config, "bits")) also += ", bits = " + bits->dump();
  model.notes.push_back(fmt::format(
      "The weights are shipped as quantization_config says (quant_method = {}{}), which "
      "no section measures: these are bf16",
      method, also));
  return false;
}

MoeModel ConfigFile::read() const {
  MoeModel model;
  model.path = path_;
  model.type = type_;
  model.layers = layers(model);
  model.hidden = one_of("hidden size", {"hidden_size"}, 0);
  if (!is_known()) {
    model.notes.insert(
        model.notes.begin(),
        fmt::format("The model_type '{}' is unknown here: fields were found by name, "
                    "so check the router and the shared experts",
                    type_));
  }
  model.router = router(model);
  model.scale = scale();
  if (!model.router.empty()) {
    const bool bf16 = router_ == "of_chosen";
    model.router.push_back({"dtype", bf16 ? "bf16" : "fp32", "of the logits; no field says so"});
  }
  model.fp8 = is_fp8(model);
  return model;
}

}  // namespace

MoeModel read_model(const std::string& path) {
  std::error_code ignored;  // then it is read as a file, whose reader says why not
  const bool is_folder = fs::is_directory(path, ignored);
  return ConfigFile(is_folder ? fs::path(path) / "config.json" : fs::path(path)).read();
}

}  // namespace moegate
