// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/plan.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "harness/base/closest.h"
#include "harness/base/hash.h"
#include "harness/base/pattern.h"
#include "harness/base/rng.h"
#include "harness/kernel/tile_file.h"
#include "harness/values/json_fields.h"

namespace moegate {
std::string RunOptions::to_json() const {
  const nlohmann::json j = {{"suites", suites},
                            {"axes", axes},
                            {"ops", ops},
                            {"filter", filter},
                            {"kernel", kernel},
                            {"shard", shard},
                            {"shards", shards},
                            {"rounds", rounds},
                            {"case_timeout_s", case_timeout_s},
                            {"device", worker.device},
                            {"kernels", worker.kernels},
                            {"tiles", worker.tiles},
                            {"timer", worker.timer},
                            {"flush", name_of(worker.flush)},
                            {"flush_factor", worker.flush_factor},
                            {"sets", worker.sets},
                            {"min_samples", worker.sampling.min_samples},
                            {"max_samples", worker.sampling.max_samples},
                            {"precision", worker.sampling.precision},
                            {"budget_s", worker.sampling.budget_s},
                            {"sample_seed", worker.sample_seed},
                            {"canary_slow_by", canary_slow_by},
                            {"canary_scale", canary_scale},
                            {"order_seed", order_seed},
                            {"filtered", filtered()},
                            {"narrowed", narrowed()}};
  // A path may be any bytes.
  return j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void RunOptions::from_json(const std::string& text) {
  try {
    read_json(text);
  } catch (const std::exception& e) {  // whatever it is, no run has written it
    throw Error(Exit::store, fmt::format("the options that a run was stored with cannot be read "
                                         "({}): the store is damaged; restore a copy",
                                         e.what()));
  }
}

void RunOptions::read_json(const std::string& text) {
  const auto j = nlohmann::json::parse(text);
  suites = j.at("suites");
  axes = j.at("axes").get<Axes>();
  filter = j.at("filter");
  kernel = j.at("kernel");
  read_number(j.at("shard"), shard);
  read_number(j.at("shards"), shards);
  read_number(j.at("rounds"), rounds);
  case_timeout_s = j.at("case_timeout_s");
  worker.device = j.at("device");
  worker.timer = j.at("timer");
  const auto& flush = j.at("flush");  // a number in older stores
  if (flush.is_number()) {
    constexpr std::array kNumbered = {Flush::read, Flush::write, Flush::none};
    size_t number = 0;
    read_number(flush, number);
    worker.flush = kNumbered.at(number);
  } else {
    worker.flush = parse_flush(flush.get<std::string>());
  }
  worker.flush_factor = j.at("flush_factor");
  read_number(j.at("min_samples"), worker.sampling.min_samples);
  read_number(j.at("max_samples"), worker.sampling.max_samples);
  worker.sampling.precision = j.at("precision");
  worker.sampling.budget_s = j.at("budget_s");
  // Absent in older stores.
  ops = j.value("ops", std::vector<std::string>{});
  worker.tiles = j.value("tiles", "");
  worker.kernels = j.value("kernels", std::vector<std::string>{});
  canary_slow_by = j.value("canary_slow_by", std::vector<double>{});
  canary_scale = j.value("canary_scale", 1.0);
  if (j.contains("sets")) read_number(j.at("sets"), worker.sets);
  if (j.contains("sample_seed")) read_number(j.at("sample_seed"), worker.sample_seed);
  if (j.contains("order_seed")) read_number(j.at("order_seed"), order_seed);
  const bool possible = shard >= 0 && shard < shards && rounds >= 0 && case_timeout_s > 0 &&
                        worker.sampling.min_samples >= 1 && worker.sampling.budget_s > 0;
  if (!possible) throw std::invalid_argument("no run can have them");
}

std::vector<RowName> Plan::rows() const {
  std::vector<RowName> rows;
  for (const PlannedCase& c : cases) {
    const std::string key = c.spec.key();
    for (const std::string& variant : c.variants) rows.emplace_back(key, variant);
  }
  return rows;
}

std::vector<Case> load_cases(const RunOptions& options, const Hello& hello) {
  std::vector<Case> cases;
  std::set<std::string> seen;
  for (const std::string& suite : options.suites) {
    for (Case& c : load_suite(suite, options.axes, hello.operators)) {
      c.get_int("seed", 0, std::numeric_limits<int64_t>::max());
      cache_of(c);
      launch_of(c);
      if (seen.insert(c.key()).second) cases.push_back(std::move(c));
    }
  }
  return adapt(std::move(cases), hello.device.backend);
}

namespace {

std::vector<CaseAnswer> ask(Worker& worker, const std::vector<CaseQuestion>& questions) {
  std::vector<CaseAnswer> answers = worker.check(questions);
  for (const CaseAnswer& answer : answers) {
    if (!answer.error.empty()) throw Error(Exit::usage, answer.error);
  }
  return answers;
}

double tolerance_of(const Hello& hello, const std::string& op, const std::string& variant) {
  const auto at = std::ranges::find_if(
      hello.variants, [&](const VariantDescription& v) { return v.op == op && v.name == variant; });
  return at == hello.variants.end() ? 1 : at->tolerance;
}

std::string yardstick_of(const Hello& hello, const std::string& op) {
  const auto at = std::ranges::find(hello.operators, op, &OpDescription::name);
  return at == hello.operators.end() ? "" : at->yardstick;
}

}  // namespace

void check_cases(const std::vector<Case>& cases, Worker& worker) {
  std::vector<CaseQuestion> questions;
  for (const Case& c : cases) questions.push_back({.spec = c, .resolve = false, .variants = {}});
  ask(worker, questions);
}

std::vector<PlannedCase> matching_cases(const RunOptions& options, const std::vector<Case>& cases,
                                        const Hello& hello) {
  const Pattern filter = compile_pattern("--filter", options.filter);
  const Pattern kernel = compile_pattern("--kernel", options.kernel);
  const bool asks_for_tiles = options.kernel.find(kTilePrefix) != std::string::npos;
  std::vector<PlannedCase> planned;
  std::set<std::string> seen;
  for (const Case& c : cases) {
    if (!options.ops.empty() && std::ranges::count(options.ops, c.op) == 0) continue;
    if (!filter.found_in(c.key()) || !seen.insert(c.key()).second) continue;
    PlannedCase p{c, {}};
    for (const VariantDescription& v : hello.variants) {
      if (is_tile_variant(v.name) && !asks_for_tiles) continue;
      if (v.op == c.op && kernel.found_in(v.name)) p.variants.push_back(v.name);
    }
    planned.push_back(std::move(p));
  }
  return planned;
}

int shard_of(const Case& c, int shards) {
  Case cold = c;
  cold.params["cache"] = "cold";
  const std::string key = cold.key();
  return static_cast<int>(hash_bytes(key.data(), key.size()) % static_cast<uint64_t>(shards));
}

std::vector<PlannedCase> part_of(std::vector<PlannedCase> planned, const RunOptions& options) {
  std::erase_if(planned, [&](const PlannedCase& p) {
    return shard_of(p.spec, options.shards) != options.shard;
  });
  return planned;
}

namespace {

/// A variant whose name is close to a pattern that is one; of any operator, because none matched. Nothing for a
/// pattern that names a variant: the filter is to blame then.
std::string meant_variant(std::string pattern, const Hello& hello) {
  const Pattern kernel = compile_pattern("--kernel", pattern);
  const auto named = [&](const VariantDescription& v) { return kernel.found_in(v.name); };
  if (std::ranges::any_of(hello.variants, named)) return "";
  std::erase_if(pattern, [](char c) { return c == '^' || c == '$' || c == '\\'; });
  std::vector<std::string> known;
  for (const VariantDescription& v : hello.variants) known.push_back(v.name);
  return did_you_mean(pattern, known);
}

}  // namespace

Plan select_rows(const RunOptions& options, const std::vector<Case>& cases, const Hello& hello) {
  std::vector<PlannedCase> planned = matching_cases(options, cases, hello);
  const bool any_case = !planned.empty();
  std::erase_if(planned, [](const PlannedCase& p) { return p.variants.empty(); });
  if (planned.empty()) {
    const char* hint = any_case ? "no variant" : "no case";
    throw Error(Exit::coverage,
                fmt::format("nothing to run: {} of {} on the {} device matches (--filter '{}', "
                            "--kernel '{}'{}); see 'moegate list cases'",
                            hint, fmt::join(options.suites, ", "), name_of(hello.device.backend),
                            options.filter, options.kernel, meant_variant(options.kernel, hello)));
  }
  const size_t all = planned.size();
  Plan mine{hello, part_of(std::move(planned), options)};
  if (mine.cases.empty() && options.campaign.empty()) {
    throw Error(Exit::coverage, fmt::format("nothing to run: --shard {}/{} of {} cases is empty",
                                            options.shard + 1, options.shards, all));
  }
  return mine;
}

void check_on_device(const Plan& plan, Worker& worker) {
  std::vector<CaseQuestion> questions;
  for (const PlannedCase& c : plan.cases) {
    questions.push_back({.spec = c.spec, .resolve = true, .variants = {}});
  }
  ask(worker, questions);
}

namespace {

/// A case says of a bad value where its suite is; one of an axis stands on the command line.
std::string blame_axes(const std::string& error, const Axes& axes) {
  constexpr std::string_view kThere = "; change it there";
  for (const auto& [name, values] : axes) {
    const bool has_flag = name == "seed" || name == "cache" || name == "launch";
    for (const std::string& value : values) {
      if (error.find(fmt::format(": {} = '{}' ", name, value)) == std::string::npos) continue;
      const size_t there = error.rfind(kThere);
      return fmt::format("{}; the value comes from {}--axis {}", error.substr(0, there),
                         has_flag ? fmt::format("--{} or ", name) : "", name);
    }
  }
  return error;
}

}  // namespace

Plan make_plan(const RunOptions& options, Worker& worker) {
  try {
    const std::vector<Case> cases = load_cases(options, worker.hello());
    check_cases(cases, worker);
    Plan plan = select_rows(options, cases, worker.hello());
    check_on_device(plan, worker);
    return plan;
  } catch (const Error& e) {
    if (e.code() != Exit::usage) throw;
    throw Error(Exit::usage, blame_axes(e.what(), options.axes));
  }
}

std::vector<PlannedCase> in_order(std::vector<PlannedCase> planned, uint32_t seed, int round) {
  const auto stream = static_cast<uint64_t>(round);
  for (size_t i = planned.size(); i > 1; --i) {
    std::swap(planned[i - 1], planned[random_bits(seed, stream, i) % i]);
  }
  for (PlannedCase& p : planned) {
    const auto shift = static_cast<std::ptrdiff_t>(stream % p.variants.size());
    std::rotate(p.variants.begin(), p.variants.begin() + shift, p.variants.end());
  }
  return planned;
}

uint32_t draw_order_seed() {
  return std::random_device{}() | 1;
}

Plan one_per_tolerance(Plan plan, Worker& worker) {
  std::vector<CaseQuestion> questions;
  for (const PlannedCase& c : plan.cases) {
    questions.push_back({.spec = c.spec, .resolve = true, .variants = c.variants});
  }
  const std::vector<CaseAnswer> answers = ask(worker, questions);
  for (size_t i = 0; i < plan.cases.size(); ++i) {
    const std::string yardstick = yardstick_of(plan.hello, plan.cases[i].spec.op);
    auto& variants = plan.cases[i].variants;
    std::stable_partition(variants.begin(), variants.end(),
                          [&](const std::string& name) { return name == yardstick; });
    std::erase_if(variants, [&](const std::string& name) {
      return answers.at(i).unsupported.contains(name);
    });
    std::set<double> factors;
    std::erase_if(variants, [&](const std::string& name) {
      return !factors.insert(tolerance_of(plan.hello, plan.cases[i].spec.op, name)).second;
    });
  }
  std::erase_if(plan.cases, [](const PlannedCase& c) { return c.variants.empty(); });
  return plan;
}

}  // namespace moegate
