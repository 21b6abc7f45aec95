// SPDX-License-Identifier: Apache-2.0
#include "harness/timing/energy.h"

#include <gtest/gtest.h>

#include <cmath>

namespace moegate {
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
  EXPECT_EQ(metrics.size(), 6u);
}

TEST(Energy, ALaunchThatAddsNoTimeHasNoPower) {
  const std::vector<EnergyPair> pairs = {{batch(1'000, 1, 300), batch(1'000, 1, 300)}};
  EXPECT_TRUE(std::isnan(value_of(energy_metrics(pairs), "mean_power")));
}

}  // namespace
}  // namespace moegate
