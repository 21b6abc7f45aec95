// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/doubts.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "harness/base/stats.h"
#include "harness/judge/evidence.h"
#include "harness/judge/ratchet.h"
#include "harness/judge/tails.h"

namespace moegate {
namespace {

constexpr double kFlaggedBase = 0.1, kFlaggedHead = 0.25;  // shares of rows

/// Whether at most a share of the rows was measured below the floor.
bool few_are_impossible(const Sides& sides, double share) {
  int rows = 0, flagged = 0;
  for (const auto& [id, side] : sides) {
    rows += side.measured();
    flagged += side.measured() && side.impossible > 0;
  }
  return flagged <= share * rows;
}

const Side* base_of(const CaseId& id, const std::map<std::string, Expectation>& expected) {
  const Expectation* suite = find_or_null(expected, id.suite);
  return suite ? find_or_null(suite->sides, id) : nullptr;
}

/// Where noisy processes are no evidence, a row may pass on its quiet ones alone.
bool may_fail(const CaseVerdict& v, const Side& head) {
  const bool left_out = head.judged == Judged::ratio || head.judged == Judged::is_yardstick;
  const bool passes = v.outcome == Outcome::pass || v.outcome == Outcome::improved;
  return v.outcome == Outcome::inconclusive || (left_out && passes);
}

/// What its outputs say stays: only its latency is open.
bool stays(const CaseVerdict& v) {
  return v.outcome == Outcome::wrong || v.outcome == Outcome::environment;
}

constexpr const char* kCutShort = "not judged: interrupted before all of its pairs were measured";
constexpr const char* kNotMeasured = "left out: the time was up before it was measured";

}  // namespace

bool trust_ceilings(const Sides& head, const std::map<std::string, Expectation>& expected,
                    const Setting& setting) {
  if (!setting.host) return true;
  if (!setting.paired) return few_are_impossible(head, kFlaggedHead);
  for (const auto& [suite, e] : expected) {
    if (!few_are_impossible(e.sides, kFlaggedBase)) return false;
  }
  return true;
}

std::string only_a_replay_decides(const Side& base, const Side& head, const Limits& limits) {
  if (same_code(base, head)) return "";
  if (base.tail > 0 && head.tail > 0) {
    const double growth = head.tail / base.tail - 1;
    if (growth > 2 * limits.fail_at) {
      return fmt::format("the mean launch is {} further from the level than the base's",
                         percent(growth));
    }
  }
  return maybe_worse_output(base, head);
}

void blame_device(GateResult& result, const std::map<std::string, Expectation>& expected,
                  const Replayed& replayed) {
  if (!replayed.judged.empty() || !replayed.identical.empty()) return;
  for (CaseVerdict& v : result.cases) {
    const Expectation* suite = find_or_null(expected, v.id.suite);
    // What the two devices are seen to differ by is in the test.
    const bool other = suite && suite->other_device && !suite->between;
    if (!other || v.stage != 1 || v.outcome != Outcome::inconclusive) continue;
    find(v, Rule::other_device,
         "the baseline is of another device and nothing was replayed (--replay-program): " + v.why);
  }
}

void fail_noisier(GateResult& result, const Sides& head,
                  const std::map<std::string, Expectation>& expected, const Setting& setting) {
  if (!setting.paired) return;
  struct Row {
    CaseVerdict* verdict;
    const Side *base, *head;
  };
  std::vector<Row> rows;
  std::vector<double> p;
  for (CaseVerdict& v : result.cases) {
    const Side *b = base_of(v.id, expected), *h = find_or_null(head, v.id);
    if (!b || !h || v.same_code || !may_fail(v, *h)) continue;
    rows.push_back({&v, b, h});
    p.push_back(more_often(h->noisy, h->processes, b->noisy, b->processes));
  }
  const auto adjusted = holm(p);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (adjusted[i] > setting.limits.alpha) continue;
    const auto [v, b, h] = rows[i];
    find(*v, Rule::noisier,
         fmt::format("noisier: {} of {} processes are noisy, {} of {} of the base's (adjusted p "
                     "{:.2g}): {}; {}",
                     h->noisy, h->processes, b->noisy, b->processes, adjusted[i], h->why, v->why));
  }
}

void fail_slow_to_enqueue(GateResult& result, const Sides& head,
                          const std::map<std::string, Expectation>& expected) {
  constexpr double kTimes = 2, kMoreUs = 5;
  constexpr size_t kFewestProcesses = 2, kFewestRows = 5;
  struct Row {
    CaseVerdict* verdict;
    std::vector<double> ours, theirs;
    double now() const { return median(ours); }
    double before() const { return median(theirs); }
  };
  std::vector<Row> rows;
  std::vector<double> ratios;
  InOrder heads(head);
  for (CaseVerdict& v : result.cases) {
    const Side* h = heads.find_or_null(v.id);
    const bool decided = v.outcome == Outcome::pass || v.outcome == Outcome::improved ||
                         v.outcome == Outcome::inconclusive || v.outcome == Outcome::identical;
    if (!h || h->enqueues.size() < kFewestProcesses || !decided) continue;
    const Side* base = base_of(v.id, expected);
    if (!base || base->enqueues.size() < kFewestProcesses) continue;
    if (expected.at(v.id.suite).other_device) continue;
    Row row{&v, numbers_of(h->enqueues), numbers_of(base->enqueues)};
    ratios.push_back(row.now() / row.before());
    rows.push_back(std::move(row));
  }
  const double machine = ratios.size() < kFewestRows ? 1 : std::max(1.0, median(ratios));
  for (const Row& row : rows) {
    const double now = row.now(), before = row.before() * machine;
    if (now < kTimes * before || now < before + kMoreUs ||
        *std::ranges::min_element(row.ours) <= machine * *std::ranges::max_element(row.theirs)) {
      continue;
    }
    find(*row.verdict, Rule::slow_to_enqueue,
         fmt::format("the host takes {:.1f} us to enqueue a launch, the base's {:.1f} us; {}", now,
                     row.before(), row.verdict->why));
  }
}

void fail_far_slower(GateResult& result, const Sides& head,
                     const std::map<std::string, Expectation>& expected, const Setting& setting) {
  constexpr double kTimes = 2;  // of what a row must see at least
  constexpr size_t kFewestProcesses = 2, kFewestRows = 5;
  if (setting.paired) return;
  const auto times_of = [&](const CaseVerdict& v) {
    const Side* side = find_or_null(head, v.id);
    return side && !side->disturbed ? numbers_of(side->times) : std::vector<double>();
  };
  std::vector<double> machine;  // how much slower the same code is tonight
  for (const CaseVerdict& v : result.cases) {
    const Side* base = base_of(v.id, expected);
    const std::vector<double> us = times_of(v);
    if (v.same_code && base && base->slowest_us > 0 && !us.empty()) {
      machine.push_back(median(us) / base->slowest_us);
    }
  }
  const double slower = machine.size() < kFewestRows ? 1 : std::max(1.0, median(machine));
  for (CaseVerdict& v : result.cases) {
    const Side* base = base_of(v.id, expected);
    const std::vector<double> us = times_of(v);
    const bool open = v.outcome == Outcome::inconclusive && v.by_time && v.stage == 0;
    if (!open || v.same_code || !base || base->slowest_us <= 0 || us.size() < kFewestProcesses) {
      continue;
    }
    const double least = *std::ranges::min_element(us),
                 times = 1 + kTimes * setting.limits.blind_at;
    const auto near = [&](const auto& round) {
      return round.second <= times * base->level.level();
    };
    if (least <= times * slower * base->slowest_us ||
        std::ranges::any_of(head.at(v.id).by_round, near)) {
      continue;  // on a slower day a ratio stays what it was
    }
    find(v, Rule::far_slower,
         fmt::format("slower than any noise: at least {:.4g} us in each of {} quiet processes, the "
                     "base's slowest took {:.4g} us; {}",
                     least, us.size(), base->slowest_us, v.why));
  }
}

bool is_known_by_program(const CaseId& id, const Sides& head, const Expectation& expected) {
  const Side* base = find_or_null(expected.sides, id);
  if (!expected.same_program || !base || base->code.empty()) return false;
  bool seen = false;
  for (const auto& [other, side] : head) {
    if (other.suite != id.suite || other.variant != id.variant || side.processes == 0 ||
        operator_of(other.key) != operator_of(id.key)) {
      continue;
    }
    const Side* its_base = find_or_null(expected.sides, other);
    if (!its_base) continue;
    if (!same_code(*its_base, side)) return false;
    seen = seen || side.code == base->code;
  }
  return seen;
}

void leave_open(GateResult& result, const Sides& head,
                const std::map<std::string, Expectation>& expected, const Replayed& replayed,
                const Limits& limits) {
  const Expectation none;
  const auto expected_of = [&](const CaseId& id) -> const Expectation& {
    const Expectation* suite = find_or_null(expected, id.suite);
    return suite ? *suite : none;
  };
  result.interrupted = replayed.interrupted;
  std::set<CaseId, CaseIdLess> unheard = replayed.left_out;
  std::set<CaseId, CaseIdLess> known;
  for (CaseVerdict& v : result.cases) {
    if (unheard.erase(v.id) == 0) continue;
    if (replayed.interrupted) {
      find(v, Rule::left_open, v.why.empty() ? kCutShort : fmt::format("{}; {}", kCutShort, v.why));
      continue;
    }
    if (!head.contains(v.id) && !stays(v) && is_known_by_program(v.id, head, expected_of(v.id))) {
      v.same_code = true;
      v.yardstick = expected_of(v.id).sides.at(v.id).judged == Judged::is_yardstick;
      find(
          v, Rule::known_identical,
          "not measured: the base's program, whose variant launched what the base's did elsewhere");
      known.insert(v.id);
      continue;
    }
    // No replay would find that it is not slower.
    if (v.outcome == Outcome::regressed && v.latency && v.latency->low > 2 * limits.blind_at) {
      result.more_s += replayed.replaying_s;
      continue;
    }
    if (stays(v)) {
      find(v, Rule::left_open, v.why);
    } else if (!head.contains(v.id)) {
      find(v, Rule::not_measured, kNotMeasured);
      result.more_s += replayed.measuring_s;
    } else {
      find(v, Rule::left_open, "left out: the time was up before it was replayed; " + v.why);
      result.more_s += replayed.replaying_s;
    }
  }
  for (const CaseId& id : unheard) {
    result.more_s += replayed.measuring_s;
    const Expectation& e = expected_of(id);
    if (replayed.interrupted)
      result.cases.push_back(unmeasured(id, e.against, Rule::left_open, kCutShort));
    if (!e.stalled) continue;
    result.cases.push_back(unmeasured(
        id, e.against, Rule::stalled,
        std::string(kNotMeasured) +
            ", the candidate lacks it, and it did not grow: give the night a larger --budget"));
  }
  for (const CaseId& id : replayed.left_out) {
    if (!known.contains(id)) result.left_out.push_back(id.key + " " + id.variant);
  }
  if (!known.empty()) {
    result.notes.push_back(fmt::format(
        "{} rows were not measured for want of time and are identical all the same: the program is "
        "the baseline's, and their variants launched what the baseline's did in the rows that were "
        "measured.",
        known.size()));
  }
}

}  // namespace moegate
