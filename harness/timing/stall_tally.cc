// SPDX-License-Identifier: Apache-2.0
#include "harness/timing/stall_tally.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "harness/base/dynlib.h"

namespace moegate {

std::optional<std::string> stall_reason(const std::string& name) {
  constexpr std::string_view kPrefix = "issue_stalled_", kTwin = "_not_issued";
  if (name.ends_with(kTwin)) return std::nullopt;
  const size_t at = name.find(kPrefix);
  return at == std::string::npos ? name : name.substr(at + kPrefix.size());
}

void StallTally::add(const PcSample& sample) {
  Function& function = functions_[sample.function];
  function.places[{sample.cubin, sample.symbol}] += sample.samples;
  function.rows[{sample.offset, sample.reason}] += sample.samples;
  function.samples += sample.samples;
}

void StallTally::add_rows(const Function& function, size_t ordinal, size_t most,
                          StallTable& table) const {
  std::vector<StallRow> rows;
  for (const auto& [at, samples] : function.rows) {
    StallRow& row = rows.emplace_back();
    row.ordinal = static_cast<int>(ordinal);
    std::tie(row.offset, row.reason) = at;
    row.samples = samples;
  }
  // Hottest first; of equals the first in the code.
  std::ranges::sort(rows, {}, [](const StallRow& r) {
    return std::tuple(-r.samples, r.offset, std::string_view(r.reason));
  });
  rows.resize(std::min(rows.size(), most));
  table.rows.insert(table.rows.end(), rows.begin(), rows.end());
}

StallTable StallTally::table(const std::vector<std::string>& operations,
                             const std::function<bool(const std::string&)>& around,
                             size_t most_rows) const {
  StallTable table;
  for (const std::string& name : operations) table.kernels.push_back({.name = name});
  std::vector<std::pair<int64_t, std::string>> hottest;
  for (const auto& [name, function] : functions_) hottest.emplace_back(-function.samples, name);
  std::ranges::sort(hottest);
  for (const auto& [heat, name] : hottest) {
    const std::string shown = demangle(name);
    auto kernel = std::ranges::find_if(
        table.kernels, [&](const PcFunction& k) { return k.name == shown && k.function.empty(); });
    if (kernel == table.kernels.end()) {
      if (around(name)) continue;
      kernel = table.kernels.insert(table.kernels.end(), {.name = shown});
    }
    const Function& function = functions_.at(name);
    const auto place = std::ranges::max_element(function.places, {},
                                                [](const auto& entry) { return entry.second; });
    kernel->function = name;
    std::tie(kernel->cubin, kernel->symbol) = place->first;
    kernel->samples = function.samples;
    table.samples += function.samples;
  }
  for (size_t k = 0; k < table.kernels.size(); ++k) {
    const auto found = functions_.find(table.kernels[k].function);
    if (found != functions_.end()) add_rows(found->second, k, most_rows, table);
  }
  return table;
}

}  // namespace moegate
