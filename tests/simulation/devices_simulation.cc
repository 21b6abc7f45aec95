// SPDX-License-Identifier: Apache-2.0
// What the stored numbers of a class's other device say of a change. Prints the table.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "harness/base/rng.h"
#include "harness/judge/device_spread.h"
#include "harness/judge/verdict.h"

namespace moegate::test {
namespace {

constexpr double kMargin = 0.01;

/// Unchanged rows on pairs of devices, some of them slower by 5 %, judged on stored numbers.
struct Pairs {
  double sd;                            // of a row's own difference; tails as Student's t with 5 df
  int fails = 0;                        // of unchanged rows
  double caught = 0, blind_caught = 0;  // of the slower ones: now, and with an assumed 2 %

  explicit Pairs(double row_sd) : sd(row_sd) {
    for (uint64_t pair = 0; pair < kPairs; ++pair) measure(pair);
  }

 private:
  static constexpr uint64_t kPairs = 40;
  static constexpr size_t kRows = 300, kSlow = 10;
  uint64_t drawn_ = 0;

  double normal() { return random_normal(7, 0, drawn_++); }
  double student5() {
    double chi2 = 0;
    for (int i = 0; i < 5; ++i) chi2 += std::pow(normal(), 2);
    return normal() / std::sqrt(chi2 / 5) * std::sqrt(3.0 / 5);
  }
  Evidence side(double level) {
    constexpr int kProcesses = 5;
    std::vector<double> levels;
    for (int i = 0; i < kProcesses; ++i) levels.push_back(std::exp(level + 0.003 * normal()));
    return Evidence::of(levels);
  }
  void measure(uint64_t) {
    const double shift = 0.003 * normal();
    std::vector<Question> family(kRows);
    std::vector<OnTwoDevices> both;
    for (size_t i = 0; i < kRows; ++i) {
      const double slower = i < kSlow ? std::log(1.05) : 0;
      family[i].base = side(0);
      family[i].head = side(shift + sd * student5() + slower);
      const double se = std::sqrt(std::pow(family[i].base.sd_log, 2) / family[i].base.n +
                                  std::pow(family[i].head.sd_log, 2) / family[i].head.n);
      both.push_back({family[i].head.mean_log - family[i].base.mean_log, se, false});
    }
    const auto spread = device_spread(both, kMargin);
    for (Question& q : family) {
      q.base.mean_log += spread->shift;
      q.extra_sd = spread->sd;
      q.extra_df = spread->df;
    }
    count(family, fails, caught);
    for (Question& q : family) {
      q.base.mean_log -= spread->shift;
      q.extra_sd = kBetweenDevicesSd;
      q.extra_df = 0;
    }
    int ignored = 0;
    count(family, ignored, blind_caught);
  }
  static void count(const std::vector<Question>& family, int& failed, double& slow) {
    const auto judged = judge_family(family, Limits::cuda());
    for (size_t i = 0; i < judged.size(); ++i) {
      if (judged[i].outcome != Outcome::regressed) continue;
      if (i < kSlow) {
        slow += 1.0 / static_cast<double>(kSlow * kPairs);
      } else {
        ++failed;
      }
    }
  }
};

TEST(DevicesSimulation, StoredNumbersSeeOnAnotherDevice) {
  for (const double sd : {0.003, 0.005, 0.007, 0.01}) {
    const Pairs pairs(sd);
    fmt::print(
        "rows differ by {:.1f} %: {} of 40 x 290 unchanged rows fail, +5 % caught in {:.0f} %, "
        "with 2 % assumed in {:.0f} %\n",
        100 * sd, pairs.fails, 100 * pairs.caught, 100 * pairs.blind_caught);
    EXPECT_LE(pairs.fails, 2) << sd;
    EXPECT_GE(pairs.caught, sd <= 0.003 ? 0.9 : sd <= 0.005 ? 0.7 : pairs.blind_caught) << sd;
  }
}

}  // namespace
}  // namespace moegate::test
