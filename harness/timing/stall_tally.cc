// SPDX-License-Identifier: Apache-2.0
#include "harness/timing/stall_tally.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace moegate {
namespace {

/// Hottest first; of equals the first in the code.
void sort_by_heat(std::vector<StallRow>& rows) {
  std::ranges::sort(rows, {}, [](const StallRow& r) {
    return std::tuple(-r.samples, r.offset, std::string_view(r.reason));
  });
}

}  // namespace

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

StallTable StallTally::table(const std::vector<std::string>& operations,
                             const std::function<bool(const std::string&)>& around,
                             size_t most_rows) const {
  std::vector<std::string> names = operations;
  std::vector<std::pair<int64_t, std::string>> others;
  for (const auto& [name, function] : functions_) {
    if (std::ranges::find(operations, name) != operations.end() || around(name)) continue;
    others.emplace_back(-function.samples, name);
  }
  std::ranges::sort(others);
  for (const auto& [heat, name] : others) names.push_back(name);

  StallTable table;
  for (size_t k = 0; k < names.size(); ++k) {
    PcFunction& kernel = table.kernels.emplace_back(PcFunction{.name = names[k]});
    const auto found = functions_.find(names[k]);
    const auto first = std::ranges::find(names, names[k]) - names.begin();
    if (found == functions_.end() || static_cast<size_t>(first) != k) continue;
    const Function& function = found->second;
    const auto place = std::ranges::max_element(function.places, {},
                                                [](const auto& entry) { return entry.second; });
    kernel.cubin = place->first.first;
    kernel.symbol = place->first.second;
    kernel.samples = function.samples;
    table.samples += function.samples;
    std::vector<StallRow> rows;
    for (const auto& [at, samples] : function.rows) {
      StallRow& row = rows.emplace_back();
      row.ordinal = static_cast<int>(k);
      std::tie(row.offset, row.reason) = at;
      row.samples = samples;
    }
    sort_by_heat(rows);
    rows.resize(std::min(rows.size(), most_rows));
    table.rows.insert(table.rows.end(), rows.begin(), rows.end());
  }
  return table;
}

}  // namespace moegate
