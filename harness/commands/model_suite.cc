// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/model_suite.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "harness/base/formats.h"
#include "harness/base/text.h"
#include "harness/commands/templates.h"

namespace moegate {
namespace {

// As the suites in suites/ have them, so that the same layer has the same keys.
constexpr const char* kTokens =
    "1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 512, 1024, 2048, 4096, 8192, 16384";

constexpr int kFp8Group = 128;  // width that shares a scale factor
constexpr int kMostRanks = 64;  // that a comment names
constexpr int kMostExperts = 1024;

using SuiteValues = std::vector<SuiteValue>;

struct Section {
  std::string name, op;
  SuiteValues values;
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

/// A paragraph of comments, lines of at most 120 characters, without the text's own line ends.
std::string comment(std::string text) {
  constexpr size_t kWidth = 120;
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < ' '; }, ' ');
  std::string lines, line = "#";
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ' ');) {
    if (line.size() + 1 + word.size() > kWidth) {
      lines += line + "\n";
      line = "#";
    }
    line += " " + word;
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
      const bool only = model_.layers.size() == 1;
      if (!only) note("Layers " + ranges_text(layers.which) + ".");
      const std::string name =
          only ? name_ : fmt::format("{}-layer{}", name_, layers.which.front());
      add_template("layer", name, values_of(layers));
      if (ranks_.tp || !ranks_.ep) tensor_parallel(layers, name, ranks_.tp.value_or(1));
      if (ranks_.ep) expert_parallel(layers, name, *ranks_.ep);
    }
    return text_;
  }

 private:
  void head();
  SuiteValues values_of(const MoeLayers& layers) const;
  void tensor_parallel(const MoeLayers& layers, const std::string& prefix, int ranks);
  void expert_parallel(const MoeLayers& layers, const std::string& prefix, int ranks);

  void note(const std::string& text) { text_ += "\n" + comment(text); }
  void add_template(const std::string& file, const std::string& name, const SuiteValues& values);
  void add(const Section& section);
  /// Why an operator does not take it; empty where it does.
  std::string refusal(const Section& section) const;

  const MoeModel& model_;
  const std::string name_;
  const Ranks ranks_;
  const Registry& registry_;
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
        model_.mxfp4
            ? "The activation has no section: its operator is of fp8 with scale factors per "
              "block."
            : "Activation and whole layer have no section: their operators are of fp8 with "
              "scale factors per block.");
  }
  text_ += fmt::format("tokens = {}\nlaunch = graph\n", kTokens);
}

/// What the words of templates stand for. A word that is not here leaves its line out.
SuiteValues Writer::values_of(const MoeLayers& layers) const {
  SuiteValues values = {of("experts", layers.experts), of("topk", layers.topk),
                        of("hidden", model_.hidden), of("inter", layers.inter), model_.scale};
  values.push_back(model_.fp8 ? SuiteValue{"fp8"} : SuiteValue{"dtype", "bf16"});
  if (model_.mxfp4) values.push_back({"mxfp4"});
  if (!layers.shared.empty()) {
    const auto one_more = [&](const Stated& number) {
      return Stated{number.value + 1, number.from + ", and " + layers.shared};
    };
    values.insert(values.end(), {{"shared"},
                                 of("shared-experts", one_more(layers.experts)),
                                 of("shared-topk", one_more(layers.topk))});
  }
  for (const auto& [key, value, from] : model_.router) {
    values.push_back({"router-" + key, value, from});
  }
  return values;
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

void Writer::tensor_parallel(const MoeLayers& layers, const std::string& prefix, int ranks) {
  const Stated& width = layers.inter;
  const int unit = model_.fp8 ? kFp8Group : 1;
  const std::vector<int> splits = splits_of(width.value, unit, kMostRanks);
  const std::string name = fmt::format("{}-tp{}", prefix, ranks);
  if (width.value % (int64_t{ranks} * unit) != 0) {
    note(fmt::format("No sections {}-...: {} = {} does not split into {} whole parts{}. {}", name,
                     width.from, width.value, ranks,
                     model_.fp8 ? fmt::format(" of a multiple of {}, as fp8 needs", kFp8Group) : "",
                     splits.empty() ? "No --tp works."
                                    : fmt::format("--tp that work: {}.", fmt::join(splits, ", "))));
    return;
  }
  MoeLayers part = layers;
  part.inter.value /= ranks;
  if (ranks > 1) part.inter.from += fmt::format(" / {}", ranks);
  add_template("tensor_parallel", name, values_of(part));
}

// --- what a rank of EP computes

void Writer::expert_parallel(const MoeLayers& layers, const std::string& prefix, int ranks) {
  const std::string name = fmt::format("{}-ep{}", prefix, ranks);
  const Stated& all = layers.experts;
  if (all.value % ranks != 0) {
    note(fmt::format(
        "No sections {}-...: {} = {} does not split into {} whole parts. --ep that "
        "work: {}.",
        name, all.from, all.value, ranks, fmt::join(splits_of(all.value, 1, kMostExperts), ", ")));
    return;
  }
  note(fmt::format(
      "EP {}: tokens, experts and ids are the layer's; a rank has {} / {} experts and their rows "
      "alone. The busiest rank, because all others wait for it, and because of few tokens another "
      "one may have no row.",
      ranks, all.from, ranks));
  SuiteValues values = values_of(layers);
  values.push_back({"rank", fmt::format("busiest/{}", ranks)});
  add_template("expert_parallel", name, values);
}

// --- text

/// Adds the sections of templates/model/`file`.suite: a value @word is what the word stands for, a
/// section with `when` needs all words of it, and `note` is a comment before it.
void Writer::add_template(const std::string& file, const std::string& name,
                          const SuiteValues& values) {
  const auto find = [&](const std::string& word) {
    return std::ranges::find(values, word.substr(1), &SuiteValue::key);
  };
  const std::string text = filled_in(template_text("model/" + file + ".suite"), {{"name", name}});
  for (const IniSection& section : parse_ini(file, text).sections) {
    Section made{.name = section.name};
    bool is_meant = !section.name.empty();
    for (const IniEntry& entry : section.entries) {
      const std::string value = fmt::format("{}", fmt::join(entry.values, ", "));
      if (entry.key == "when") {
        is_meant = std::ranges::all_of(
            entry.values, [&](const std::string& word) { return find(word) != values.end(); });
      } else if (entry.key == "note") {
        note(value);
      } else if (entry.key == "op") {
        made.op = value;
      } else if (!value.starts_with('@')) {
        made.values.push_back({entry.key, value});
      } else if (const auto own = find(value); own != values.end()) {
        made.values.push_back({entry.key, own->value, own->from});
      }
    }
    if (is_meant) add(made);
  }
}

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
  return refusal_by(op, c);
}

}  // namespace

std::string suite_text(const MoeModel& model, const std::string& name, const Ranks& ranks,
                       const Registry& registry) {
  return Writer(model, name, ranks, registry).text();
}

}  // namespace moegate
