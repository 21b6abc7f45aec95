// SPDX-License-Identifier: Apache-2.0
#include "harness/worker/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/base/stats.h"

namespace moegate {

StoppingRule::StoppingRule(const Sampling& sampling, Backend backend)
    : sampling_(sampling),
      wanted_(sampling.precision > 0     ? sampling.precision
              : backend == Backend::host ? 0.02
                                         : 0.005) {}

int StoppingRule::next_batch(int taken, int least, double sample_s, double random) const {
  constexpr double kUsual = 100, kMost = 400, kBatch_s = 0.012;
  const double size = sample_s > 0 ? std::clamp(kBatch_s / sample_s, kUsual, kMost) : kUsual;
  const auto some = static_cast<int>(std::lround(size * (0.75 + 0.5 * random)));
  return std::min(some, std::max(least, sampling_.max_samples - taken));
}

bool StoppingRule::is_spent(int taken, double seconds) const {
  return taken >= sampling_.max_samples || seconds > sampling_.budget_s;
}

int StoppingRule::enough(bool spent) const {
  constexpr int kFewest = 50;
  return spent ? std::min(sampling_.min_samples, kFewest) : sampling_.min_samples;
}

bool StoppingRule::are_enough(int samples, bool spent) const {
  return samples >= enough(spent);
}

bool StoppingRule::is_precise(const Result& summary) const {
  return uncertainty(summary) <= wanted_;
}

void StoppingRule::judge_imprecise(Result& summary) const {
  summary.status = Status::noisy;
  summary.why = fmt::format(
      "95 % interval of the {} is ± {:.2f} % after {} samples (wanted: ± {:.2f} % after {})",
      summary.ratio > 0 ? "median ratio" : "trimmed mean", 100 * uncertainty(summary),
      summary.samples, 100 * wanted_, enough(true));
}

namespace {

constexpr double kMaxInvalidShare = 0.05;  // more is status noisy or bad_timer
// On the host the scheduler's own tick flags some samples of every long launch, and leaving them
// out is all that is needed; only most of them are too many.
constexpr double kMaxPreemptedShare = 0.5;
constexpr double kMaxInterference = 0.05;

std::vector<double> column(const std::vector<Sample>& samples, double Sample::*field) {
  std::vector<double> values;
  for (const Sample& s : samples) {
    if (s.flags == 0) values.push_back(s.*field);
  }
  return values;
}

}  // namespace

double median_clock(const std::vector<Sample>& samples) {
  std::vector<double> mhz;
  for (const Sample& s : samples) {
    if (s.sm_mhz > 0) mhz.push_back(s.sm_mhz);
  }
  return mhz.empty() ? 0 : median(mhz);
}

double uncertainty(const Result& result) {
  if (result.samples < 2) return std::numeric_limits<double>::infinity();
  if (result.ratio > 0) return 0.5 * (result.ratio_high - result.ratio_low) / result.ratio;
  const std::vector<double> spans(result.spans_ns.begin(), result.spans_ns.end());
  const Interval interval = trimmed_mean_interval(spans);
  return 0.5 * (interval.high - interval.low) / result.span_ns;
}

void summarise(const std::vector<Sample>& samples, Result& result) {
  result.flags = 0;
  result.slow = 0;
  for (const Sample& s : samples) {
    result.flags |= s.flags;
    result.slow += s.flags == kSlowClock;
  }
  const auto spans = column(samples, &Sample::span_ns);
  result.samples = static_cast<int>(spans.size());
  result.invalid = static_cast<int>(samples.size() - spans.size());
  result.spans_ns.assign(spans.begin(), spans.end());
  if (spans.empty()) return;
  result.span_ns = trimmed_mean(spans);
  result.mean_ns = mean(spans);
  result.median_ns = median(spans);
  const Interval interval = median_interval(spans);
  result.low_ns = interval.low;
  result.high_ns = interval.high;
  result.min_ns = *std::min_element(spans.begin(), spans.end());
  result.busy_ns = trimmed_mean(column(samples, &Sample::busy_ns));
  result.sum_ns = trimmed_mean(column(samples, &Sample::sum_ns));
  result.sm_mhz = median_clock(samples);
  const auto yard = column(samples, &Sample::yard_ns);
  if (!(yard[0] > 0)) return;  // this timer pairs nothing
  std::vector<double> ratios;
  for (size_t i = 0; i < spans.size(); ++i) ratios.push_back(spans[i] / yard[i]);
  const Interval paired = median_interval(ratios);
  result.ratio = median(ratios);
  result.mean_ratio = result.mean_ns / mean(yard);
  result.ratio_low = paired.low;
  result.ratio_high = paired.high;
}

void judge_samples(bool host, Result& result) {
  const int all = result.samples + result.invalid;
  const double most = (host ? kMaxPreemptedShare : kMaxInvalidShare) * all;
  if (result.samples > 0 && result.invalid <= most) return;
  if (result.samples > 0 && result.invalid - result.slow <= most) {
    result.status = Status::noisy;
    result.why = fmt::format(
        "{} of {} samples are below 95 % of the median SM clock, {:.0f} MHz: at the power limit?",
        result.slow, all, result.sm_mhz);
    return;
  }
  result.status = host && result.samples > 0 ? Status::noisy : Status::bad_timer;
  result.why = fmt::format("{} of {} samples are invalid ({})", result.invalid, all,
                           describe_flags(result.flags));
}

void judge_interference(double share, Result& result) {
  if (share <= kMaxInterference) return;
  result.status = Status::noisy;
  result.why = fmt::format("the machine was busy: threads had no core for {:.0f} % of their time",
                           100 * share);
}

}  // namespace moegate
