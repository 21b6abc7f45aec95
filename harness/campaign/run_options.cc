// SPDX-License-Identifier: Apache-2.0
// Options of a run as they are stored with it.
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "harness/campaign/plan.h"
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
  worker.flush = parse_flush(j.at("flush").get<std::string>());
  worker.flush_factor = j.at("flush_factor");
  read_number(j.at("min_samples"), worker.sampling.min_samples);
  read_number(j.at("max_samples"), worker.sampling.max_samples);
  worker.sampling.precision = j.at("precision");
  worker.sampling.budget_s = j.at("budget_s");
  ops = j.at("ops");
  worker.tiles = j.at("tiles");
  worker.kernels = j.at("kernels");
  j.at("canary_slow_by").get_to(canary_slow_by);
  canary_scale = j.at("canary_scale");
  read_number(j.at("sets"), worker.sets);
  read_number(j.at("sample_seed"), worker.sample_seed);
  read_number(j.at("order_seed"), order_seed);
  const bool possible = shard >= 0 && shard < shards && rounds >= 0 && case_timeout_s > 0 &&
                        worker.sampling.min_samples >= 1 && worker.sampling.budget_s > 0;
  if (!possible) throw std::invalid_argument("no run can have them");
}

}  // namespace moegate
