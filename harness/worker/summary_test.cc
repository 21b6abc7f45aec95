// SPDX-License-Identifier: Apache-2.0
#include "harness/worker/summary.h"

#include <gtest/gtest.h>

namespace moegate::test {
namespace {

Sample sample(double span, double yard = 0, uint32_t flags = 0) {
  Sample s;
  s.span_ns = s.busy_ns = s.sum_ns = span;
  s.yard_ns = yard;
  s.flags = flags;
  return s;
}

TEST(Summarise, LeavesFlaggedSamplesOutButCountsThem) {
  std::vector<Sample> samples(100, sample(1000));
  samples.push_back(sample(1e9, 0, kSlowClock));
  samples.push_back(sample(0, 0, kBadTimestamp));
  samples.push_back(sample(0, 0, kBadTimestamp | kSlowClock));
  Result result;
  summarise(samples, result);
  EXPECT_EQ(result.samples, 100);
  EXPECT_EQ(result.invalid, 3);
  EXPECT_EQ(result.slow, 1);
  EXPECT_EQ(result.flags, uint32_t{kSlowClock | kBadTimestamp});
  EXPECT_DOUBLE_EQ(result.span_ns, 1000);
  EXPECT_EQ(result.spans_ns.size(), 100u);
  EXPECT_EQ(result.ratio, 0);  // nothing was paired
}

TEST(Summarise, PlainMeansSeeWhatFewLaunchesDo) {
  std::vector<Sample> samples(95, sample(1000, 2000));
  samples.insert(samples.end(), 5, sample(21000, 2000));
  Result result;
  summarise(samples, result);
  EXPECT_DOUBLE_EQ(result.span_ns, 1000);
  EXPECT_DOUBLE_EQ(result.ratio, 0.5);
  EXPECT_DOUBLE_EQ(result.mean_ns, 2000);
  EXPECT_DOUBLE_EQ(result.mean_ratio, 1);
}

/// Of 100 samples.
Status judged(bool host, int slow, int broken) {
  std::vector<Sample> samples(static_cast<size_t>(100 - slow - broken), sample(1000));
  samples.insert(samples.end(), static_cast<size_t>(slow), sample(1100, 0, kSlowClock));
  samples.insert(samples.end(), static_cast<size_t>(broken), sample(0, 0, kBadTimestamp));
  Result result;
  result.status = Status::ok;
  summarise(samples, result);
  judge_samples(host, result);
  return result.status;
}

TEST(JudgeSamples, ASlowClockAloneIsNoise) {
  EXPECT_EQ(judged(false, 5, 0), Status::ok);
  EXPECT_EQ(judged(false, 6, 0), Status::noisy);
  EXPECT_EQ(judged(false, 60, 5), Status::noisy);
  EXPECT_EQ(judged(false, 4, 4), Status::noisy);
}

TEST(JudgeSamples, OtherReasonsAreABadTimer) {
  EXPECT_EQ(judged(false, 0, 5), Status::ok);
  EXPECT_EQ(judged(false, 0, 6), Status::bad_timer);
  EXPECT_EQ(judged(false, 60, 6), Status::bad_timer);
  EXPECT_EQ(judged(false, 100, 0), Status::bad_timer);  // nothing is left to be reported
  EXPECT_EQ(judged(true, 0, 50), Status::ok);
  EXPECT_EQ(judged(true, 0, 51), Status::noisy);
  EXPECT_EQ(judged(true, 0, 100), Status::bad_timer);
}

TEST(JudgeSamples, AHostThatWasNeverQuietIsABadTimerOfItsOwnKind) {
  Result result;
  result.status = Status::ok;
  summarise(std::vector<Sample>(100, sample(1000, 0, kPreempted)), result);
  judge_samples(true, result);
  EXPECT_TRUE(result.never_quiet());
  summarise(std::vector<Sample>(100, sample(0, 0, kPreempted | kBadTimestamp)), result);
  judge_samples(true, result);
  EXPECT_FALSE(result.never_quiet());
}

TEST(Summarise, PairsWithTheYardstick) {
  // The machine is twice as slow for the second half; the ratio does not see it.
  std::vector<Sample> samples(50, sample(800, 1000));
  samples.insert(samples.end(), 50, sample(1600, 2000));
  Result result;
  summarise(samples, result);
  EXPECT_DOUBLE_EQ(result.ratio, 0.8);
  EXPECT_DOUBLE_EQ(result.ratio_low, 0.8);
  EXPECT_DOUBLE_EQ(result.ratio_high, 0.8);
}

TEST(Summarise, WithoutValidSamplesThereIsNoLatency) {
  Result result;
  summarise({sample(5, 0, kMissingRecord)}, result);
  EXPECT_EQ(result.samples, 0);
  EXPECT_EQ(result.span_ns, 0);
  EXPECT_EQ(describe_flags(result.flags), "missing or dropped records");
}

TEST(StoppingRule, SlowRowsNeedFewerInTheirTime) {
  const StoppingRule rule({.min_samples = 200}, Backend::cuda);
  EXPECT_FALSE(rule.are_enough(199, false));
  EXPECT_TRUE(rule.are_enough(200, false));
  EXPECT_TRUE(rule.are_enough(50, true)) << "their interval says how good they are";
  EXPECT_FALSE(rule.are_enough(49, true));
  EXPECT_TRUE(StoppingRule({.min_samples = 20}, Backend::cuda).are_enough(20, true));
}

TEST(StoppingRule, TimeOrNumberIsSpent) {
  const StoppingRule rule({.max_samples = 300, .budget_s = 0.5}, Backend::host);
  EXPECT_FALSE(rule.is_spent(299, 0.5));
  EXPECT_TRUE(rule.is_spent(300, 0));
  EXPECT_TRUE(rule.is_spent(0, 0.51));
}

TEST(StoppingRule, ABatchIsAbout100SamplesOr12Milliseconds) {
  const StoppingRule rule({.max_samples = 100000}, Backend::cuda);
  EXPECT_EQ(rule.next_batch(0, 8, 0, 0.5), 100);
  EXPECT_EQ(rule.next_batch(100, 8, 1e-3, 0), 75);
  EXPECT_EQ(rule.next_batch(100, 8, 60e-6, 0.5), 200);
  EXPECT_EQ(rule.next_batch(100, 8, 1e-6, 0.5), 400);
}

TEST(StoppingRule, ABatchHoldsEveryProblemAndNoMoreThanAreLeft) {
  const StoppingRule rule({.max_samples = 120}, Backend::cuda);
  EXPECT_EQ(rule.next_batch(100, 8, 0, 0.5), 20);
  EXPECT_EQ(rule.next_batch(118, 8, 0, 0.5), 8);
}

TEST(StoppingRule, TheIntervalIsAShareOfWhatIsJudged) {
  Result summary;
  summary.samples = 200;
  summary.ratio = 1, summary.ratio_low = 0.99, summary.ratio_high = 1.01;
  EXPECT_TRUE(StoppingRule({}, Backend::host).is_precise(summary));
  EXPECT_FALSE(StoppingRule({}, Backend::cuda).is_precise(summary));
  EXPECT_TRUE(StoppingRule({.precision = 0.1}, Backend::cuda).is_precise(summary));
  StoppingRule({}, Backend::cuda).judge_imprecise(summary);
  EXPECT_EQ(summary.status, Status::noisy);
  EXPECT_EQ(summary.why,
            "95 % interval of the median ratio is ± 1.00 % after 200 samples (wanted: ± 0.50 % "
            "after 50)");
}

TEST(JudgeInterference, AHostWhoseThreadsWaitedForACoreIsNoisy) {
  Result quiet, busy;
  judge_interference(0.05, quiet);
  EXPECT_EQ(quiet.status, Status::ok);
  judge_interference(0.06, busy);
  EXPECT_EQ(busy.status, Status::noisy);
  EXPECT_EQ(busy.why, "the machine was busy: threads had no core for 6 % of their time");
}

}  // namespace
}  // namespace moegate::test
