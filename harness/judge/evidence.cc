// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/evidence.h"

#include <algorithm>
#include <cmath>

#include "harness/base/natural_less.h"

namespace moegate {

bool CaseIdLess::operator()(const CaseId& a, const CaseId& b) const {
  // A gate asks this a million times: no text is copied, and none is looked at twice.
  if (const int suites = NaturalLess::compare(a.suite, b.suite); suites != 0) return suites < 0;
  if (const int keys = NaturalLess::compare(a.key, b.key); keys != 0) return keys < 0;
  return NaturalLess::compare(a.variant, b.variant) < 0;
}

Evidence evidence_of(const ByRound& rounds) {
  std::vector<double> levels;
  for (const auto& [round, level] : rounds) levels.push_back(level);
  return Evidence::of(levels);
}

Quantity compared(const Side& base, const Side& head) {
  const auto of_ratios = [](const Side& side) {
    return side.judged == Judged::ratio || side.judged == Judged::is_yardstick;
  };
  if (!of_ratios(base) && !of_ratios(head)) return Quantity::level;
  const bool yardsticks =
      base.judged == Judged::is_yardstick && head.judged == Judged::is_yardstick;
  const bool same = !head.yardstick.empty() && base.yardstick == head.yardstick;
  return yardsticks || !same ? Quantity::time : Quantity::level;
}

Sides collect(const Baseline& baseline) {
  Sides sides;
  const auto add = [&](const std::pair<std::string, std::string>& key, const BaselineRow& row,
                       bool retired) {
    Side side;
    side.retired = retired;
    side.level = {std::log(row.level), row.sd, row.n};
    side.error = row.error;
    side.rounding = row.rounding;
    side.deterministic = row.deterministic;
    side.timer = baseline.header.timer;
    side.processes = row.n;
    side.code = row.code;
    side.out = row.out;
    side.anchor = row.anchor;
    const bool is_yardstick = row.yardstick.starts_with(key.second + "@");
    side.judged = is_yardstick ? Judged::is_yardstick : baseline.header.judged;
    side.yardstick = row.yardstick;
    side.tail = row.tail;
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

BaselineHeader header_of(const RunInfo& run, const std::string& suite) {
  const bool host = run.device.backend == Backend::host;
  const auto sets = run.tags.find(kSetsTag);
  const std::string fewer = sets == run.tags.end() ? "" : ",sets=" + sets->second;
  return {.klass = run.device.klass,
          .suite = suite,
          .protocol = run.protocol,
          .timer = run.timer,
          .flush = run.flush + fewer,
          .gpu = host ? "-" : uuids_of(run),
          .program = run.program,
          .git_sha = run.dirty ? "" : run.git_sha};
}

namespace {

double slowest(const ByRound& by_round) {
  double most = 0;
  for (const auto& [round, us] : by_round) most = std::max(most, us);
  return most;
}

}  // namespace

Baseline to_baseline(const RunInfo& run, const std::string& suite, const Sides& sides,
                     const std::string& by) {
  Baseline baseline;
  baseline.header = header_of(run, suite);
  for (const auto& [id, side] : sides) {
    if (id.suite != suite || !side.fit()) continue;
    baseline.header.judged = side.judged == Judged::span ? Judged::span : Judged::ratio;
    const double level = side.level.level();
    const BaselineRow row = {.level = level,
                             .sd = side.level.sd_log,
                             .n = side.level.n,
                             .error = side.error,
                             .rounding = side.rounding,
                             .deterministic = side.deterministic,
                             .by = by,
                             .anchor = level,
                             .code = side.code,
                             .out = side.out,
                             .yardstick = side.yardstick,
                             .tail = side.tail,
                             .enqueue = slowest(side.enqueues),
                             .time = side.judged == Judged::span ? 0 : slowest(side.times)};
    baseline.rows.emplace_hint(baseline.rows.end(), std::pair(id.key, id.variant), row);
  }
  return baseline;
}

}  // namespace moegate
