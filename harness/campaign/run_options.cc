// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/run_options.h"

#include <array>
#include <stdexcept>
#include <string_view>
#include <tuple>

#include "harness/base/environment.h"
#include "harness/base/error.h"
#include "harness/base/text.h"
#include "harness/campaign/shard_flag.h"

namespace moegate {
namespace {

using R = RunOptions;
using Words = std::vector<std::string>;

Words no_words(const R&, const FlagText&) {
  return {};
}

void read_axis(R& run, const FlagText&, const std::string& text) {
  const auto [name, list] = split_assignment("--axis", text);
  set_axis(run, "--axis", name, parse_list("--axis", list));
}

Words axis_words(const R& run, const FlagText&) {
  Words words;
  for (const auto& [name, values] : run.axes) {
    words.push_back(fmt::format("{}={}", name, fmt::join(values, ",")));
  }
  return words;
}

/// --seed, --cache and --launch replace the parameter of their name.
void read_parameter(R& run, const FlagText& flag, const std::string& text) {
  const bool both = std::string_view(flag.name) == "cache" && text == "both";
  set_axis(run, ("--" + std::string(flag.name)).c_str(), flag.name,
           both ? Words{"cold", "warm"} : Words{text});
}

void read_shard(R& run, const FlagText&, const std::string& text) {
  std::tie(run.shard, run.shards) = parse_shard(text, environment);
}

Option<R> parameter_row(FlagText flag, const char* group) {
  return {flag, group, "", "", Repeat::never, read_parameter, no_words, nullptr, nullptr};
}

}  // namespace

std::span<const Option<RunOptions>> run_options() {
  using K = ValueKind;
  static constexpr const char* where = kSelectionGroup;
  static constexpr const char* how = kMeasuringGroup;
  static const std::array rows = {
      option_row<R, &R::suites>(
          {"suite", "S", K::suite, "suite by name, or a path; may be repeated"}, where, "suites",
          "", Repeat::if_set),
      option_row<R, &R::filter>({"filter", "RE", K::filter, "only cases whose key matches"}, where,
                                "filter", "", Repeat::if_set),
      option_row<R, &R::kernel>({"variant", "RE", K::variant, "only variants whose name matches"},
                                where, "kernel", "", Repeat::if_set),
      Option<R>{
          {"axis", "P=V,V", K::axis, "replace a parameter's values: tokens=1,8; may be repeated"},
          where,
          "axes",
          "",
          Repeat::if_set,
          read_axis,
          axis_words,
          [](const R& run) -> nlohmann::json { return run.axes; },
          [](R& run, const nlohmann::json& json) { run.axes = json.get<Axes>(); }},
      parameter_row({"seed", "N", K::number, "seed of every input"}, where),
      option_row<R, &R::case_timeout_s>(
          {"case-timeout", "T", K::time, "a row that takes longer is recorded as a timeout"}, where,
          "case_timeout_s", "", Repeat::never),
      Option<R>{{"shard", "K/N", K::text,
                 "this part of the cases, dealt out by their keys; slurm: the part of the job "
                 "array's task"},
                where,
                "shard",
                "",
                Repeat::never,
                read_shard,
                no_words,
                [](const R& run) -> nlohmann::json { return run.shard; },
                [](R& run, const nlohmann::json& json) { read_number(json, run.shard); }},
      option_row<R, &R::shards>({}, "", "shards", "", Repeat::never),
      parameter_row({"cache", "C", K::choice,
                     "cold, warm, both or cold-weights (default: as the suite says, else cold)",
                     "cold,warm,both,cold-weights"},
                    how),
      parameter_row({"launch", "L", K::choice,
                     "stream or graph (default: as the suite says, else stream)", "stream,graph"},
                    how),
      option_row<R, &R::rounds>(
          {"rounds", "N", K::number,
           "worker processes, each measuring every row: the unit of evidence", "", 1, kMostRounds},
          "", "rounds", "", Repeat::always),
      option_row<R, &R::ops>({}, "", "ops", "", Repeat::never),
      option_row<R, &R::canary_slow_by>({}, "", "canary_slow_by", "", Repeat::never),
      option_row<R, &R::canary_scale>({}, "", "canary_scale", "", Repeat::never),
      option_row<R, &R::order_seed>({}, "", "order_seed", "", Repeat::never)};
  return rows;
}

std::string repeating_flags(const RunOptions& run, const std::string& group) {
  static const RunOptions unset;
  std::string text;
  const auto add = [&](const auto& row, const auto& options, const auto& defaults) {
    if (row.repeat == Repeat::never || (!group.empty() && group != row.group)) return;
    const Words words = row.words(options, row.flag);
    if (row.repeat == Repeat::if_set && words == row.words(defaults, row.flag)) return;
    for (const std::string& word : words) {
      text += fmt::format(" --{} {}", row.flag.name, shell_word(word));
    }
  };
  for (const auto& row : run_options()) add(row, run, unset);
  for (const auto& row : worker_options()) add(row, run.worker, unset.worker);
  return text;
}

void set_axis(RunOptions& run, const char* flag, const std::string& name, Words values) {
  if (run.axes.emplace(name, std::move(values)).second) return;
  if (std::string_view(flag) == "--axis") {
    usage_error("--axis {} is given twice; write its values in one list", name);
  }
  usage_error("{} and --axis {} are both given; keep one", flag, name);
}

std::pair<std::string, std::string> split_assignment(const std::string& flag,
                                                     const std::string& text) {
  const size_t at = text.find('=');
  if (at == std::string::npos || at == 0 || at + 1 == text.size()) {
    usage_error("{} '{}' is not of the form name=value", flag, text);
  }
  return {text.substr(0, at), text.substr(at + 1)};
}

Words parse_list(const std::string& flag, const std::string& text) {
  Words parts = split_list(text);
  for (const std::string& part : parts) {
    if (part.empty()) usage_error("{} '{}' has an empty part", flag, text);
  }
  return parts;
}

std::string RunOptions::to_json() const {
  nlohmann::json j = {{"filtered", filtered()}, {"narrowed", narrowed()}};
  for_each_option(*this, [&](const auto& row, const auto& options) {
    if (*row.key != 0) j[row.key] = row.get(options);
  });
  // A path may be any bytes.
  return j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void RunOptions::from_json(const std::string& text) {
  try {
    const auto j = nlohmann::json::parse(text);
    for_each_option(*this, [&](const auto& row, auto& options) {
      if (*row.key != 0) row.set(options, j.at(row.key));
    });
    const bool possible = shard >= 0 && shard < shards && rounds >= 0 && case_timeout_s > 0 &&
                          worker.sampling.min_samples >= 1 && worker.sampling.budget_s > 0;
    if (!possible) throw std::invalid_argument("no run can have them");
  } catch (const std::exception& e) {  // whatever it is, no run has written it
    throw Error(Exit::store, fmt::format("the options that a run was stored with cannot be read "
                                         "({}): the store is damaged; restore a copy",
                                         e.what()));
  }
}

}  // namespace moegate
