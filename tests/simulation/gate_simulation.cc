// SPDX-License-Identifier: Apache-2.0
// What the gate's rule buys, beside simple ones, on the same simulated nights; prints the tables.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "harness/base/stats.h"
#include "harness/judge/replay_rule.h"
#include "tests/simulation/gate_world.h"

namespace moegate::test {
namespace {

constexpr std::array kSlowDowns{0.02, 0.03, 0.05};

// ---- rules: which cases of a suite fail

using Fails = std::vector<bool>;

template <typename Test>
Fails each(const std::vector<SimCase>& suite, const Test& fails) {
  Fails all;
  for (const SimCase& c : suite) all.push_back(fails(c));
  return all;
}

bool best_of_five(const SimCase& c) {
  return *std::ranges::min_element(c.head) - *std::ranges::min_element(c.base) > std::log(1.05);
}

bool five_percent(const SimCase& c) {
  return c.head[0] - c.base[0] > std::log(1.05);
}

/// Mann-Whitney, two-sided at .05 by its normal approximation, over the samples of one process a
/// side; slower when the head ranks higher.
bool u_test(SimWorld& world, const SimCase& c) {
  std::vector<std::pair<double, bool>> samples;
  for (int i = 0; i < kSamples; ++i) {
    samples.emplace_back(world.sample(c.base[0]), false);
    samples.emplace_back(world.sample(c.head[0]), true);
  }
  std::ranges::sort(samples);
  double u = -kSamples * (kSamples + 1) / 2.0;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (samples[i].second) u += static_cast<double>(i + 1);
  }
  constexpr double n = kSamples;
  return u - n * n / 2 > 1.959964 * std::sqrt(n * n * (2 * n + 1) / 12);
}

std::vector<Judgement> stored_numbers(const std::vector<SimCase>& suite, const Limits& limits) {
  constexpr size_t kStored = 3;
  const auto evidence = [](std::span<const double> logs) {
    return Evidence{mean(logs), stddev(logs), static_cast<int>(logs.size())};
  };
  std::vector<Question> family;
  for (const SimCase& c : suite) {
    family.push_back(
        {evidence(std::span(c.base).first(kStored)), evidence(std::span(c.head).first(kStored))});
  }
  return judge_family(family, limits);
}

std::vector<Judgement> paired_screen(SimWorld& world, const std::vector<SimCase>& suite,
                                     const Limits& limits, const ReplayPlan& plan) {
  std::vector<PairedQuestion> family;
  for (const SimCase& c : suite) {
    family.push_back(world.rounds(c, world.replay(c), plan.screen_rounds));
  }
  return screen(family, limits);
}

struct Replayed {
  Fails fails;
  size_t cases = 0, extended = 0;
};

Replayed replay(SimWorld& world, const std::vector<SimCase>& suite,
                const std::vector<Judgement>& screened, const Limits& limits,
                const ReplayPlan& plan) {
  const auto rows = suspects(screened);
  std::vector<double> differences;
  std::vector<PairedQuestion> family, again;
  for (const size_t i : rows) {
    differences.push_back(world.replay(suite[i]));
    family.push_back(world.rounds(suite[i], differences.back(), plan.rounds));
  }
  const Confirmed first = confirm(family, limits, plan);
  for (const size_t k : first.undecided) {
    again.push_back(world.rounds(suite[rows[k]], differences[k], plan.extra_rounds));
  }
  const auto judged = extend(first, again, limits);
  Replayed result{Fails(suite.size()), rows.size(), again.size()};
  for (size_t k = 0; k < rows.size(); ++k) {
    result.fails[rows[k]] = judged[k].outcome == Outcome::regressed;
  }
  return result;
}

// ---- counting

struct Tally {
  size_t suites = 0, failed_suites = 0, false_fails = 0, replayed = 0, extended = 0;
  std::array<size_t, kSlowDowns.size()> slowed{}, caught{};

  void add(const std::vector<SimCase>& suite, const Replayed& r) {
    size_t wrong = 0;
    for (size_t i = 0; i < suite.size(); ++i) {
      if (suite[i].shift == 0) {
        wrong += r.fails[i];
      } else {
        ++slowed.at(suite[i].kind);
        caught.at(suite[i].kind) += r.fails[i];
      }
    }
    ++suites;
    false_fails += wrong;
    failed_suites += wrong > 0;
    replayed += r.cases;
    extended += r.extended;
  }
  double per_suite(size_t count) const {
    return static_cast<double>(count) / static_cast<double>(suites);
  }
  double power(size_t kind) const {
    return static_cast<double>(caught.at(kind)) / static_cast<double>(slowed.at(kind));
  }
};

enum Rule { kBestOfFive, kFivePercent, kUTest, kStoredAlone, kNightly, kPairs, kRules };
constexpr std::array<const char*, kRules> kNames{
    "fixed 5 %, best of 5 processes", "fixed 5 %, one process",
    "U-test .05, one process",        "stored numbers alone",
    "stored numbers, then replay",    "4 paired rounds, then replay"};
using Tallies = std::array<Tally, kRules>;

constexpr size_t kSuites = 120;

Tallies simulate(const Noise& noise, size_t suites, size_t slowed_of_each) {
  const Limits limits = Limits::cuda();
  const ReplayPlan plan;
  SimWorld world(noise);
  Tallies t;
  for (size_t s = 0; s < suites; ++s) {
    const auto suite = world.suite({kSlowDowns.begin(), kSlowDowns.end()}, slowed_of_each);
    const auto stored = stored_numbers(suite, limits);
    Fails alone;
    for (const Judgement& j : stored) alone.push_back(j.outcome == Outcome::regressed);
    const auto paired = paired_screen(world, suite, limits, plan);
    t[kBestOfFive].add(suite, {each(suite, best_of_five)});
    t[kFivePercent].add(suite, {each(suite, five_percent)});
    t[kUTest].add(suite, {each(suite, [&](const SimCase& c) { return u_test(world, c); })});
    t[kStoredAlone].add(suite, {alone});
    t[kNightly].add(suite, replay(world, suite, stored, limits, plan));
    t[kPairs].add(suite, replay(world, suite, paired, limits, plan));
  }
  return t;
}

void print(const Tallies& unchanged, const Tallies& slowed) {
  fmt::print("{:30} {:>15} {:>10} {:>6} {:>6} {:>6} {:>9} {:>9}\n", "rule", "false/suite",
             "P(any) %", "+2 %", "+3 %", "+5 %", "replayed", "extended");
  for (size_t r = 0; r < kRules; ++r) {
    const Tally &u = unchanged[r], &s = slowed[r];
    fmt::print("{:30} {:15.3f} {:10.1f} {:6.1f} {:6.1f} {:6.1f} {:9.1f} {:9.1f}\n", kNames[r],
               u.per_suite(u.false_fails), 100 * u.per_suite(u.failed_suites), 100 * s.power(0),
               100 * s.power(1), 100 * s.power(2), u.per_suite(u.replayed),
               u.per_suite(u.extended));
  }
}

/// Only the replayed comparison, screened by paired rounds.
Tally simulate_pairs(const Noise& noise, const Limits& limits, size_t suites, double slow_down,
                     size_t slowed) {
  const ReplayPlan plan;
  SimWorld world(noise);
  Tally t;
  for (size_t s = 0; s < suites; ++s) {
    const auto suite = world.suite({slow_down}, slowed);
    t.add(suite, replay(world, suite, paired_screen(world, suite, limits, plan), limits, plan));
  }
  return t;
}

Limits with(double margin, double fail_at) {
  Limits limits = Limits::cuda();
  limits.margin = margin;
  limits.fail_at = fail_at;
  return limits;
}

TEST(GateSimulation, UnchangedSuitesDoNotFailAndLossesAreCaught) {
  const Tallies unchanged = simulate({}, kSuites, 0);
  const Tallies slowed = simulate({}, kSuites / 4, 20);
  fmt::print("{} unchanged suites of {} cases; power in %\n", kSuites, kCases);
  print(unchanged, slowed);
  for (const Rule r : {kNightly, kPairs}) {
    EXPECT_LE(unchanged[r].failed_suites, kSuites / 20) << kNames[r];
    EXPECT_GE(slowed[r].power(1), 0.9) << kNames[r];
    EXPECT_GE(slowed[r].power(2), 0.98) << kNames[r];
  }
  // What the simple rules do to an unchanged tree, or do not see.
  EXPECT_GE(unchanged[kUTest].failed_suites, kSuites * 99 / 100);
  EXPECT_GE(unchanged[kFivePercent].failed_suites, kSuites * 7 / 10);
  EXPECT_GE(unchanged[kBestOfFive].failed_suites, kSuites * 3 / 10);
  EXPECT_LE(slowed[kFivePercent].power(1), 0.2);
  EXPECT_LE(slowed[kBestOfFive].power(1), 0.2);
}

// Noise that the rule does not assume: wild processes, cases that differ by orders of magnitude,
// spreads far from the limits' prior.
TEST(GateSimulation, UnchangedSuitesDoNotFailUnderOtherNoise) {
  constexpr size_t suites = kSuites / 4;
  const std::array<Noise, 4> noises{Noise{.heavy = true}, Noise{.disturbed = 0.01, .heavy = true},
                                    Noise{.process = 0.001, .cases = 1, .noisiest = 0.1},
                                    Noise{.process = 0.015}};
  for (const Noise& n : noises) {
    for (const Limits& limits : {with(0.01, 0.02), with(0.003, 0.007)}) {
      const Tally t = simulate_pairs(n, limits, suites, 0, 0);
      fmt::print(
          "process sd {:.2f} %, over cases x e^{}, {:.0f} % disturbed, heavy {}, fail at "
          "{:.1f} %: {} of {} unchanged suites fail, {:.0f} cases replayed, {:.0f} extended\n",
          100 * n.process, n.cases, 100 * n.disturbed, n.heavy, 100 * limits.fail_at,
          t.failed_suites, suites, t.per_suite(t.replayed), t.per_suite(t.extended));
      EXPECT_LE(t.failed_suites, suites / 20);
    }
  }
}

// The hardest null: every case slower by exactly the margin, and no second hurdle. Counts failing
// cases, of which a suite may have .05.
TEST(GateSimulation, LossesOfTheMarginFailAtTheStatedRate) {
  constexpr size_t suites = kSuites / 2;
  const Tally t = simulate_pairs({.sides = 0}, with(0.01, 0.01), suites, 0.01, kCases);
  fmt::print("all cases slower by the margin: {} fail in {} suites\n", t.caught[0], suites);
  EXPECT_LE(t.caught[0], suites / 10);
}

// The estimate must reach fail_at, so a loss of just that is caught little more than every second
// time however many rounds there are; fail_at goes below what must always be caught.
TEST(GateSimulation, SmallLossesOnAQuietMachine) {
  const auto caught = [](double process, const Limits& limits, double slow_down) {
    const Noise noise{.process = process, .cases = 0};
    const double power = simulate_pairs(noise, limits, kSuites / 20, slow_down, 20).power(0);
    fmt::print(
        "process sd {:.1f} %, margin {:.1f} %, fail at {:.1f} %: {:+.1f} % caught in {:.1f} %\n",
        100 * process, 100 * limits.margin, 100 * limits.fail_at, 100 * slow_down, 100 * power);
    return power;
  };
  for (const double process : {0.003, 0.005}) {
    EXPECT_GE(caught(process, with(0.01, 0.02), 0.025), 0.95);
    EXPECT_LE(caught(process, with(0.01, 0.02), 0.02), 0.8);
    EXPECT_GE(caught(process, with(0.01, 0.015), 0.02), 0.95);
    EXPECT_GE(caught(process, with(0.003, 0.007), 0.01), process < 0.004 ? 0.9 : 0.7);
  }
}

}  // namespace
}  // namespace moegate::test
