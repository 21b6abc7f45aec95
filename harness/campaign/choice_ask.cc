// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/choice_ask.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>

#include "harness/base/text.h"
#include "harness/kernel/tile_file.h"
#include "harness/kernel/tuned.h"

namespace moegate {
namespace {

/// Token counts that switches add to those of a suite.
constexpr size_t kMostAdded = 40;

Case with(Case c, const std::map<std::string, std::string>& params) {
  for (const auto& [name, value] : params) c.params[name] = value;
  return c;
}

int tokens_of(const Case& c) {
  if (!c.params.contains("tokens")) return 0;
  return static_cast<int>(c.get_int("tokens", 0, std::numeric_limits<int>::max()));
}

std::string group_of(const Configuration& config) {
  std::string group;
  for (const auto& [key, value] : config.params) group += fmt::format(" {}={}", key, value);
  return group;
}

/// A configuration without the variant that it is of: "BLOCK=64", "swap_ab/splits=4 block=16".
std::string short_name(const Configuration& config) {
  return config.variant.substr(family_of(config.variant).size()) + group_of(config);
}

const Chooser& chooser_of(const std::string& op, const std::string& variant, Backend backend) {
  for (const Chooser& c : all_choosers()) {
    if (c.op == op && c.variant == variant && c.backend == backend) return c;
  }
  give_up(Exit::internal, "variant '{}' of {} does not choose", variant, op);
}

bool is_valid(const Case& c, const Registry& registry) {
  const OpEntry& op = find_op(c.op, registry);
  try {
    if (op.validate) op.validate(c);
    return true;
  } catch (const Error& e) {
    if (e.code() != Exit::usage) throw;
    return false;
  }
}

/// Without its candidates.
Chosen chosen_for(const Case& c, const Chooser& chooser, const DeviceFacts& device) {
  Chosen chosen{.spec = c, .variant = chooser.variant};
  try {
    chosen.choice = chooser.choose(c, device);
  } catch (const Error& e) {
    chosen.fault = e.what();
  }
  return chosen;
}

/// Adds the cases beside a switch to cases that differ from `one` in their token counts alone.
void add_switches(const Chooser& chooser, const Case& one, const Registry& registry,
                  const DeviceFacts& device, std::map<int, Case>& counts,
                  std::vector<std::string>& notes) {
  std::map<int, std::string> entries;
  for (int tokens = 1; tokens <= counts.rbegin()->first; ++tokens) {
    const Case c = with(one, {{"tokens", std::to_string(tokens)}});
    if (!is_valid(c, registry)) continue;
    const Chosen told = chosen_for(c, chooser, device);
    entries[tokens] = fmt::format("{} {} {} {}", short_name(told.choice.runs), told.choice.source,
                                  told.choice.entry, told.fault);
  }
  const size_t most = counts.size() + kMostAdded;
  size_t left_out = 0;
  for (const auto& [before, after] : switches(entries)) {
    if (counts.size() + 2 > most) {
      ++left_out;
      continue;
    }
    for (const int tokens : {before, after}) {
      counts.emplace(tokens, with(one, {{"tokens", std::to_string(tokens)}}));
    }
  }
  if (left_out > 0) {
    notes.push_back(
        fmt::format("{} of {}: {} more switches of entry were not measured; at most {} "
                    "token counts are added",
                    chooser.variant, one.op, left_out, kMostAdded));
  }
}

std::string layer_of(const Chosen& a) {
  Case base = a.spec;
  base.params.erase("tokens");
  base.params.erase("routing");
  std::string name = base.key();
  if (!a.choice.runs.params.empty()) {
    name = fmt::format("{},launch={},cache={}", tuned_name(a.spec), a.spec.get("launch"),
                       a.spec.get("cache"));
  }
  return name + " " + a.variant;
}

}  // namespace

RunOptions checking_run(RunOptions run, const Registry& registry, bool elsewhere) {
  const Pattern wanted = compile_pattern("--variant", run.variant);
  std::set<std::string> names, ops;
  for (const Chooser& c : all_choosers()) {
    if (c.elsewhere != elsewhere || !wanted.found_in(c.variant)) continue;
    names.insert(c.variant);
    ops.insert(c.op);
  }
  if (names.empty()) {
    usage_error(
        "tune --check: no variant of {} chooses a configuration; state choose= of "
        "@moegate.variant, "
        "or leave --module out to check variant tuned",
        elsewhere ? "--module" : "this program");
  }
  run.variant = fmt::format("^(?:{})$", fmt::join(names, "|"));
  if (run.ops.empty()) run.ops = {ops.begin(), ops.end()};
  run.axes.try_emplace("cache", Axes::mapped_type{"cold"});
  const auto has_block = [&](const OpEntry& op) {
    return ops.contains(op.name) &&
           std::ranges::any_of(op.params, [](const Param& p) { return p.name == "block"; });
  };
  if (!elsewhere && std::ranges::any_of(registry.ops, has_block)) run.axes["block"] = {"tuned"};
  run.label = kCheckLabel;
  return run;
}

Questions ask_choosers(const std::vector<PlannedCase>& suite, const Registry& registry,
                       const DeviceFacts& device) {
  std::map<std::pair<std::string, std::string>, std::vector<Case>> by_series;
  for (const PlannedCase& planned : suite) {
    Case base = planned.spec;
    base.params.erase("tokens");
    for (const std::string& variant : planned.variants) {
      by_series[{base.key(), variant}].push_back(planned.spec);
    }
  }
  Questions questions;
  for (const auto& [name, cases] : by_series) {
    const Case& one = cases[0];
    const Chooser& chooser = chooser_of(one.op, name.second, device.backend);
    std::map<int, Case> counts;
    for (const Case& c : cases) counts.emplace(tokens_of(c), c);
    if (one.params.contains("tokens")) {
      add_switches(chooser, one, registry, device, counts, questions.notes);
    }
    for (const auto& [tokens, c] : counts) {
      Chosen& asked = questions.choices.emplace_back(chosen_for(c, chooser, device));
      if (asked.fault.empty()) asked.candidates = chooser.candidates(c, device);
    }
  }
  return questions;
}

std::vector<std::pair<int, int>> switches(const std::map<int, std::string>& entries) {
  std::vector<std::pair<int, int>> pairs;
  const std::pair<const int, std::string>* before = nullptr;
  for (const auto& entry : entries) {
    if (before && before->second != entry.second) pairs.emplace_back(before->first, entry.first);
    before = &entry;
  }
  return pairs;
}

Cells cells_of(const std::vector<Chosen>& all, Plan& plan) {
  plan.cases.clear();
  std::map<std::string, size_t> places;
  const auto add = [&](const Case& c, const std::string& variant) {
    const std::string key = c.key();
    const auto [at, first] = places.try_emplace(key, plan.cases.size());
    if (first) plan.cases.push_back({c, {}});
    auto& variants = plan.cases[at->second].variants;
    if (std::ranges::count(variants, variant) == 0) variants.push_back(variant);
    return RowName(key, variant);
  };
  Cells cells;
  for (const Chosen& a : all) {
    const Configuration& runs = a.choice.runs;
    ChoicePart part{{group_of(runs), short_name(runs), add(a.spec, a.variant)}, {}};
    for (const Configuration& config : a.candidates) {
      if (config == runs) continue;
      part.others.push_back(
          {group_of(config), short_name(config), add(with(a.spec, config.params), config.variant)});
    }
    const std::string layer = layer_of(a);
    Cell& cell = cells[{layer + " " + routing_of(a.spec), tokens_of(a.spec)}];
    cell.layer = layer;
    cell.asked.push_back(&a);
    cell.parts.push_back(std::move(part));
  }
  return cells;
}

}  // namespace moegate
