// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "harness/base/hash.h"
#include "harness/base/natural_less.h"
#include "harness/base/stats.h"

namespace moegate {
namespace {

/// Samples that spread this many ticks below their mean are dither: their mean resolves fractions
/// of a tick, as slow-downs of a third of one showed (reports/gallery/selftest.md).
constexpr double kDitherTicks = 2;

/// How bad a status is; a case is as bad as its worst process.
int rank(Status s) {
  switch (s) {
    case Status::ok:
      return 0;
    case Status::noisy:
      return 1;
    case Status::unsupported:
      return 2;
    case Status::bad_timer:
      return 3;
    case Status::timeout:
      return 4;
    case Status::crashed:
      return 5;
    case Status::wrong:
      return 6;
  }
  return 6;
}

/// Microseconds, or a ratio; 0: nothing was timed.
double judged_level(const Result& r) {
  switch (r.judged) {
    case Judged::none:
      return 0;
    case Judged::span:
      return r.span_ns / 1000;
    case Judged::ratio:
    case Judged::is_yardstick:
      return r.ratio;
  }
  return 0;
}

double worst_error(const Result& r) {
  double worst = 0;
  for (const Accuracy& a : r.accuracy) {
    // NaN must win: it is stored for an error that is not finite.
    if (!(a.rel_l2 <= worst)) worst = a.rel_l2;
  }
  return worst;
}

void add_status(Side& side, const Result& r) {
  ++side.processes;
  const Status status = r.judged_status();
  if (rank(status) > rank(side.status)) {
    side.status = status;
    side.why = r.why;
    side.affected = 0;
  }
  if (status == side.status) ++side.affected;
  side.noisy += status == Status::noisy && !r.timer.empty();
}

/// Hash over the outputs of all seeds; empty without any.
std::string output_hash(const std::vector<SeedError>& seeds) {
  if (seeds.empty()) return "";
  std::vector<uint64_t> words;
  for (const SeedError& s : seeds) {
    words.insert(words.end(), {static_cast<uint64_t>(s.seed), s.hash});
  }
  return fmt::format("{:016x}", hash_bytes(words.data(), words.size() * sizeof(uint64_t)));
}

/// Seeds are the first process's that states any; one that wrote something else, or not the same
/// twice, leaves the side without an output hash.
void add_seeds(Side& side, const Result& r) {
  if (side.seeds.empty()) {
    side.seeds = r.seeds;
    side.out = output_hash(r.seeds);
  } else if (!r.seeds.empty() && output_hash(r.seeds) != side.out) {
    side.out.clear();
  }
  if (!side.deterministic) side.out.clear();
}

/// One process that launched other code than the rest, or cannot tell, leaves the side without.
void agree(std::string& all, const std::string& one, bool first) {
  if (first) {
    all = one;
  } else if (all != one) {
    all.clear();
  }
}

/// Empty where the name or the code is not known.
std::string yardstick_of(const Result& r) {
  const bool known = !r.yardstick.empty() && !r.yardstick_code.empty();
  return known ? r.yardstick + "@" + r.yardstick_code : "";
}

/// What the processes of one row measured, by round.
struct Levels {
  std::map<int, double> all, quiet;
  std::map<int, double> times, means, mean_times;
  std::string yardstick;
};

/// As judged_level(), of the plain means; 0: an older program did not state them.
double mean_level(const Result& r) {
  if (r.judged == Judged::span) return r.mean_ns / 1000;
  return r.judged == Judged::none ? 0 : r.mean_ratio;
}

void add_level(Levels& levels, const Level& l) {
  const double level = judged_level(l.result);
  agree(levels.yardstick, yardstick_of(l.result), levels.all.empty());
  levels.all[l.round] = level;
  levels.times[l.round] = l.result.span_ns / 1000;
  if (mean_level(l.result) > 0) levels.means[l.round] = mean_level(l.result);
  if (l.result.mean_ns > 0) levels.mean_times[l.round] = l.result.mean_ns / 1000;
  if (l.result.status == Status::ok) levels.quiet[l.round] = level;
}

/// On a busy host the ratio of two threaded variants shifts by tens of percent for as long as the
/// load lasts, the same way in every process: only quiet processes are evidence.
void conclude(const Levels& levels, Side& side) {
  constexpr size_t kFewest = 2;
  const bool ratios = side.judged != Judged::span;
  side.disturbed = ratios && levels.quiet.size() < kFewest;
  side.by_round = ratios && !side.disturbed ? levels.quiet : levels.all;
  side.yardstick = levels.yardstick;
  std::vector<double> values, tails;
  for (const auto& [round, level] : side.by_round) {
    values.push_back(level);
    side.times[round] = levels.times.at(round);
    const auto mean = levels.means.find(round), time = levels.mean_times.find(round);
    if (time != levels.mean_times.end()) side.mean_times.insert(*time);
    if (mean == levels.means.end()) continue;
    side.means.insert(*mean);
    tails.push_back(mean->second / level);
  }
  side.level = Evidence::of(values);
  if (tails.size() == values.size()) side.tail = geometric_mean(tails);
}

bool is_of(const Level& l, const CaseId& row) {
  return l.key == row.key && l.variant == row.variant && l.suite == row.suite;
}

}  // namespace

bool CaseIdLess::operator()(const CaseId& a, const CaseId& b) const {
  // A gate asks this a million times: no text is copied.
  if (a.suite != b.suite) return NaturalLess::compare(a.suite, b.suite) < 0;
  if (a.key != b.key) return NaturalLess::compare(a.key, b.key) < 0;
  return NaturalLess::compare(a.variant, b.variant) < 0;
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

Sides collect(const std::vector<Level>& levels) {
  Sides sides;
  std::map<CaseId, Levels, CaseIdLess> measured;
  auto row = sides.end();  // of the level before: those of a row often follow each other
  for (const Level& l : levels) {
    const Result& r = l.result;
    if (row == sides.end() || !is_of(l, row->first)) {
      row = sides.try_emplace({l.suite, l.key, l.variant}).first;
    }
    auto& [id, side] = *row;
    add_status(side, r);
    if (!r.measured()) continue;
    const double error = worst_error(r);
    if (!(error <= side.error)) side.error = error;
    side.deterministic = side.deterministic && r.deterministic;
    add_seeds(side, r);
    agree(side.code, r.code, side.processes == 1);
    if (r.timer.empty() || !(judged_level(r) > 0)) continue;  // verified, not timed
    side.timer = r.timer;
    if (r.span_ns - r.min_ns < kDitherTicks * r.tick_ns) {
      side.tick = std::max(side.tick, r.tick_ns / r.span_ns);
    }
    side.judged = r.judged;
    side.impossible += r.impossible;
    side.warm += r.suspect_warm;
    for (const Metric& m : r.metrics) {
      if (m.name == "enqueue" && m.value > 0) side.enqueues[l.round] = m.value / 1000;
    }
    add_level(measured[id], l);
  }
  for (const auto& [id, levels] : measured) conclude(levels, sides[id]);
  return sides;
}

Sides collect(const Baseline& baseline) {
  Sides sides;
  const auto add = [&](const std::pair<std::string, std::string>& key, const BaselineRow& row,
                       bool retired) {
    Side side;
    side.retired = retired;
    side.level = {std::log(row.level), row.sd, row.n};
    side.error = row.error;
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
    for (int round = 0; row.enqueue > 0 && round < row.n; ++round) {
      side.enqueues[round] = row.enqueue;
    }
    sides[{baseline.header.suite, key.first, key.second}] = side;
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

double slowest(const std::map<int, double>& by_round) {
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
    baseline.rows[{id.key, id.variant}] = {.level = level,
                                           .sd = side.level.sd_log,
                                           .n = side.level.n,
                                           .error = side.error,
                                           .deterministic = side.deterministic,
                                           .by = by,
                                           .anchor = level,
                                           .code = side.code,
                                           .out = side.out,
                                           .yardstick = side.yardstick,
                                           .tail = side.tail,
                                           .enqueue = slowest(side.enqueues)};
  }
  return baseline;
}

}  // namespace moegate
