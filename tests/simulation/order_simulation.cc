// SPDX-License-Identifier: Apache-2.0
// The order of the sides and the rounds that are measured again, under noise that the rows of a
// process share; beside the fixed order ABBA, which the gate had first. Prints the table.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <vector>

#include "harness/judge/replay_rule.h"
#include "tests/simulation/gate_world.h"

namespace moegate::test {
namespace {

constexpr size_t kRows = 300, kSlowed = 30, kUnchangedSuites = 60, kSlowedSuites = 6;

struct Share {
  double false_fails = 0;  // of unchanged suites, those in which a row fails
  double power = 0;        // of the slowed rows, those that fail
  double repeated = 0;     // rounds measured again, per suite
};

/// What became of the rows of a suite.
struct Counts {
  size_t unchanged_fail = 0, slowed_fail = 0, slowed_pass = 0;
};

/// Screen, confirm, extend, as AbSession does.
Counts compare(SimWorld& world, const std::vector<SimCase>& suite, Order order,
               const Limits& limits) {
  const ReplayPlan plan;
  const double far = far_off(limits);
  std::vector<const SimCase*> rows;
  std::vector<double> differences;
  for (const SimCase& c : suite) {
    rows.push_back(&c);
    differences.push_back(world.replay(c));
  }
  const auto keep = [&](const std::vector<size_t>& indices) {
    std::vector<const SimCase*> kept;
    std::vector<double> of_kept;
    for (const size_t i : indices) {
      kept.push_back(rows[i]);
      of_kept.push_back(differences[i]);
    }
    return std::pair{kept, of_kept};
  };
  const auto screened =
      judge_pairs(world.together(rows, differences, plan.screen_rounds, order, far), limits);
  Counts counts;
  for (const SimCase& c : suite) counts.slowed_pass += c.shift != 0;
  std::tie(rows, differences) = keep(suspects(screened));
  if (rows.empty()) return counts;
  Confirmed first =
      confirm(world.together(rows, differences, plan.rounds, order, far), limits, plan);
  const auto [open, of_open] = keep(first.undecided);
  std::vector<PairedQuestion> again;
  if (!open.empty()) again = world.together(open, of_open, plan.extra_rounds, order, far);
  const auto judged = extend(std::move(first), again, limits);
  for (size_t i = 0; i < rows.size(); ++i) {
    const bool fails = judged[i].outcome == Outcome::regressed;
    if (rows[i]->shift == 0) {
      counts.unchanged_fail += fails;
    } else {
      counts.slowed_fail += fails;
      counts.slowed_pass -= judged[i].outcome != Outcome::pass;
    }
  }
  return counts;
}

Share simulate(const Noise& noise, Order order, double slow_down) {
  const Limits limits = Limits::cuda();
  Share share;
  SimWorld world(noise);
  for (size_t s = 0; s < kUnchangedSuites; ++s) {
    const Counts counts = compare(world, world.suite({}, 0, kRows), order, limits);
    share.false_fails += counts.unchanged_fail > 0;
  }
  share.repeated = static_cast<double>(world.repeated()) / kUnchangedSuites;
  share.false_fails /= kUnchangedSuites;
  for (size_t s = 0; s < kSlowedSuites; ++s) {
    const auto suite = world.suite({slow_down}, kSlowed, kRows);
    const Counts counts = compare(world, suite, order, limits);
    share.power += static_cast<double>(counts.slowed_fail) / (kSlowed * kSlowedSuites);
  }
  return share;
}

struct Line {
  const char* what;
  Noise noise;
  double slow_down, least_power;
};

// A load as large as what is looked for leaves it open; it must not fail what did not change.
TEST(OrderSimulation, WhatTheRowsOfAProcessShareFailsNoUnchangedSuite) {
  const std::vector<Line> lines = {
      {"none", {.process = 0.003}, 0.02, 0.95},
      {"1 % shared by a process's rows", {.process = 0.003, .shared = 0.01}, 0.02, 0.3},
      {"2 % of processes wild", {.process = 0.003, .wild = 0.02}, 0.02, 0.85},
      {"10 % of processes wild", {.process = 0.003, .wild = 0.1}, 0.02, 0.25},
      {"sine 2 %, period 4", {.process = 0.003, .wave = 0.02, .period = 4}, 0.05, 0.3},
      {"sine 2 %, period 7", {.process = 0.003, .wave = 0.02, .period = 7}, 0.02, 0.3},
      {"sine 20 %, period 4", {.process = 0.003, .wave = 0.2, .period = 4}, 0.05, 0},
      {"load of 2 % in one side's slots of ABBA", {.process = 0.003, .in_step = 0.02}, 0.05, 0.3},
      {"load of 20 % there", {.process = 0.003, .in_step = 0.2}, 0.05, 0},
  };
  fmt::print("{} rows; unchanged suites that fail, and slower rows caught, in %\n", kRows);
  fmt::print("{:40} {:>6} {:>6} {:>7} | {:>6} {:>7} {:>9}\n", "noise", "slower", "ABBA", "caught",
             "random", "caught", "repeated");
  for (const Line& line : lines) {
    const Share before = simulate(line.noise, Order::abba, line.slow_down);
    const Share now = simulate(line.noise, Order::random, line.slow_down);
    fmt::print("{:40} {:6.1f} {:6.1f} {:7.1f} | {:6.1f} {:7.1f} {:9.1f}\n", line.what,
               100 * line.slow_down, 100 * before.false_fails, 100 * before.power,
               100 * now.false_fails, 100 * now.power, now.repeated);
    EXPECT_LE(now.false_fails, 0.05) << line.what;
    EXPECT_GE(now.power, line.least_power) << line.what;
  }
}

// What is measured again must not excuse a head that is slow in some of its processes.
TEST(OrderSimulation, AHeadThatIsSlowNowAndThenDoesNotPass) {
  for (const double by : {0.3, 1.0}) {
    const Noise noise{.process = 0.003, .slow_head = 0.3, .slow_head_by = by};
    SimWorld world(noise);
    constexpr size_t suites = 20;
    size_t fail = 0, pass = 0;
    for (size_t s = 0; s < suites; ++s) {
      // Every row counts as slowed: its own shift is next to nothing.
      const auto suite = world.suite({1e-9}, kRows, kRows);
      const Counts counts = compare(world, suite, Order::random, Limits::cuda());
      fail += counts.slowed_fail;
      pass += counts.slowed_pass;
    }
    constexpr double all = suites * kRows;
    fmt::print(
        "3 of 10 head processes slower by {:.0f} %: {:.0f} % fail, {:.0f} % pass, "
        "{:.1f} rounds repeated\n",
        100 * by, 100 * static_cast<double>(fail) / all, 100 * static_cast<double>(pass) / all,
        static_cast<double>(world.repeated()) / suites);
    EXPECT_LE(static_cast<double>(pass), 0.4 * all);
  }
}

}  // namespace
}  // namespace moegate::test
