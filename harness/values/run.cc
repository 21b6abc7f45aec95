// SPDX-License-Identifier: Apache-2.0
#include "harness/values/run.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace moegate {

bool same_device(const std::string& a, const std::string& b) {
  return a == b && !a.starts_with(kSeveralDevices);
}

bool is_partial(const RunInfo& run) {
  if (run.status != "complete") return true;
  const auto options = nlohmann::json::parse(run.options, nullptr, /*allow_exceptions=*/false);
  return options.is_object() && options.value("filtered", false);
}

std::string describe(const RunInfo& run) {
  return run.label.empty() ? fmt::format("run {}", run.id)
                           : fmt::format("run {} '{}'", run.id, run.label);
}

}  // namespace moegate
