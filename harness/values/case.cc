// SPDX-License-Identifier: Apache-2.0
#include "harness/values/case.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "harness/base/error.h"
#include "harness/base/text.h"

namespace moegate {

const std::vector<Param>& common_params() {
  static const std::vector<Param> params = {
      {"launch", "stream", "stream | graph: launched eagerly or as a captured CUDA graph"},
      {"cache", "cold", "cold | warm | cold-weights: what the caches hold before a launch"},
      {"seed", "1", "seed of every input"},
  };
  return params;
}

std::string Case::key() const {
  std::string key = op;
  char separator = '/';
  for (const auto& [name, value] : params) {
    const std::string* usual = defaults.find(name);
    if (usual != nullptr && *usual == value) continue;
    (key += separator).append(name).append("=").append(value);
    separator = ',';
  }
  return key;
}

std::string Case::where() const {
  return fmt::format("{}.suite [{}]", suite, section);
}

const std::string& Case::get(const std::string& name) const {
  const auto found = params.find(name);
  if (found == params.end()) {
    usage_error("{}: {} reads parameter '{}', which the case does not have; give it a value there",
                where(), op, name);
  }
  return found->second;
}

int64_t Case::get_int(const std::string& name, int64_t low, int64_t high) const {
  const std::string& text = get(name);
  const auto value = parse_number<int64_t>(text);
  if (!value || *value < low || *value > high) {
    usage_error("{}: {} = '{}' is not an integer in [{}, {}]; change it there", where(), name, text,
                low, high);
  }
  return *value;
}

double Case::get_double(const std::string& name, double low, double high) const {
  const std::string& text = get(name);
  const auto value = parse_number<double>(text);
  // Written so that NaN, which is a number to parse_number, fails.
  const bool inside = value && *value >= low && *value <= high;
  if (!inside) {
    usage_error("{}: {} = '{}' is not a number in [{}, {}]; change it there", where(), name, text,
                low, high);
  }
  return *value;
}

size_t Case::get_choice(const std::string& name, const std::vector<std::string>& choices) const {
  const std::string& text = get(name);
  const auto found = std::find(choices.begin(), choices.end(), text);
  if (found == choices.end()) {
    usage_error("{}: {} = '{}' is none of {}; use one of these", where(), name, text,
                fmt::join(choices, ", "));
  }
  return static_cast<size_t>(found - choices.begin());
}

}  // namespace moegate
