// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "harness/base/error.h"
#include "harness/base/hash.h"
#include "harness/base/stats.h"
#include "harness/base/text.h"

namespace moegate {

bool CaseIdLess::operator()(const CaseId& a, const CaseId& b) const {
  // A gate asks this a million times: no text is copied, and none is looked at twice.
  if (const int suites = NaturalLess::compare(a.suite, b.suite); suites != 0) return suites < 0;
  if (const int keys = NaturalLess::compare(a.key, b.key); keys != 0) return keys < 0;
  return NaturalLess::compare(a.variant, b.variant) < 0;
}

std::string operator_of(const std::string& key) {
  return key.substr(0, key.find('/'));
}

std::vector<double> numbers_of(const ByRound& rounds) {
  std::vector<double> numbers;
  for (const auto& [round, number] : rounds) numbers.push_back(number);
  return numbers;
}

Evidence evidence_of(const ByRound& rounds) {
  return Evidence::of(numbers_of(rounds));
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

BaselineHeader header_of(const RunInfo& run, const std::string& suite) {
  const bool host = run.device.backend == Backend::host;
  const std::string* sets = find_or_null(run.tags, kSetsTag);
  return {.klass = run.device.klass,
          .suite = suite,
          .protocol = run.protocol,
          .timer = run.timer,
          .flush = run.flush + (sets ? ",sets=" + *sets : ""),
          .gpu = host ? "-" : uuids_of(run),
          .program = run.program,
          .git_sha = run.dirty ? "" : run.git_sha};
}

namespace {

/// Samples that spread this many ticks below their mean are dither: their mean resolves fractions
/// of a tick, as slow-downs of a third of one showed (reports/gallery/selftest.md).
constexpr double kDitherTicks = 2;

/// Microseconds, or a ratio; 0: nothing was timed.
double judged_level(const Result& r) {
  if (r.judged == Judged::span) return r.span_ns / 1000;
  return r.judged == Judged::none ? 0 : r.ratio;
}

/// The same of the plain means; 0: the worker did not state them.
double mean_level(const Result& r) {
  if (r.judged == Judged::span) return r.mean_ns / 1000;
  return r.judged == Judged::none ? 0 : r.mean_ratio;
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
  if (is_worse(status, side.status)) {
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

bool same_outputs(const std::vector<SeedError>& a, const std::vector<SeedError>& b) {
  return std::ranges::equal(a, b, [](const SeedError& x, const SeedError& y) {
    return x.seed == y.seed && x.hash == y.hash;
  });
}

/// Of the seeds that both have.
bool same_questions(const std::vector<SeedError>& a, const std::vector<SeedError>& b) {
  return std::ranges::all_of(a, [&](const SeedError& x) {
    const auto y = std::ranges::find(b, x.seed, &SeedError::seed);
    return y == b.end() || other_question(*y, x).empty();
  });
}

/// Seeds are the first process's that states any; one that wrote something else, or not the same
/// twice, leaves the side without an output hash.
void add_seeds(Side& side, const Result& r) {
  if (side.seeds.empty()) {
    side.seeds = r.seeds;
    side.out = output_hash(r.seeds);
    side.rounding = mean_rounding(r.seeds);
  } else if (!r.seeds.empty() && !same_outputs(r.seeds, side.seeds)) {
    side.out.clear();
  }
  side.asked_alike = side.asked_alike && same_questions(r.seeds, side.seeds);
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
  ByRound all, quiet;
  ByRound times, means, mean_times;
  std::string yardstick;

  void clear() {
    for (ByRound* part : {&all, &quiet, &times, &means, &mean_times}) part->clear();
    yardstick.clear();
  }
};

void add_level(Levels& levels, const Level& l) {
  const double level = judged_level(l.result);
  agree(levels.yardstick, yardstick_of(l.result), levels.all.empty());
  levels.all[l.round] = level;
  levels.times[l.round] = l.result.span_ns / 1000;
  if (mean_level(l.result) > 0) levels.means[l.round] = mean_level(l.result);
  if (l.result.mean_ns > 0) levels.mean_times[l.round] = l.result.mean_ns / 1000;
  if (l.result.status == Status::ok) levels.quiet[l.round] = level;
}

/// Those of one of the rounds that the other has, too.
ByRound only_of(const ByRound& rounds, const ByRound& values) {
  ByRound kept;
  kept.reserve(rounds.size());
  for (const auto& [round, level] : rounds) {
    if (const double* value = find_or_null(values, round)) kept[round] = *value;
  }
  return kept;
}

/// On a busy host the ratio of two threaded variants shifts by tens of percent for as long as the
/// load lasts, the same way in every process: only quiet processes are evidence.
void conclude(const Levels& levels, Side& side) {
  constexpr size_t kFewest = 2;
  const bool ratios = side.judged != Judged::span;
  side.disturbed = ratios && levels.quiet.size() < kFewest;
  side.by_round = ratios && !side.disturbed ? levels.quiet : levels.all;
  side.yardstick = levels.yardstick;
  side.times = only_of(side.by_round, levels.times);
  side.means = only_of(side.by_round, levels.means);
  side.mean_times = only_of(side.by_round, levels.mean_times);
  side.level = evidence_of(side.by_round);
  std::vector<double> tails;
  for (const auto& [round, mean] : side.means) tails.push_back(mean / side.by_round.at(round));
  if (tails.size() == side.by_round.size()) side.tail = geometric_mean(tails);
}

void add_process(Side& side, const Level& l, Levels& levels) {
  const Result& r = l.result;
  add_status(side, r);
  if (r.judged_status() != Status::ok && r.judged_status() != Status::noisy) return;
  const double error = worst_error(r);
  if (!(error <= side.error)) side.error = error;
  side.deterministic = side.deterministic && r.deterministic;
  add_seeds(side, r);
  agree(side.code, r.code, side.processes == 1);
  if (r.timer.empty() || !(judged_level(r) > 0)) return;  // verified, not timed
  side.timer = r.timer;
  if (r.span_ns - r.min_ns < kDitherTicks * r.tick_ns) {
    side.tick = std::max(side.tick, r.tick_ns / r.span_ns);
  }
  side.judged = r.judged;
  side.impossible += r.impossible;
  side.warm += r.suspect_warm;
  for (const Metric& m : r.metrics) {
    if (m.name == kEnqueueMetric && m.value > 0) side.enqueues[l.round] = m.value / 1000;
    if (m.name != kInvarianceMetric) continue;
    side.invariance =
        std::max(side.invariance, m.value > 0 ? Invariance::broken : Invariance::kept);
  }
  add_level(levels, l);
}

/// Sums up levels that come row by row.
class Collector {
 public:
  void add(const Level& l) {
    if (row_ == sides_.end() || !is_of(l, row_->first)) begin_row(l);
    add_process(row_->second, l, levels_);
  }
  Sides sides() && {
    end_row();
    return std::move(sides_);
  }

 private:
  static bool is_of(const Level& l, const CaseId& row) {
    return l.key == row.key && l.variant == row.variant && l.suite == row.suite;
  }
  void begin_row(const Level& l) {
    end_row();
    const size_t before = sides_.size();
    // The next variant of a case follows the one before.
    const auto hint = row_ == sides_.end() ? row_ : std::next(row_);
    row_ = sides_.try_emplace(hint, {l.suite, l.key, l.variant});
    if (sides_.size() > before) return;
    give_up(Exit::internal, "{} {}: its levels do not come together", l.key, l.variant);
  }
  void end_row() {
    if (!levels_.all.empty()) conclude(levels_, row_->second);
    levels_.clear();
  }

  Sides sides_;
  Sides::iterator row_ = sides_.end();
  Levels levels_;  // of that row
};

}  // namespace

Sides collect(const EachLevel& levels) {
  Collector collector;
  levels([&](const Level& l) { collector.add(l); });
  return std::move(collector).sides();
}

Sides collect(const std::vector<Level>& levels) {
  return collect([&](const auto& add) { std::ranges::for_each(levels, add); });
}

}  // namespace moegate
