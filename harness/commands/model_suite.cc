// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/model_suite.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "harness/base/error.h"
#include "harness/base/text.h"

namespace moegate {
namespace {

// As the suites in suites/ have them, so that the same layer has the same keys.
constexpr const char* kTokens =
    "1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 512, 1024, 2048, 4096, 8192, 16384";
constexpr const char* kFewTokens = "1, 8, 32, 128, 512, 2048, 8192";
constexpr const char* kLoadTokens = "16, 128, 1024, 8192";
constexpr const char* kAlignTokens =
    "1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384";
constexpr const char* kLoads = "zipf:0.67, hot:1:1";

constexpr int kFp8Group = 128;  // width that shares a scale factor
constexpr int kMostRanks = 64;  // that a comment names
constexpr int kMostExperts = 1024;

struct Section {
  std::string name;
  std::string op;
  std::vector<SuiteValue> values;
};

SuiteValue of(const char* key, const Stated& number) {
  return {key, fmt::format("{}", number.value), number.from};
}

/// "3 to 5, 9"
std::string ranges_text(const std::vector<int>& numbers) {
  std::vector<std::string> ranges;
  for (size_t first = 0, last = 0; first < numbers.size(); first = last + 1) {
    last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    ranges.push_back(first == last ? fmt::format("{}", numbers[first])
                                   : fmt::format("{} to {}", numbers[first], numbers[last]));
  }
  return fmt::format("{}", fmt::join(ranges, ", "));
}

/// A paragraph of comments, of lines of at most 120 characters: a line end in what a config says is
/// none here.
std::string comment(std::string text) {
  constexpr size_t kWidth = 120;
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < ' '; }, ' ');
  std::string lines, line = "#";
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (line.size() + 1 + word.size() > kWidth) {
      lines += line + "\n";
      line = "#";
    }
    line += " " + word;
    at = end + 1;
  }
  return lines + line + "\n";
}

class Writer {
 public:
  Writer(const MoeModel& model, std::string name, const Ranks& ranks, const Registry& registry)
      : model_(model), name_(std::move(name)), ranks_(ranks), registry_(registry) {}

  std::string text() {
    head();
    for (const MoeLayers& layers : model_.layers) {
      layers_ = &layers;
      if (model_.layers.size() > 1) {
        text_ += "\n" + comment("Layers " + ranges_text(layers.which) + ".");
      }
      routing();
      if (ranks_.tp || !ranks_.ep) tensor_parallel(ranks_.tp.value_or(1));
      if (ranks_.ep) expert_parallel(*ranks_.ep);
    }
    return text_;
  }

 private:
  void head();
  void routing();
  void tensor_parallel(int ranks);
  void gemms(const std::string& prefix, const Stated& inter);
  void around(const std::string& prefix, const Stated& inter);
  void expert_parallel(int ranks);

  /// Of the layers at hand.
  std::string prefix() const {
    if (model_.layers.size() == 1) return name_;
    return fmt::format("{}-layer{}", name_, layers_->which.front());
  }
  bool shares() const { return !layers_->shared.empty(); }
  SuiteValue topk(int more = 0) const { return with(of("topk", layers_->topk), more); }
  SuiteValue experts(int more = 0) const { return with(of("experts", layers_->experts), more); }
  SuiteValue with(SuiteValue number, int more) const {
    if (more == 0) return number;
    number.value = fmt::format("{}", std::stoll(number.value) + more);
    number.from += fmt::format(", and {}", layers_->shared);
    return number;
  }
  SuiteValue hidden() const { return of("hidden", model_.hidden); }
  static SuiteValue routing_of(const char* text) { return {"routing", text, ""}; }
  static SuiteValue tokens_of(const char* text) { return {"tokens", text, ""}; }

  void note(const std::string& text) { text_ += "\n" + comment(text); }
  void add(const Section& section);
  /// Why an operator does not take it; empty where it does.
  std::string refusal(const Section& section) const;

  const MoeModel& model_;
  const std::string name_;
  const Ranks ranks_;
  const Registry& registry_;
  const MoeLayers* layers_ = nullptr;
  std::string text_;
};

void Writer::head() {
  text_ +=
      comment(fmt::format("{}: the MoE layers of a model_type {}, decode and prefill, even, "
                          "realistic and worst loads.",
                          name_, model_.type.empty() ? "(none)" : model_.type));
  text_ += comment(
      "Made by `moegate new suite` of " + model_.path +
      ". The comment behind a number is the field that it is from. Token counts and routings are "
      "those of moegate's own suites: zipf:0.67 reproduces the skew that TensorRT-LLM's tech blog "
      "4 reports for DeepSeek-R1; hot:1:1 sends one of every token's experts to the same one.");
  const std::vector<int>& which = model_.layers.front().which;
  if (model_.layers.size() == 1 && !which.empty()) {
    text_ += comment("Its MoE layers are " + ranges_text(which) + ", counted from 0.");
  }
  for (const std::string& sentence : model_.notes) text_ += comment(sentence + ".");
  if (!model_.fp8) {
    text_ += comment(
        "Activation and whole layer have no section: their operators are of fp8 with scale factors "
        "per block.");
  }
  text_ += fmt::format("tokens = {}\nlaunch = graph\n", kTokens);
}

// --- from the logits to rows by expert

void Writer::routing() {
  if (!model_.router.empty()) {
    Section router = {prefix(), "topk_sort", {routing_of("uniform, zipf:0.67, hot:1:1")}};
    router.values.insert(router.values.end(), {experts(), topk(), hidden()});
    router.values.insert(router.values.end(), model_.router.begin(), model_.router.end());
    add(router);
  }
  add({prefix() + "-align",
       "moe_align",
       {tokens_of(kAlignTokens), {"block", "16, 64, 128", ""}, experts(), topk()}});
  add({prefix() + "-align-loads",
       "moe_align",
       {tokens_of("1, 64, 1024, 16384"),
        {"block", "64", ""},
        routing_of(kLoads),
        experts(),
        topk()}});
  if (!shares()) return;
  add({prefix() + "-shared-align",
       "moe_align",
       {tokens_of(kAlignTokens),
        {"block", "16, 64", ""},
        routing_of("shared:uniform"),
        experts(1),
        topk(1)}});
}

// --- what a rank of TP computes

/// The numbers of ranks, at most `most`, over which so many split into multiples of `unit`.
std::vector<int> splits_of(int64_t number, int unit, int most) {
  std::vector<int> splits;
  for (int ranks = 1; ranks <= most; ++ranks) {
    if (number % (int64_t{ranks} * unit) == 0) splits.push_back(ranks);
  }
  return splits;
}

void Writer::tensor_parallel(int ranks) {
  const Stated& width = layers_->inter;
  const int unit = model_.fp8 ? kFp8Group : 1;
  const std::vector<int> splits = splits_of(width.value, unit, kMostRanks);
  const std::string name = fmt::format("{}-tp{}", prefix(), ranks);
  if (width.value % (int64_t{ranks} * unit) != 0) {
    note(fmt::format("No sections {}-...: {} = {} does not split into {} whole parts{}. {}", name,
                     width.from, width.value, ranks,
                     model_.fp8 ? fmt::format(" of a multiple of {}, as fp8 needs", kFp8Group) : "",
                     splits.empty() ? "No --tp works."
                                    : fmt::format("--tp that work: {}.", fmt::join(splits, ", "))));
    return;
  }
  Stated inter = {width.value / ranks, width.from};
  if (ranks > 1) inter.from += fmt::format(" / {}", ranks);
  gemms(name, inter);
  around(name, inter);
}

void Writer::gemms(const std::string& prefix, const Stated& inter) {
  const auto gemm = [&](const char* op, const std::string& name, const char* tokens,
                        const char* routing, int more) {
    Section section = {name, op, {}};
    if (tokens != nullptr) section.values.push_back(tokens_of(tokens));
    section.values.insert(section.values.end(), {routing_of(routing), experts(more), topk(more),
                                                 hidden(), of("inter", inter)});
    if (!model_.fp8) section.values.push_back({"dtype", "bf16", ""});
    add(section);
  };
  gemm("moe_gate_up", prefix + "-gate-up", nullptr, "uniform", 0);
  gemm("moe_down", prefix + "-down", nullptr, "uniform", 0);
  if (model_.mxfp4) {
    for (const auto& [op, ending] : {std::pair("w4_gate_up", "-gate-up"), {"w4_down", "-down"}}) {
      add({prefix + "-w4" + ending,
           op,
           {tokens_of(kFewTokens), routing_of("uniform"), experts(), topk(), hidden(),
            of("inter", inter)}});
    }
  }
  gemm("moe_gate_up", prefix + "-gate-up-loads", kLoadTokens, kLoads, 0);
  gemm("moe_down", prefix + "-down-loads", kLoadTokens, kLoads, 0);
  if (!shares()) return;
  gemm("moe_gate_up", prefix + "-shared-gate-up", kFewTokens, "shared:uniform", 1);
  gemm("moe_down", prefix + "-shared-down", kFewTokens, "shared:uniform", 1);
}

/// Activation, sum and the whole layer, without and with the shared expert.
void Writer::around(const std::string& prefix, const Stated& inter) {
  for (int more = 0; more <= (shares() ? 1 : 0); ++more) {
    const std::string name = prefix + (more == 1 ? "-shared" : "");
    if (model_.fp8) add({name + "-silu", "silu_mul_quant", {topk(more), of("inter", inter)}});
    Section sum = {name + "-sum", "moe_sum", {topk(more), hidden()}};
    if (!model_.scale.key.empty()) sum.values.push_back(model_.scale);
    add(sum);
    if (!model_.fp8) continue;
    add({name + "-layer",
         "fused_moe",
         {routing_of(more == 1 ? "shared:uniform" : "uniform"),
          {"block", "tuned", ""},
          experts(more),
          topk(more),
          hidden(),
          of("inter", inter)}});
  }
}

// --- what a rank of EP computes

void Writer::expert_parallel(int ranks) {
  const std::string name = fmt::format("{}-ep{}", prefix(), ranks);
  const Stated& all = layers_->experts;
  if (all.value % ranks != 0) {
    note(fmt::format(
        "No sections {}-...: {} = {} does not split into {} whole parts. --ep that "
        "work: {}.",
        name, all.from, all.value, ranks, fmt::join(splits_of(all.value, 1, kMostExperts), ", ")));
    return;
  }
  note(fmt::format(
      "EP {}: tokens is the rows that reach this rank. Of T tokens over all ranks, each with {} "
      "experts, {} at even loads. Most are of different tokens, so each has one expert and a row "
      "of x of its own here.",
      ranks, layers_->topk.value,
      layers_->topk.value == ranks
          ? "these are T"
          : fmt::format("these are T x {} / {}", layers_->topk.value, ranks)));
  const SuiteValue share = {"experts", fmt::format("{}", all.value / ranks),
                            fmt::format("{} / {}", all.from, ranks)};
  for (const auto& [op, ending] : {std::pair("moe_gate_up", "-gate-up"), {"moe_down", "-down"}}) {
    Section section = {name + ending,
                       op,
                       {tokens_of(kFewTokens),
                        routing_of("uniform"),
                        share,
                        {"topk", "1", "see above"},
                        hidden(),
                        of("inter", layers_->inter)}};
    if (!model_.fp8) section.values.push_back({"dtype", "bf16", ""});
    add(section);
  }
  note(
      "Rows by expert where ids of other ranks reach the kernel: one in eight, as the operator has "
      "it.");
  add({name + "-align",
       "moe_align",
       {tokens_of("64, 4096"),
        {"block", "64", ""},
        {"ids", "some_skipped", ""},
        experts(),
        topk()}});
}

// --- text

void Writer::add(const Section& section) {
  const std::string why = refusal(section);
  if (!why.empty()) {
    note(fmt::format("No section [{}]: {}.", section.name, why));
    return;
  }
  size_t width = 2, longest = 1;
  for (const SuiteValue& own : section.values) {
    width = std::max(width, own.key.size());
    if (!own.from.empty()) longest = std::max(longest, own.value.size());
  }
  text_ += fmt::format("\n[{}]\n{:{}} = {}\n", section.name, "op", width, section.op);
  for (const auto& [key, value, from] : section.values) {
    text_ += from.empty() ? fmt::format("{:{}} = {}\n", key, width, value)
                          : fmt::format("{:{}} = {:{}}  # {}\n", key, width, value, longest, from);
  }
}

std::string Writer::refusal(const Section& section) const {
  const OpEntry& op = find_op(section.op, registry_);
  Case c = {name_, section.name, section.op, {}, {}};
  for (const Param& param : op.params) c.params[param.name] = param.default_value;
  for (const Param& param : common_params()) c.params[param.name] = param.default_value;
  c.params["tokens"] = split_list(kTokens).back();
  for (const SuiteValue& own : section.values) {
    c.params[own.key] = split_list(own.value).back();
  }
  try {
    op.validate(c);
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

}  // namespace

std::string suite_text(const MoeModel& model, const std::string& name, const Ranks& ranks,
                       const Registry& registry) {
  return Writer(model, name, ranks, registry).text();
}

}  // namespace moegate
