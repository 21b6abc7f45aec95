// SPDX-License-Identifier: Apache-2.0
#include "harness/timing/probe.h"

#include <gtest/gtest.h>

namespace moegate::test {
namespace {

/// Ten turns of twenty samples of 5000 ns; b's are `ratio` times shorter, a's every second turn off
/// by `wobble`.
Turns turns_of(double ratio, double wobble, int invalid = 0) {
  Turns turns;
  turns.invalid = invalid;
  for (int turn = 0; turn < 10; ++turn) {
    const double off = turn % 2 == 0 ? 1 + wobble : 1 - wobble;
    turns.a.emplace_back(20, 5000 * off);
    turns.b.emplace_back(20, 5000 / ratio);
  }
  return turns;
}

Health health_of(const Turns& turns, Backend backend = Backend::cuda) {
  Health health;
  add_noise(turns, 32, quiet_of(backend), health);
  return health;
}

TEST(Probe, AChipSaysWhoCompiledForIt) {
  EXPECT_EQ(chip_probe(90, false).value, "sm_90");
  EXPECT_EQ(chip_probe(90, false).note, "machine code");
  EXPECT_NE(chip_probe(89, true).note.find("the driver compiles"), std::string::npos);
  EXPECT_NE(chip_probe(89, true).note.find("on sm_90 only"), std::string::npos);
}

TEST(Probe, PartsOfAGpuAreNotWhole) {
  const auto value = [](const char* name, bool is_virtual, const char* kernel) {
    return whole_probe(name, is_virtual, kernel).value;
  };
  EXPECT_TRUE(whole_probe("NVIDIA H200", false, "6.1.0-40-amd64").ok);
  EXPECT_FALSE(whole_probe("NVIDIA A100-SXM4-80GB MIG 1g.10gb", false, "6.1.0").ok);
  EXPECT_EQ(value("NVIDIA A100-SXM4-80GB MIG 1g.10gb", false, "6.1.0"), "MIG slice");
  EXPECT_EQ(value("NVIDIA A40-48Q", true, "6.1.0"), "vGPU");
  EXPECT_EQ(value("NVIDIA L4", false, "5.15.153.1-microsoft-standard-WSL2"), "WSL2");
}

TEST(Probe, AQuietMachineIsQuiet) {
  const Health health = health_of(turns_of(1, 0.002));
  EXPECT_TRUE(health.quiet);
  ASSERT_EQ(health.probes.size(), 1u);
  EXPECT_TRUE(health.probes[0].ok) << health.probes[0].note;
  EXPECT_EQ(health.probes[0].value, "1.0000");
  EXPECT_EQ(health.log_ratios.size(), 10u);
  EXPECT_NEAR(health.tick, 32 / 5000.0, 1e-12);
}

TEST(Probe, ABiasIsNoise) {
  EXPECT_FALSE(health_of(turns_of(1.02, 0)).quiet);
  EXPECT_TRUE(health_of(turns_of(1.02, 0), Backend::host).quiet);
}

TEST(Probe, ARatioOfOneByChanceIsNoise) {
  // As many turns up as down: the ratio is 1, and says nothing.
  const Health health = health_of(turns_of(1, 0.3));
  EXPECT_FALSE(health.quiet) << health.probes[0].note;
  EXPECT_FALSE(health_of(turns_of(1, 0.9), Backend::host).quiet);
}

TEST(Probe, InvalidSamplesAreNoise) {
  EXPECT_TRUE(health_of(turns_of(1, 0, 20)).quiet);
  EXPECT_FALSE(health_of(turns_of(1, 0, 90)).quiet);
}

TEST(Probe, WithoutSamplesThereIsNoRatio) {
  Turns turns;
  turns.a.resize(10);
  turns.b.resize(10);
  const Health health = health_of(turns);
  EXPECT_FALSE(health.quiet);
  EXPECT_EQ(health.probes.at(0).value, "unavailable");
  EXPECT_TRUE(health.log_ratios.empty());
}

TEST(Probe, ALevelThatSpreadsIsNotOk) {
  const Quiet quiet = quiet_of(Backend::cuda);
  EXPECT_TRUE(level_probe("read", {5500, 0.05, 200, 0}, "cupti", quiet).ok);
  EXPECT_FALSE(level_probe("read", {5500, 7.29, 200, 0}, "cupti", quiet).ok);
  EXPECT_FALSE(level_probe("read", {5500, 0.05, 150, 50}, "cupti", quiet).ok);
  EXPECT_FALSE(level_probe("read", {}, "cupti", quiet).ok);
}

TEST(Probe, TheCeilingsMayReachThePowerCap) {
  const Probe none = limits_probe(std::vector<ClockLimit>{{"before", ""}, {kBehindCeilings, ""}});
  EXPECT_EQ(none.value, "nothing");
  EXPECT_TRUE(none.ok);
  EXPECT_EQ(none.note, "looked at before, behind the ceilings");
  const Probe cap =
      limits_probe(std::vector<ClockLimit>{{"before", ""}, {kBehindCeilings, "power cap"}});
  EXPECT_EQ(cap.value, "power cap (behind the ceilings)");
  EXPECT_TRUE(cap.ok);
  const Probe hot = limits_probe(
      std::vector<ClockLimit>{{"before", "thermal (hardware)"}, {kBehindCeilings, "power cap"}});
  EXPECT_EQ(hot.value, "thermal (hardware) (before); power cap (behind the ceilings)");
  EXPECT_FALSE(hot.ok);
}

}  // namespace
}  // namespace moegate::test
