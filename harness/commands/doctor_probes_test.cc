// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/doctor_probes.h"

#include <gtest/gtest.h>

#include "harness/base/error.h"

namespace moegate::test {
namespace {

/// Starts no worker; what it was asked for is kept, and some tasks are refused.
class Refusing : public WorkerSource {
 public:
  std::unique_ptr<Worker> start(const WorkerOptions& options) override {
    asked.push_back(options);
    if (options.task == refused) {
      throw Error(code, "counters cannot be read:\nset NVreg_RestrictProfilingToAdminUsers=0");
    }
    return nullptr;
  }
  Task refused = Task::counters;
  Exit code = Exit::environment;
  std::vector<WorkerOptions> asked;
};

const Probe& named(const std::vector<Probe>& probes, const std::string& name) {
  for (const Probe& probe : probes) {
    if (probe.name == name) return probe;
  }
  throw std::runtime_error("no probe " + name);
}

Health turns(double spread) {
  Health health;
  for (int turn = 0; turn < 10; ++turn) {
    health.log_ratios.push_back(turn % 2 == 0 ? spread : -spread);
  }
  return health;
}

TEST(DoctorProbes, AProfilerThatDoesNotComeUpSaysWhy) {
  Refusing source;
  const std::vector<Probe> probes = probe_profilers("cuda:1", source);
  const Probe& counters = named(probes, "hardware counters");
  EXPECT_FALSE(counters.ok);
  EXPECT_EQ(counters.note, "counters cannot be read: set NVreg_RestrictProfilingToAdminUsers=0");
  EXPECT_TRUE(named(probes, "stall sampling").ok);
  ASSERT_EQ(source.asked.size(), 2u);
  EXPECT_EQ(source.asked[0].device, "cuda:1");
  EXPECT_EQ(source.asked[0].task, Task::counters);
  EXPECT_EQ(source.asked[1].task, Task::stalls);
}

TEST(DoctorProbes, AnInterruptEndsIt) {
  Refusing source;
  source.code = Exit::interrupted;
  EXPECT_THROW(probe_profilers("cuda", source), Error);
}

TEST(DoctorProbes, NoiseDecidesWhatIsSeen) {
  const Probe quiet = visible_change(turns(0.002), Backend::cuda);
  EXPECT_TRUE(quiet.ok);
  EXPECT_GT(std::stod(quiet.value), 1.5) << "the gate's own limit";
  EXPECT_LT(std::stod(quiet.value), 2.5) << quiet.value;
  const Probe noisy = visible_change(turns(0.2), Backend::cuda);
  EXPECT_FALSE(noisy.ok) << noisy.value;
  EXPECT_GT(std::stod(noisy.value), 10);
  EXPECT_FALSE(visible_change({}, Backend::cuda).ok);
}

TEST(DoctorProbes, ACoarseTickHidesChanges) {
  Health health = turns(0.001);
  const double fine = std::stod(visible_change(health, Backend::cuda).value);
  health.tick = 0.06;  // the gate's margin is two of them
  EXPECT_GT(std::stod(visible_change(health, Backend::cuda).value), fine + 5);
}

}  // namespace
}  // namespace moegate::test
