// SPDX-License-Identifier: Apache-2.0
// The rule over a few processes a side: false fails and power under noise of several kinds.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "harness/judge/verdict.h"
#include "tests/simulation/draws.h"

namespace moegate::test {
namespace {

struct Noise {
  double sd;           // typical, between processes
  double case_spread;  // log sd of a case's own sd: some cases are much noisier than others
  double session;      // case x session effect, as a share of the case's sd
  double outliers;     // share of processes disturbed by +20 % to +150 %
  bool heavy;          // Student t with 3 degrees of freedom instead of normal
};

std::vector<double> side(Draws& draws, const Noise& noise, double sd, double shift, int processes) {
  const double session = noise.session * sd * draws.normal();
  std::vector<double> levels;
  for (int i = 0; i < processes; ++i) {
    const double z = noise.heavy ? draws.student3() / std::sqrt(3.0) : draws.normal();
    double log_level = shift + session + sd * z;
    if (draws.uniform() < noise.outliers) log_level += std::log(1.2 + 1.3 * draws.uniform());
    levels.push_back(std::exp(log_level));
  }
  return levels;
}

struct Tally {
  int failed_suites = 0, false_fails = 0, caught = 0, slowed = 0;
};

Tally simulate(const Noise& noise, const Limits& limits, int suites, int cases, int slowed,
               double slow_down) {
  Draws draws(20261121);
  Tally tally;
  for (int s = 0; s < suites; ++s) {
    std::vector<Question> family;
    for (int c = 0; c < cases; ++c) {
      const double sd = noise.sd * std::exp(noise.case_spread * draws.normal());
      const double shift = c < slowed ? std::log(slow_down) : 0;
      const auto base = side(draws, noise, sd, 0, 3);
      const auto head = side(draws, noise, sd, shift, 3);
      family.push_back({Evidence::of(base), Evidence::of(head)});
    }
    const auto judged = judge_family(family, limits);
    int fails = 0;
    for (int c = 0; c < cases; ++c) {
      const bool regressed = judged[static_cast<size_t>(c)].outcome == Outcome::regressed;
      if (c < slowed) {
        tally.caught += regressed;
        ++tally.slowed;
      } else {
        fails += regressed;
      }
    }
    tally.false_fails += fails;
    tally.failed_suites += fails > 0;
  }
  return tally;
}

constexpr int kSuites = 200, kCases = 60;

TEST(ProcessesSimulation, AnUnchangedTreeDoesNotFailOnANoisyHost) {
  for (const double sd : {0.01, 0.04, 0.08, 0.15, 0.4}) {
    const Noise noise{sd, 0.7, 0.3, 0.03, true};
    const Tally t = simulate(noise, Limits::host(), kSuites, kCases, 0, 1);
    EXPECT_LE(t.failed_suites, kSuites / 20) << "sd " << sd << ", " << t.false_fails << " fails";
  }
}

TEST(ProcessesSimulation, AnUnchangedTreeDoesNotFailOnAGpu) {
  for (const double sd : {0.001, 0.003, 0.006, 0.01, 0.03}) {
    const Noise noise{sd, 0.5, 0.3, 0.01, true};
    const Tally t = simulate(noise, Limits::cuda(), kSuites, kCases, 0, 1);
    EXPECT_LE(t.failed_suites, kSuites / 20) << "sd " << sd << ", " << t.false_fails << " fails";
  }
}

TEST(ProcessesSimulation, FivePercentIsCaughtOnAGpu) {
  const Noise noise{0.003, 0.3, 0.3, 0, false};
  const Tally t = simulate(noise, Limits::cuda(), kSuites, kCases, 3, 1.05);
  EXPECT_GE(t.caught, t.slowed * 97 / 100) << t.caught << " of " << t.slowed;
  EXPECT_LE(t.failed_suites, kSuites / 20);
}

TEST(ProcessesSimulation, FivePercentIsCaughtInALargeNight) {
  const Noise noise{0.003, 0.3, 0.3, 0, false};
  const Tally t = simulate(noise, Limits::cuda(), 5, 3000, 100, 1.05);
  EXPECT_GE(t.caught, t.slowed * 9 / 10) << t.caught << " of " << t.slowed;
}

TEST(ProcessesSimulation, TwiceAsSlowIsCaughtOnAHost) {
  const Noise noise{0.04, 0.3, 0.3, 0, true};
  const Tally t = simulate(noise, Limits::host(), kSuites, kCases, 3, 2);
  EXPECT_GE(t.caught, t.slowed * 95 / 100) << t.caught << " of " << t.slowed;
}

}  // namespace
}  // namespace moegate::test
