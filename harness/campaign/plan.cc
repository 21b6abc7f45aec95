// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/plan.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "harness/base/pattern.h"
#include "harness/kernel/tile_file.h"

namespace moegate {
std::string RunOptions::to_json() const {
  const nlohmann::json j = {{"suites", suites},
                            {"axes", axes},
                            {"filter", filter},
                            {"kernel", kernel},
                            {"shard", shard},
                            {"shards", shards},
                            {"rounds", rounds},
                            {"case_timeout_s", case_timeout_s},
                            {"device", worker.device},
                            {"tiles", worker.tiles},
                            {"timer", worker.timer},
                            {"flush", worker.flush},
                            {"flush_factor", worker.flush_factor},
                            {"min_samples", worker.sampling.min_samples},
                            {"max_samples", worker.sampling.max_samples},
                            {"precision", worker.sampling.precision},
                            {"budget_s", worker.sampling.budget_s},
                            {"canary_slow_by", canary_slow_by},
                            {"canary_scale", canary_scale},
                            {"filtered", filtered()}};
  return j.dump();
}

void RunOptions::from_json(const std::string& text) {
  const auto j = nlohmann::json::parse(text);
  suites = j.at("suites");
  axes = j.at("axes").get<Axes>();
  filter = j.at("filter");
  kernel = j.at("kernel");
  shard = j.at("shard");
  shards = j.at("shards");
  rounds = j.at("rounds");
  case_timeout_s = j.at("case_timeout_s");
  worker.device = j.at("device");
  worker.timer = j.at("timer");
  worker.flush = j.at("flush");
  worker.flush_factor = j.at("flush_factor");
  worker.sampling.min_samples = j.at("min_samples");
  worker.sampling.max_samples = j.at("max_samples");
  worker.sampling.precision = j.at("precision");
  worker.sampling.budget_s = j.at("budget_s");
  // Absent in older stores.
  worker.tiles = j.value("tiles", "");
  canary_slow_by = j.value("canary_slow_by", std::vector<double>{});
  canary_scale = j.value("canary_scale", 1.0);
}

std::vector<Case> load_cases(const RunOptions& options) {
  std::vector<Case> cases;
  std::set<std::string> seen;
  for (const std::string& suite : options.suites) {
    for (Case& c : load_suite(suite, options.axes)) {
      c.get_int("seed", 0, std::numeric_limits<int64_t>::max());
      cache_of(c);
      launch_of(c);
      find_op(c.op).validate(c);
      if (seen.insert(c.key()).second) cases.push_back(std::move(c));
    }
  }
  return cases;
}

std::vector<Planned> plan(const RunOptions& options, const std::vector<Case>& cases,
                          Backend backend, const std::vector<VariantName>& variants) {
  const std::regex filter = compile_pattern("--filter", options.filter);
  const std::regex kernel = compile_pattern("--kernel", options.kernel);
  const bool asks_for_tiles = options.kernel.find(kTilePrefix) != std::string::npos;
  std::vector<Planned> planned;
  std::set<std::string> seen;
  size_t matching_cases = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    const Case& c = cases[i];
    if (!std::regex_search(c.key(), filter) || !seen.insert(c.key()).second) continue;
    ++matching_cases;
    Planned p{i, {}};
    for (const VariantName& v : variants) {
      if (is_tile_variant(v.name) && !asks_for_tiles) continue;
      if (v.op == c.op && std::regex_search(v.name, kernel)) p.variants.push_back(v.name);
    }
    if (!p.variants.empty()) planned.push_back(std::move(p));
  }
  if (planned.empty()) {
    const char* hint = matching_cases > 0 ? "no variant" : "no case";
    throw Error(Exit::coverage,
                fmt::format("nothing to run: {} of {} on the {} device matches (--filter '{}', "
                            "--kernel '{}'); see 'moegate list cases'",
                            hint, fmt::join(options.suites, ", "), name_of(backend), options.filter,
                            options.kernel));
  }
  std::vector<Planned> mine;
  for (size_t i = 0; i < planned.size(); ++i) {
    if (static_cast<int>(i % static_cast<size_t>(options.shards)) == options.shard) {
      mine.push_back(planned[i]);
    }
  }
  if (mine.empty()) {
    throw Error(Exit::coverage, fmt::format("nothing to run: --shard {}/{} of {} cases is empty",
                                            options.shard + 1, options.shards, planned.size()));
  }
  return mine;
}

std::vector<Planned> one_variant_each(std::vector<Planned> planned, const std::vector<Case>& cases,
                                      const DeviceFacts& device) {
  for (Planned& p : planned) {
    const Case c = resolved(cases[p.index], device);
    auto& variants = p.variants;
    std::stable_partition(variants.begin(), variants.end(),
                          [&](const std::string& name) { return name == find_op(c.op).yardstick; });
    const auto fit = std::find_if(variants.begin(), variants.end(), [&](const std::string& name) {
      const Variant& v = find_variant(c.op, device.backend, name);
      return !v.unsupported || v.unsupported(c, device).empty();
    });
    variants = {fit == variants.end() ? variants.front() : *fit};
  }
  return planned;
}

}  // namespace moegate
