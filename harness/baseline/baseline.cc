// SPDX-License-Identifier: Apache-2.0
#include "harness/baseline/baseline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "harness/judge/ratchet.h"

namespace moegate {
namespace {

/// Why a row is rewritten; empty when it stays.
std::string moved(const BaselineRow& before, const BaselineRow& now, bool ratios) {
  const double change = now.level / before.level - 1;
  std::string why;
  if (std::abs(change) > std::max(before.sd / 3, 0.005)) {
    why = fmt::format("{:.4g} -> {:.4g}{} ({})", before.level, now.level, ratios ? "" : " us",
                      percent(change));
  }
  const auto add = [&](const std::string& what) { why += (why.empty() ? "" : ", ") + what; };
  if (std::abs(now.error - before.error) > 0.25 * before.error) {
    add(fmt::format("error {:.2g} -> {:.2g}", before.error, now.error));
  }
  if (now.deterministic != before.deterministic) {
    add(now.deterministic ? "now deterministic" : "no longer deterministic");
  }
  if (now.invariance != before.invariance) {
    add(now.invariance == Invariance::kept ? "now batch-invariant" : "not batch-invariant");
  }
  const std::string worse = less_precise(before.rounding, now.rounding);
  const std::string better = more_precise(before.rounding, now.rounding);
  if (!worse.empty()) add("less precise: " + worse);
  if (!better.empty()) add("more precise: " + better);
  if (before.rounding.graded == 0 && now.rounding.graded > 0) add("now known: precision");
  const auto add_hash = [&](const char* what, const std::string& was, const std::string& is) {
    if (was != is) add(fmt::format("{} {}", was.empty() ? "now known:" : "other", what));
  };
  add_hash("machine code", before.code, now.code);
  add_hash("outputs", before.out, now.out);
  add_hash("yardstick", before.yardstick, now.yardstick);
  if (now.n > before.n) add(fmt::format("{} -> {} processes", before.n, now.n));
  return why;
}

double slowest(const ByRound& by_round) {
  double most = 0;
  for (const auto& [round, us] : by_round) most = std::max(most, us);
  return most;
}

}  // namespace

Sides collect(const Baseline& baseline) {
  Sides sides;
  const auto add = [&](const std::pair<std::string, std::string>& key, const BaselineRow& row,
                       bool retired) {
    Side side;
    static_cast<RowFacts&>(side) = row;
    side.retired = retired;
    side.level = {std::log(row.level), row.sd, row.n};
    side.timer = baseline.header.timer;
    side.processes = row.n;
    const bool is_yardstick = row.yardstick.starts_with(key.second + "@");
    side.judged = is_yardstick ? Judged::is_yardstick : baseline.header.judged;
    side.slowest_us = row.time;
    for (int round = 0; row.enqueue > 0 && round < row.n; ++round) {
      side.enqueues[round] = row.enqueue;
    }
    // Rows are in the order of sides: the next one's place is the end.
    sides.insert_or_assign(sides.end(), {baseline.header.suite, key.first, key.second},
                           std::move(side));
  };
  for (const auto& [key, row] : baseline.retired) add(key, row, true);
  for (const auto& [key, row] : baseline.rows) add(key, row, false);
  return sides;
}

Baseline to_baseline(const RunInfo& run, const std::string& suite, const Sides& sides,
                     const std::string& by, EnvironmentItems environment) {
  Baseline baseline;
  baseline.header = header_of(run, suite);
  std::erase_if(environment, [](const EnvironmentItem& item) { return !item.counts; });
  baseline.header.environment = std::move(environment);
  for (const auto& [id, side] : sides) {
    if (id.suite != suite || !side.fit()) continue;
    baseline.header.judged = side.judged == Judged::span ? Judged::span : Judged::ratio;
    BaselineRow row;
    static_cast<RowFacts&>(row) = side;
    row.level = row.anchor = side.level.level();
    row.sd = side.level.sd_log;
    row.n = side.level.n;
    row.by = by;
    row.enqueue = slowest(side.enqueues);
    row.time = side.judged == Judged::span ? 0 : slowest(side.times);
    baseline.rows.emplace_hint(baseline.rows.end(), std::pair(id.key, id.variant), row);
  }
  return baseline;
}

std::string other_conditions(const BaselineHeader& before, const BaselineHeader& now) {
  const auto levels = [](const BaselineHeader& h, const BaselineHeader& other) -> std::string {
    return name_of(h.judged == Judged::none ? other.judged : h.judged);
  };
  const auto differ = [](const char* what, const auto& a, const auto& b) {
    return a == b ? "" : fmt::format("{} is '{}', the run's is '{}'", what, a, b);
  };
  for (const std::string& text :
       {differ("class", before.klass, now.klass), differ("protocol", before.protocol, now.protocol),
        differ("timer", before.timer, now.timer), differ("flush", before.flush, now.flush),
        differ("gpu", before.gpu, now.gpu),
        differ("judged", levels(before, now), levels(now, before))}) {
    if (!text.empty()) return text;
  }
  return "";
}

Baseline settle(const Baseline& before, Baseline now, std::vector<BaselineChange>& changes) {
  const bool same_header = other_conditions(before.header, now.header).empty();
  now.retired = before.retired;
  for (auto& [key, row] : now.rows) {
    const auto old = before.rows.find(key);
    if (old == before.rows.end()) {
      const auto left = now.retired.extract(key);
      if (!left.empty()) row.anchor = std::min(left.mapped().anchor, row.level);
      changes.push_back({key.first, key.second, left.empty() ? "added" : "came back"});
      continue;
    }
    row.anchor = std::min(old->second.anchor, row.level);
    if (row.invariance == Invariance::unknown) row.invariance = old->second.invariance;
    const std::string why = moved(old->second, row, now.ratios());
    if (!why.empty()) {
      changes.push_back({key.first, key.second, why});
    } else if (same_header) {
      row = old->second;
    } else {
      changes.push_back({key.first, key.second, "measured under other conditions"});
    }
  }
  for (const auto& [key, row] : before.rows) {
    if (now.rows.count(key) > 0) continue;
    now.retired[key] = row;
    changes.push_back({key.first, key.second, "removed"});
  }
  return now;
}

}  // namespace moegate
