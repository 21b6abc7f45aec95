// SPDX-License-Identifier: Apache-2.0
// A simulated machine and its unchanged and slower kernels. A process is a log level; samples are
// drawn only for a rule that compares samples.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "harness/judge/replay_rule.h"
#include "tests/simulation/draws.h"

namespace moegate::test {

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

  // What all rows of a process share. Processes follow each other, one a slot of time.
  double shared = 0;        // between processes
  double wild = 0;          // share of processes that are 20 to 150 % slower
  double wave = 0;          // amplitude of a load that comes and goes as a sine
  double period = 4;        // of that, in processes
  double in_step = 0;       // load in the slots that ABBA gives to one side: 1 and 2 of every 4
  double slow_head = 0;     // share of the head's processes that are slower, in all rows
  double slow_head_by = 0;  // as a share
};

/// The order of the sides in a round.
enum class Order { abba, random };

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

class SimWorld : Draws {
 public:
  explicit SimWorld(const Noise& noise) : Draws(20261121), noise_(noise) {}

  /// The first `of_each` cases are slower by the first of `slow_downs` (0.02: 2 %), and so on.
  std::vector<SimCase> suite(const std::vector<double>& slow_downs, size_t of_each,
                             size_t size = kCases) {
    const double base_night = noise_.night * normal(), head_night = noise_.night * normal();
    std::vector<SimCase> cases(size);
    for (size_t i = 0; i < size; ++i) {
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

  /// The rows measured together, in processes that follow each other: one comparison. Rounds in
  /// which nearly all rows are off are measured again where the order is random.
  std::vector<PairedQuestion> together(const std::vector<const SimCase*>& rows,
                                       const std::vector<double>& differences, int n, Order order,
                                       double far) {
    std::vector<RoundsOfRow> levels(rows.size());
    const auto side = [&](int round, bool head) {
      const double effect = next_slot(head);
      for (size_t i = 0; i < rows.size(); ++i) {
        const double level = effect + process(*rows[i]) + (head ? differences[i] : 0);
        (head ? levels[i].head : levels[i].base)[round] = std::exp(level);
      }
    };
    const auto measure = [&](int round, bool base_first) {
      side(round, !base_first);
      side(round, base_first);
      return true;
    };
    const auto drop = [&](int round) {
      for (RoundsOfRow& row : levels) row.head.erase(round);
    };
    if (order == Order::abba) {
      for (int round = 0; round < n; ++round) measure(round, round % 2 == 0);
    } else {
      std::vector<WildProcess> repeated;
      const auto seed = static_cast<uint32_t>(bits());
      measure_rounds({measure, [&] { return levels; }, drop}, 0, n, seed, far, repeated);
      repeated_ += repeated.size();
    }
    return paired(levels);
  }
  /// Rounds measured again so far.
  size_t repeated() const { return repeated_; }

  /// Log time of one sample in a process of that level.
  double sample(double level) {
    if (uniform() < kOutliers) level += std::log(1.1 + 0.4 * uniform());
    return level + kSampleSd * normal();
  }

 private:
  static std::vector<PairedQuestion> paired(const std::vector<RoundsOfRow>& levels) {
    std::vector<PairedQuestion> family;
    for (const RoundsOfRow& row : levels) {
      PairedQuestion q;
      for (const auto& [round, head] : row.head) {
        q.log_ratios.push_back(std::log(head / row.base.at(round)));
      }
      family.push_back(std::move(q));
    }
    return family;
  }
  /// What the next process's rows share.
  double next_slot(bool head) {
    const auto slot = static_cast<double>(slot_++);
    double effect = noise_.shared * normal();
    effect += noise_.wave * std::sin(2 * M_PI * slot / noise_.period);
    const double in_four = std::fmod(slot, 4);
    if (in_four == 1 || in_four == 2) effect += noise_.in_step;
    if (uniform() < noise_.wild) effect += std::log(1.2 + 1.3 * uniform());
    if (head && uniform() < noise_.slow_head) effect += std::log1p(noise_.slow_head_by);
    return effect;
  }
  /// Effect of one process on its level, with what its samples leave of their own noise.
  double process(const SimCase& c) {
    double level = c.sd * (noise_.heavy ? student3() / std::sqrt(3.0) : normal());
    level += kSampleSd / std::sqrt(double{kSamples}) * normal();
    if (uniform() < noise_.disturbed) level += std::log(1.2 + 1.3 * uniform());
    return level;
  }

  Noise noise_;
  uint64_t slot_ = 0;
  size_t repeated_ = 0;
};

}  // namespace moegate::test
