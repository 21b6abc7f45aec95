// SPDX-License-Identifier: Apache-2.0
#include "harness/values/roofline.h"

#include <algorithm>

namespace moegate {

double memory_s(const Cost& cost, int64_t cache_bytes, double bandwidth) {
  const double writes = std::max(0.0, cost.write_bytes - static_cast<double>(cache_bytes));
  return (cost.read_bytes + writes) / bandwidth;
}

double products_s(const Cost& cost, double rate) {
  return cost.flops / rate;
}

Roofline roofline(const Cost& cost, const std::map<std::string, double>& ceilings,
                  int64_t cache_bytes) {
  const auto at = [&](const char* name) {
    const auto it = ceilings.find(name);
    return it == ceilings.end() ? 0.0 : it->second;
  };
  const double bandwidth = at("read_bytes_per_s");
  const double rate = std::max(at("fp8_flops"), at("bf16_flops"));
  return {bandwidth > 0 ? memory_s(cost, cache_bytes, bandwidth) : 0,
          rate > 0 ? products_s(cost, rate) : 0};
}

bool is_impossible(double cold_ns, const Cost& cost, const std::map<std::string, double>& ceilings,
                   int64_t cache_bytes) {
  constexpr double kSlack = 0.9;  // an honest kernel may beat the program that measured them
  return cold_ns * 1e-9 < kSlack * roofline(cost, ceilings, cache_bytes).floor_s();
}

bool looks_warm(double cold_ns, double warm_ns, const Cost& cost, int64_t cache_bytes) {
  constexpr double kShows = 1 << 20;
  constexpr double kAlike = 1.02;
  const bool fits = cost.read_bytes + cost.write_bytes <= static_cast<double>(cache_bytes);
  return fits && cost.read_bytes >= kShows && cold_ns < kAlike * warm_ns;
}

bool came_from_cache(const Result& result, const Cost& cost) {
  constexpr double kShows = 1 << 20;
  constexpr double kLeast = 0.97;
  const auto read = std::ranges::find_if(result.metrics, [](const Metric& m) {
    return m.name == "dram__bytes_read.sum" && m.ordinal == Metric::kWholeLaunch;
  });
  return read != result.metrics.end() && cost.read_bytes >= kShows &&
         read->value < kLeast * cost.read_bytes;
}

}  // namespace moegate
