// SPDX-License-Identifier: Apache-2.0
// From a parsed suite file to cases: which parameters an operator has, defaults, axes, their
// product.
#include "harness/campaign/suite.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <unordered_set>

#include "harness/base/environment.h"
#include "harness/base/error.h"
#include "harness/base/files.h"
#include "harness/base/formats.h"
#include "harness/base/text.h"

namespace moegate {
namespace fs = std::filesystem;
namespace {

constexpr size_t kLongestSuite = size_t{1} << 20;  // bytes
constexpr double kMostCases = 1e5;                 // of one file: more would fill the memory
constexpr const char* kRecipe = "run";             // the section that has no cases

std::vector<std::string> known_suites() {
  return mapped(list_suites(), [](const auto& suite) { return suite.first; });
}

bool names_a_file(const std::string& suite) {
  return suite.find('/') != std::string::npos || suite.ends_with(".suite");
}

IniFile read_suite(const std::string& name) {
  const bool is_path = names_a_file(name);
  const fs::path path = is_path ? fs::path(name) : home() / "suites" / (name + ".suite");
  if (!is_file(path) && !is_path) {
    const std::vector<std::string> known = known_suites();
    usage_error("no suite '{}'{}; known: {} (`moegate list suites` describes them)", name,
                did_you_mean(name, known), fmt::join(known, ", "));
  }
  if (!is_file(path)) {
    usage_error("suite file '{}' cannot be read; check the path, or name one of: {}", path.string(),
                fmt::join(known_suites(), ", "));
  }
  return parse_ini(path.string(), read_file(path, kLongestSuite));
}

/// One section with the file's global keys merged in.
class SectionCases {
 public:
  SectionCases(const IniFile& file, const IniSection& section,
               const std::vector<OpDescription>& operators)
      : file_(file), section_{section.name, section.line, file.sections.front().entries} {
    for (const IniEntry& entry : section.entries) set(entry);
    take_op();
    collect_params(operators);
  }

  const std::string& op() const { return op_; }
  bool has(const std::string& param) const {
    return std::ranges::find(params_, param, &Param::name) != params_.end();
  }
  /// The parameter of an axis: "block", or of one operator "moe_down.block". Empty: it has none.
  std::string param_of(const std::string& axis) const {
    const size_t dot = axis.find('.');
    if (dot != std::string::npos && axis.substr(0, dot) != op_) return "";
    const std::string param = dot == std::string::npos ? axis : axis.substr(dot + 1);
    return has(param) ? param : "";
  }
  std::vector<std::string> param_names() const { return mapped(params_, &Param::name); }

  /// Calls `add` with each case; returns how many there are with those of the sections `before`.
  size_t for_each(const Axes& axes, size_t before, const std::function<void(Case)>& add) {
    for (const auto& [name, values] : axes) {
      const std::string param = param_of(name);
      if (!param.empty()) set({param, 0, values});
    }
    check_complete();
    const size_t count = before + check_count(before);
    Case c{fs::path(file_.path).stem().string(), section_.name, op_, {}, {}};
    for (const Param& param : params_) {
      if (!param.default_value.empty()) c.params[param.name] = param.default_value;
    }
    c.defaults = c.params;
    expand(0, c, add);
    return count;
  }

 private:
  /// In the place of the entry with its key, or behind the others.
  void set(IniEntry entry) {
    const auto at = std::ranges::find(section_.entries, entry.key, &IniEntry::key);
    if (at == section_.entries.end()) {
      section_.entries.push_back(std::move(entry));
    } else {
      *at = std::move(entry);
    }
  }

  void take_op() {
    const std::string key = "op";
    const auto at = std::ranges::find(section_.entries, key, &IniEntry::key);
    if (at == section_.entries.end()) {
      usage_error("{}:{}: section [{}] has no 'op'; name its operator, e.g. op = topk_sort",
                  file_.path, section_.line, section_.name);
    }
    if (at->values.size() != 1) {
      usage_error("{}:{}: [{}] op = {} is a list; use one section per operator", file_.path,
                  at->line, section_.name, fmt::join(at->values, ", "));
    }
    op_ = at->values[0];
    op_line_ = at->line;
    section_.entries.erase(at);
  }

  void collect_params(const std::vector<OpDescription>& operators) {
    const auto at = std::ranges::find(operators, op_, &OpDescription::name);
    if (at == operators.end()) {
      const auto known = mapped(operators, &OpDescription::name);
      usage_error(
          "{}:{}: [{}] op = {} is not an operator{}; known: {}; name the file of one of your own "
          "with --module",
          file_.path, op_line_, section_.name, op_, did_you_mean(op_, known),
          fmt::join(known, ", "));
    }
    params_ = at->params;
    params_.insert(params_.end(), common_params().begin(), common_params().end());
    for (const IniEntry& entry : section_.entries) {
      if (has(entry.key)) continue;
      usage_error("{}:{}: [{}] operator {} has no parameter '{}'{}; it has {}", file_.path,
                  entry.line, section_.name, op_, entry.key, did_you_mean(entry.key, param_names()),
                  fmt::join(param_names(), ", "));
    }
  }

  void check_complete() const {
    for (const Param& param : params_) {
      if (section_.find(param.name) != nullptr || !param.default_value.empty()) continue;
      usage_error("{}:{}: section [{}] lacks parameter '{}' of operator {} ({}); add it",
                  file_.path, section_.line, section_.name, param.name, op_, param.help);
    }
  }

  size_t check_count(size_t before) const {
    double count = 1;
    for (const IniEntry& entry : section_.entries)
      count *= static_cast<double>(entry.values.size());
    if (static_cast<double>(before) + count <= kMostCases) return static_cast<size_t>(count);
    usage_error(
        "{}:{}: section [{}] has {:.0f} cases after {}, in all more than {:.0f}; shorten its "
        "lists, "
        "or --axis",
        file_.path, section_.line, section_.name, count, before, kMostCases);
  }

  void expand(size_t axis, Case& c, const std::function<void(Case)>& add) const {
    if (axis == section_.entries.size()) {
      add(c);
      return;
    }
    std::string& param = c.params[section_.entries[axis].key];
    for (const std::string& value : section_.entries[axis].values) {
      param = value;
      expand(axis + 1, c, add);
    }
  }

  const IniFile& file_;
  IniSection section_;  // without op
  std::string op_;
  int op_line_ = 0;
  std::vector<Param> params_;
};

/// An axis of one operator may be for one that the suite has not: `moegate tune` sets some.
bool is_of_an_operator(const std::string& axis, const std::vector<OpDescription>& operators) {
  return std::ranges::any_of(operators, [&](const OpDescription& op) {
    return std::ranges::any_of(
        op.params, [&](const Param& param) { return axis == op.name + "." + param.name; });
  });
}

void check_axes(const IniFile& file, const std::vector<SectionCases>& sections, const Axes& axes,
                const std::vector<OpDescription>& operators) {
  for (const auto& [name, values] : axes) {
    if (values.empty() || std::find(values.begin(), values.end(), "") != values.end()) {
      usage_error("axis {}: empty value list or element; write {}=value,value", name, name);
    }
    const bool read = std::any_of(
        sections.begin(), sections.end(),
        [&name = name](const auto& section) { return !section.param_of(name).empty(); });
    if (read || is_of_an_operator(name, operators)) continue;
    const std::vector<std::string> known = sections.front().param_names();
    usage_error("axis {}{}: no operator of {} has this parameter; {} has {}", name,
                did_you_mean(name, known), file.path, sections.front().op(),
                fmt::join(known, ", "));
  }
}

}  // namespace

void for_each_case(const std::string& name, const Axes& axes,
                   const std::vector<OpDescription>& operators,
                   const std::function<void(Case)>& add) {
  const IniFile file = read_suite(name);
  std::vector<SectionCases> sections;
  for (size_t i = 1; i < file.sections.size(); ++i) {
    if (file.sections[i].name != kRecipe) sections.emplace_back(file, file.sections[i], operators);
  }
  check_axes(file, sections, axes, operators);
  size_t count = 0;  // equal keys as often as they are written
  for (SectionCases& section : sections) count = section.for_each(axes, count, add);
}

std::vector<Case> load_suite(const std::string& name, const Axes& axes,
                             const std::vector<OpDescription>& operators) {
  std::vector<Case> all;
  std::unordered_set<std::string> keys;
  for_each_case(name, axes, operators, [&](Case c) {
    if (keys.insert(c.key()).second) all.push_back(std::move(c));
  });
  return all;
}

Recipe recipe_of(const std::string& suite) {
  static const std::vector<std::string> known = {"rounds", "budget",  "min-samples", "max-samples",
                                                 "filter", "variant", "report"};
  const IniFile file = read_suite(suite);
  const auto section = std::ranges::find(file.sections, kRecipe, &IniSection::name);
  Recipe recipe;
  if (section == file.sections.end()) return recipe;
  for (const IniEntry& entry : section->entries) {
    if (std::ranges::count(known, entry.key) == 0)
      usage_error("{}:{}: [{}] has no key '{}'{}; it has {}", file.path, entry.line, kRecipe,
                  entry.key, did_you_mean(entry.key, known), fmt::join(known, ", "));
    if (entry.key == "report") {
      recipe.reports = entry.values;
    } else {
      recipe.flags.emplace_back(entry.key, fmt::format("{}", fmt::join(entry.values, ",")));
    }
  }
  return recipe;
}

std::vector<std::string> suites_of(const std::string& program, std::vector<std::string> names) {
  const fs::path folder = home_of(program);
  for (std::string& name : names) {
    const fs::path path = folder / "suites" / (name + ".suite");
    if (!folder.empty() && !names_a_file(name) && is_file(path)) name = path.string();
  }
  return names;
}

std::vector<std::pair<std::string, std::string>> list_suites() {
  std::vector<std::pair<std::string, std::string>> suites;
  for (const fs::directory_entry& entry : fs::directory_iterator(home() / "suites")) {
    if (entry.path().extension() != ".suite") continue;
    std::ifstream in(entry.path());
    std::string line;
    std::getline(in, line);
    const bool comment = line.starts_with('#');
    suites.emplace_back(entry.path().stem().string(), comment ? trimmed(line.substr(1)) : "");
  }
  std::sort(suites.begin(), suites.end());
  return suites;
}

}  // namespace moegate
