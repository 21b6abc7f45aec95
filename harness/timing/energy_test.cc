// SPDX-License-Identifier: Apache-2.0
#include "harness/timing/energy.h"

#include <gtest/gtest.h>

#include <cmath>

namespace moegate::test {
namespace {

/// Readings every `poll_s` for a second of a counter that moves every `step_s`.
std::vector<EnergyReading> counted(double watts, double step_s, double poll_s) {
  std::vector<EnergyReading> readings;
  for (double at = 0; at < 1; at += poll_s) {
    readings.push_back({at, std::floor(at / step_s + 1e-9) * step_s * watts * 1e3});
  }
  return readings;
}

double value_of(const std::vector<Metric>& metrics, const std::string& name) {
  for (const Metric& m : metrics) {
    if (m.name == name) return m.value;
  }
  ADD_FAILURE() << "no metric " << name;
  return 0;
}

EnergyBatch batch(double times, double seconds, double watts) {
  return {.seconds = seconds,
          .times = times,
          .busy_s = seconds / times,
          .power = {.watts = watts, .step_mj = 20'000, .step_s = 0.05, .steps = 20}};
}

TEST(Energy, PowerIsTheSlopeBetweenSteps) {
  // The end of a window lies within a step of 45 J: as a plain difference that is 9 %.
  const auto power = power_of(counted(450, 0.1, 0.001), 0.25);
  ASSERT_TRUE(power);
  EXPECT_NEAR(power->watts, 450, 450 * 0.002);
  EXPECT_NEAR(power->step_mj, 45'000, 1);
  EXPECT_NEAR(power->step_s, 0.1, 0.001);
  EXPECT_EQ(power->steps, 7) << "0.3 to 0.9 s";
}

TEST(Energy, TwoStepsAreTooFew) {
  EXPECT_FALSE(power_of(counted(450, 0.4, 0.001), 0));
  EXPECT_FALSE(power_of(counted(450, 0.1, 0.001), 0.75));
  EXPECT_FALSE(power_of({}, 0));
}

TEST(Energy, TheStepAcrossTheStartIsNotCounted) {
  // Behind a pause of the readings the first step holds what was missed.
  const std::vector<EnergyReading> readings = {
      {0, 0}, {1, 9'000}, {1.1, 9'100}, {1.2, 9'200}, {1.3, 9'300}};
  const auto power = power_of(readings, 0.5);
  ASSERT_TRUE(power);
  EXPECT_NEAR(power->watts, 1, 1e-9);
  EXPECT_NEAR(power->step_mj, 100, 1e-9);
}

TEST(Energy, TheFlushIsSubtracted) {
  // 30 us at 400 W with a flush of 25 us at 380 W: 12 - 9.5 mJ in 5 us.
  const EnergyPair one{batch(40'000, 1.2, 400), batch(40'000, 1.0, 380)};
  EnergyPair other = one;
  other.flushes->power.watts = 384;  // 9.6 mJ
  const std::vector<Metric> metrics = energy_metrics(std::vector{one, other});
  EXPECT_NEAR(value_of(metrics, "energy_per_launch"), 2.45, 1e-9);
  EXPECT_NEAR(value_of(metrics, "energy_uncertainty"), 0.05, 1e-9);
  EXPECT_NEAR(value_of(metrics, "energy_resolution"), 0.5, 1e-9);
  EXPECT_NEAR(value_of(metrics, "energy_with_flush"), 12, 1e-9);
  EXPECT_NEAR(value_of(metrics, "energy_flush"), 9.55, 1e-9);
  EXPECT_NEAR(value_of(metrics, "mean_power"), 490, 1e-6);
  EXPECT_NEAR(value_of(metrics, "power_with_flush"), 400, 1e-9);
  EXPECT_NEAR(value_of(metrics, "energy_launches"), 80'000, 1e-9);
  EXPECT_NEAR(value_of(metrics, "energy_update_interval"), 50, 1e-9);
}

TEST(Energy, WithoutFlushNothingIs) {
  const std::vector<EnergyPair> pairs = {{batch(100'000, 1, 300), {}}};
  const std::vector<Metric> metrics = energy_metrics(pairs);
  EXPECT_NEAR(value_of(metrics, "energy_per_launch"), 3, 1e-9);
  EXPECT_NEAR(value_of(metrics, "mean_power"), 300, 1e-9);
  EXPECT_EQ(metrics.size(), 7u);
}

/// A copy of 16 MiB on an H200: 43.5 us and 25.4 mJ with its flush, 30.7 us and 19.63 mJ for
/// the flush.
std::vector<EnergyPair> copies() {
  EnergyPair pair{batch(23'000, 23'000 * 43.5e-6, 584), batch(32'600, 32'600 * 30.7e-6, 639)};
  return {pair, pair};
}

TEST(Energy, WorkBackToBackIsBelieved) {
  EXPECT_EQ(energy_fault(copies(), 700), "");
  EXPECT_EQ(energy_fault(copies(), std::nullopt), "");
  EXPECT_NEAR(value_of(energy_metrics(copies()), "energy_busy"), 1, 1e-9);
}

TEST(Energy, AnIdleGpuIsRefused) {
  std::vector<EnergyPair> pairs = copies();
  pairs[1].launches = batch(5'000, 5'000 * 237e-6, 260);
  pairs[1].launches.busy_s = 43.5e-6;  // the rest went into reading the counter
  EXPECT_EQ(energy_fault(pairs, 700),
            "the GPU was idle while its energy was counted: a launch took 237.0 us, and 43.5 us "
            "back to back; leave the machine alone, or choose a larger case");
  EXPECT_NEAR(value_of(energy_metrics(pairs), "energy_busy"), 0.1835, 1e-4);
  pairs = copies();
  pairs[0].flushes->busy_s /= 1.3;
  EXPECT_NE(energy_fault(pairs, 700), "") << "of flushes, too";
  pairs[0].flushes->busy_s *= 1.3 / 1.19;
  EXPECT_EQ(energy_fault(pairs, 700), "");
}

TEST(Energy, PowerAboveTheLimitIsRefused) {
  std::vector<EnergyPair> pairs = copies();
  pairs[0].launches.power.watts = 736;
  EXPECT_EQ(
      energy_fault(pairs, 700),
      "the GPU at 736 W is more than the board's limit of 700 W: its energy counter cannot be "
      "believed");
  // Of a launch alone, although the GPU as a whole is within its limit.
  const EnergyPair pair{batch(3'000, 3'000 * 390e-6, 600), batch(33'000, 33'000 * 30e-6, 200)};
  EXPECT_NE(energy_fault(std::vector{pair, pair}, 600), "") << "234 - 6 mJ in 360 us: 633 W";
  EXPECT_EQ(energy_fault(std::vector{pair, pair}, 700), "");
}

TEST(Energy, TwiceTheWorkTakesTwiceTheEnergy) {
  const EnergyBatch once = batch(32'600, 32'600 * 30.7e-6, 639);
  EXPECT_EQ(proportion_fault(once, batch(16'300, 16'300 * 61.1e-6, 640)), "");
  // Idle between readings: the time is not the work's.
  EXPECT_EQ(
      proportion_fault(batch(5'000, 5'000 * 205e-6, 250), batch(5'000, 5'000 * 236e-6, 262)),
      "twice the same work took 1.21 times its energy (61.83 mJ, 51.25 mJ): the GPU's counter "
      "or its reading cannot be believed");
}

TEST(Energy, ALaunchThatAddsNoTimeHasNoPower) {
  const std::vector<EnergyPair> pairs = {{batch(1'000, 1, 300), batch(1'000, 1, 300)}};
  EXPECT_TRUE(std::isnan(value_of(energy_metrics(pairs), "mean_power")));
}

}  // namespace
}  // namespace moegate::test
