// SPDX-License-Identifier: Apache-2.0
// A simulated machine and its unchanged and slower kernels. A process is a log level; samples are
// drawn only for a rule that compares samples.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "harness/judge/verdict.h"

namespace moegate {

/// What disturbs an unchanged kernel, as standard deviations of log times.
struct Noise {
  double process = 0.0045;  // between processes of the typical case
  double cases = 0.6;       // log sd of that over the cases
  double noisiest = 0.03;   // its cap, reached by one case in a thousand
  double night = 0.005;     // all cases of a night together
  double session = 0.6;     // case x session, as a share of the case's process sd
  double sides = 0.001;     // case x side of one replay: the rest of it is shared
  double disturbed = 0;     // share of processes that are 20 to 150 % slower
  bool heavy = false;       // processes by Student's t with 3 df instead of normal
};

// Within a process: noise, and 2 % of the samples 10 to 50 % slower.
inline constexpr double kSampleSd = 0.01, kOutliers = 0.02;
inline constexpr int kSamples = 50;
inline constexpr size_t kCases = 1000, kProcesses = 5;

struct SimCase {
  double sd;                                  // between processes
  double shift;                               // log slow-down of the head
  size_t kind;                                // index among the slow-downs; beyond: unchanged
  std::array<double, kProcesses> base, head;  // log levels of two nights
};

/// Draws the same on every platform: own transforms, one draw per statement.
class SimWorld {
 public:
  explicit SimWorld(const Noise& noise) : noise_(noise), random_(20261121) {}

  /// The first `of_each` cases are slower by the first of `slow_downs` (0.02: 2 %), and so on.
  std::vector<SimCase> suite(const std::vector<double>& slow_downs, size_t of_each) {
    const double base_night = noise_.night * normal(), head_night = noise_.night * normal();
    std::vector<SimCase> cases(kCases);
    for (size_t i = 0; i < kCases; ++i) {
      SimCase& c = cases[i];
      c.sd = std::min(noise_.noisiest, noise_.process * std::exp(noise_.cases * normal()));
      c.kind = of_each == 0 ? slow_downs.size() : std::min(i / of_each, slow_downs.size());
      c.shift = c.kind < slow_downs.size() ? std::log1p(slow_downs[c.kind]) : 0;
      const double base = base_night + noise_.session * c.sd * normal();
      const double head = head_night + noise_.session * c.sd * normal() + c.shift;
      for (double& level : c.base) level = base + process(c);
      for (double& level : c.head) level = head + process(c);
    }
    return cases;
  }

  /// A replay of this case: what its two sides will differ by in every round.
  double replay(const SimCase& c) { return c.shift + noise_.sides * normal(); }

  PairedQuestion rounds(const SimCase& c, double difference, int n) {
    PairedQuestion q;
    for (int i = 0; i < n; ++i) {
      const double base = process(c), head = process(c);
      q.log_ratios.push_back(difference + head - base);
      q.base_logs.push_back(base);
      q.head_logs.push_back(difference + head);
    }
    return q;
  }

  /// Log time of one sample in a process of that level.
  double sample(double level) {
    if (uniform() < kOutliers) level += std::log(1.1 + 0.4 * uniform());
    return level + kSampleSd * normal();
  }

 private:
  /// Effect of one process on its level, with what its samples leave of their own noise.
  double process(const SimCase& c) {
    double level = c.sd * (noise_.heavy ? student3() / std::sqrt(3.0) : normal());
    level += kSampleSd / std::sqrt(double{kSamples}) * normal();
    if (uniform() < noise_.disturbed) level += std::log(1.2 + 1.3 * uniform());
    return level;
  }
  double uniform() { return (static_cast<double>(random_() >> 11) + 0.5) * 0x1p-53; }
  double normal() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * M_PI * uniform());
  }
  double student3() {
    double chi2 = 0;
    for (int i = 0; i < 3; ++i) chi2 += std::pow(normal(), 2);
    return normal() / std::sqrt(chi2 / 3);
  }

  Noise noise_;
  std::mt19937_64 random_;
};

}  // namespace moegate
