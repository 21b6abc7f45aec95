// SPDX-License-Identifier: Apache-2.0
// Two sets of processes and limits -> an outcome with a sentence why. Pure functions; knows neither
// stores nor files. The unit of evidence is a process: samples inside one are cheap and correlated.
#pragma once

#include <array>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "harness/values/device_facts.h"

namespace moegate {

/// Quantiles of distributions, each computed once: the rows of a family ask for the same few, and
/// one takes as long as reading a result.
class Quantiles {
 public:
  /// Student's t with `df` degrees of freedom that is exceeded with probability `p`.
  double student(double df, double p);
  /// Whether an F of these degrees of freedom exceeds `ratio` with a probability below `p`.
  bool is_beyond(double ratio, double df1, double df2, double p);

 private:
  using Key = std::array<double, 3>;  // what was asked
  std::map<Key, double> students_, fishers_;
};

/// `fresh` is written "new": the run has the row, and there is none to compare it with. Where
/// its suite has a baseline the row is left open like an inconclusive one. identical: the machine
/// code and its launch did not change, so nothing needs timing. waived: regressed within the bound
/// of an active waiver.
enum class Outcome {
  pass,
  regressed,
  improved,
  inconclusive,
  wrong,
  missing,
  fresh,
  environment,
  identical,
  waived
};
template <>
inline constexpr std::array kNames<Outcome> = {"pass",      "regressed", "improved", "inconclusive",
                                               "wrong",     "missing",   "new",      "environment",
                                               "identical", "waived"};

/// What the processes of one side say about a row: the log of their levels, summarised.
struct Evidence {
  double mean_log = 0;
  double sd_log = 0;  // between processes; 0 for fewer than two
  int n = 0;          // processes

  static Evidence of(std::span<const double> levels);  // positive levels, one per process
  double level() const;                                // their geometric mean; 0 for none
};

/// What counts as slower, and what is known about noise before looking.
struct Limits {
  double margin;    // null hypothesis: slower by at most this share
  double fail_at;   // a regression fails from this estimate
  double alpha;     // family-wise error rate
  double prior_sd;  // expected standard deviation of a process's log level
  double prior_df;  // how many degrees of freedom that expectation is worth
  double blind_at;  // a row that cannot see this change is blind

  /// GPU spans: processes on one H200 differ by 0.1 %, with fresh allocations by up to 0.4 %. An
  /// estimate of 1.5 %, because half the estimates of a true 2 % are below 2 %.
  static Limits cuda() {
    return {.margin = 0.01,
            .fail_at = 0.015,
            .alpha = 0.05,
            .prior_sd = 0.003,
            .prior_df = 6,
            .blind_at = 0.05};
  }
  /// Ratios to the yardstick on a shared host: a true 20 % fails.
  static Limits host() {
    return {.margin = 0.10,
            .fail_at = 0.15,
            .alpha = 0.05,
            .prior_sd = 0.04,
            .prior_df = 6,
            .blind_at = 0.50};
  }
  static Limits of(Backend backend) { return backend == Backend::host ? host() : cuda(); }
};

/// Two devices of one model differ; added to the standard error when the sides come from different
/// ones and too few rows show by how much (device_spread.h). Same-model GPUs spread by some percent
/// (Sinha et al., SC 2022); over the 308 rows of the nightly suite, two pairs of H200s differed
/// with sd 0.7 and 1.0 %, at most 4.2 %.
constexpr double kBetweenDevicesSd = 0.02;

/// One row with both sides; n > 0 on both.
struct Question {
  Evidence base, head;
  double tick = 0;      // of the timer, as a share of the level; the margin is at least two
  double extra_sd = 0;  // of sides from different devices: kBetweenDevicesSd, or as measured
  double extra_df = 0;  // of extra_sd; 0: it is assumed and counts as known
};

/// The answer. Shares: 0.02 is 2 % slower than base.
struct Judgement {
  Outcome outcome = Outcome::inconclusive;
  double effect = 0;         // head / base - 1
  double low = 0, high = 0;  // one-sided 95 % bounds of the effect
  double se = 0, df = 0;     // standard error of log(1 + effect), and its degrees of freedom
  double robust = 0;  // Hodges-Lehmann estimate of the effect over paired rounds; for comparison
  double p = 1, p_adjusted = 1;  // of "slower by more than the margin"; Holm over the family
  double p_faster = 1;           // of "faster by more than the margin", for this row alone
  double mde = 0;  // smallest slow-down that would fail with probability 0.9; 0: none can
  bool blind = false;
  std::string why;  // one sentence with the numbers
};

/// Judges all rows of a run together, because every further row is a further chance of a false
/// alarm. A row fails when its adjusted p is at most alpha and its estimate at least fail_at. A
/// row with one process on a side is inconclusive: nothing is known about its spread.
std::vector<Judgement> judge_family(std::span<const Question> family, const Limits& limits);

/// One row measured by both sides in the same rounds, one after the other (replay_rule.h): whatever
/// a round's hour and machine do, they do to both.
struct PairedQuestion {
  std::vector<double> log_ratios;  // log(head / base), one per round
  double tick = 0;                 // of the timer, as a share of the level
  /// The same of plain means, of the rounds where both sides state them.
  std::vector<double> mean_log_ratios;
  /// The logs behind log_ratios, of each side.
  std::vector<double> base_logs, head_logs;
};

/// Like judge_family, over paired rounds: the mean log ratio against its moderated spread over
/// rounds. A family of ten or more fits its own prior (fit_prior), never quieter than half of what
/// limits.prior_sd says; a smaller one takes the limits' (a ratio of two processes has sqrt(2)
/// times the sd of one). No effect of the run is added: both sides share the rounds. A row with
/// fewer than two rounds is inconclusive.
std::vector<Judgement> judge_pairs(std::span<const PairedQuestion> family, const Limits& limits);

/// What is said of a row's tail, which never makes it better: regressed, or inconclusive where
/// it passed.
void worsen(Judgement& level, Outcome tail, const std::string& why);

/// "+2.3 %"
std::string percent(double share);
/// "about 3.6 times slower, not certain", "about 12 % faster, not certain"; of an effect > -1.
std::string uncertain(double effect);
/// "1.5 %": a limit, not an effect, so without sign.
std::string limit(double share);

}  // namespace moegate
