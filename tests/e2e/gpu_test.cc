// SPDX-License-Identifier: Apache-2.0
// The gate on a real GPU: measured with CUPTI, green against itself in a fresh process, red for a
// variant made 5 % slower or wrong, and alive after one that kills its context. Skipped without a
// GPU.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "harness/store/sqlite.h"
#include "tests/e2e/program.h"

namespace moegate::test {
namespace {

class GpuTest : public ProgramTest {
 protected:
  void SetUp() override {
    const Outcome devices = moegate("list devices --format csv");
    if (devices.out.find("cuda:0") == std::string::npos) {
      GTEST_SKIP() << devices.err;
    }
    write("gpu.suite",
          "op = topk_sort\nexperts = 256\ntopk = 8\nhidden = 7168\nlaunch = graph\n"
          "[decode]\ntokens = 8, 64\n");
  }
  /// A run whose rows do not say what code they launched: a sabotage changes none, and the same
  /// code is not judged.
  Outcome run(const std::string& sabotage, const std::string& more = "") const {
    const Outcome outcome =
        saboteur(sabotage, "run --suite ./gpu.suite --device cuda --db r.sqlite " + more);
    Database((folder_ / "r.sqlite").string(), SQLITE_OPEN_READWRITE)
        .execute("UPDATE result SET code = '', checksum = 0");
    return outcome;
  }
  Outcome gate() const { return moegate("gate --db r.sqlite --candidate candidate"); }
  /// What later runs are judged against: a run of the whole suite, as no part of one is recorded.
  void record_candidate() const {
    const Outcome whole = run("spin:0");
    ASSERT_EQ(whole.exit, 0) << whole.err;
    const Outcome recorded = gate();
    ASSERT_EQ(recorded.exit, 0) << recorded.out << recorded.err;
    ASSERT_EQ(shell("cat candidate/*/gpu.tsv | grep -c ' saboteur$'").out, "2\n") << recorded.out;
  }
};

constexpr const char* kSaboteurOnly = "--variant '^saboteur$'";
constexpr const char* kSaboteursSpan = "SELECT max(span_ns) FROM result WHERE variant = 'saboteur'";

TEST_F(GpuTest, MeasuresEveryKernelWithCupti) {
  const Outcome outcome = run("none", "--variant 'chain3|fused_warp'");
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_EQ(query("r.sqlite", "SELECT group_concat(DISTINCT timer) FROM result"), "cupti");
  EXPECT_EQ(query("r.sqlite", "SELECT max(invalid * 20 > samples) FROM result"), "0");
  EXPECT_EQ(
      query("r.sqlite",
            "SELECT group_concat(DISTINCT n) FROM (SELECT count(*) AS n FROM kernel JOIN result "
            "USING (result_id) WHERE variant = 'chain3' GROUP BY result_id)"),
      "3");
  EXPECT_EQ(query("r.sqlite", "SELECT min(span_ns >= busy_ns AND sum_ns >= busy_ns) FROM result"),
            "1");
  EXPECT_EQ(query("r.sqlite", "SELECT min(sm_mhz > 500) FROM result"), "1");
}

TEST_F(GpuTest, VerifiesTheTinySuite) {
  const Outcome outcome = moegate("verify --suite tiny --device cuda");
  EXPECT_EQ(outcome.exit, 0) << outcome.out << outcome.err;
}

TEST_F(GpuTest, GreenAgainstItselfRedFivePercentSlower) {
  ASSERT_NO_FATAL_FAILURE(record_candidate());
  const double span = std::stod(query("r.sqlite", kSaboteursSpan));

  ASSERT_EQ(run("spin:0", kSaboteurOnly).exit, 0);
  const Outcome same = gate();
  EXPECT_EQ(same.exit, 0) << same.out << same.err;
  EXPECT_NE(same.out.find("candidate, not blessed"), std::string::npos) << same.out;

  ASSERT_EQ(run("spin:" + std::to_string(0.05 * span), kSaboteurOnly).exit, 0);
  const Outcome slower = gate();
  EXPECT_EQ(slower.exit, 10) << slower.out << slower.err;
}

TEST_F(GpuTest, AnAbSeesFivePercentInBothDirections) {
  ASSERT_EQ(run("spin:0", kSaboteurOnly).exit, 0);
  const double span = std::stod(query("r.sqlite", kSaboteursSpan));
  const std::string plain = sabotaged("spin:0");
  const std::string slow = sabotaged("spin:" + std::to_string(0.05 * span));
  const auto ab = [&](const std::string& base, const std::string& head) {
    return moegate("ab --suite ./gpu.suite --device cuda --db ab.sqlite --variant '^saboteur$' " +
                   ("--measure-identical --base program=" + base + " --head program=" + head));
  };
  const Outcome slower = ab(plain, slow), faster = ab(slow, plain);
  EXPECT_EQ(slower.exit, 10) << slower.out << slower.err;
  EXPECT_EQ(faster.exit, 0) << faster.out << faster.err;
  EXPECT_NE(faster.out.find("improved"), std::string::npos) << faster.out;
}

// Bytes that nobody wrote, among a launch's arguments, would make a row another one in
// every process.
TEST_F(GpuTest, EveryRowSaysWhatItLaunchedTheSameInTwoProcesses) {
  const Outcome outcome = moegate("run --suite smoke --device cuda --rounds 2 --db smoke.sqlite");
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_EQ(
      query("smoke.sqlite",
            "SELECT group_concat(key || ' ' || variant) FROM (SELECT key, variant FROM result "
            "JOIN bench_case USING (case_id) WHERE status IN ('ok', 'noisy') "
            "GROUP BY case_id, variant HAVING count(DISTINCT code) > 1 OR max(code) = '')"),
      "");
}

TEST_F(GpuTest, EverySaboteurIsCaught) {
  const Outcome outcome = shell(saboteurs() + " selftest saboteurs --suite " MOEGATE_SOURCE_DIR
                                              "/tests/saboteurs/saboteurs.suite --device cuda "
                                              "--case-timeout 20s");
  EXPECT_EQ(outcome.exit, 0) << outcome.out << outcome.err;
}

TEST_F(GpuTest, WrongOutputsFailTheGate) {
  ASSERT_NO_FATAL_FAILURE(record_candidate());
  for (const char* sabotage : {"scale", "drop", "overrun"}) {
    EXPECT_EQ(run(sabotage, kSaboteurOnly).exit, 11) << sabotage;
    EXPECT_EQ(gate().exit, 11) << sabotage;
  }
}

TEST_F(GpuTest, ABrokenContextOrAHangCostsItsRowsOnly) {
  const std::string two = "--variant 'saboteur|fused_warp' --rounds 1 --case-timeout 5s ";
  EXPECT_EQ(run("fault", two).exit, 13);
  EXPECT_EQ(
      query("r.sqlite",
            "SELECT group_concat(DISTINCT variant || ' ' || status) FROM result ORDER BY variant"),
      "fused_warp_per_token ok,saboteur crashed");
  EXPECT_EQ(run("hang", two + "--filter tokens=8,").exit, 13);
  EXPECT_EQ(query("r.sqlite", "SELECT group_concat(variant) FROM result WHERE status = 'timeout'"),
            "saboteur");
}

TEST_F(GpuTest, DoctorAsksTheProfilers) {
  const Outcome doctor = moegate("doctor --device cuda --format csv");
  EXPECT_EQ(doctor.exit, 0) << doctor.out << doctor.err;
  for (const char* row : {"\nlibnvperf_host,", "\nhardware counters,", "\nstall sampling,",
                          "\nenergy counter,", "\nother processes on the GPU,", "\nevents add,",
                          "\nclock held down by,", "\nsmallest change seen,"}) {
    EXPECT_NE(doctor.out.find(row), std::string::npos) << row << doctor.out;
  }
  EXPECT_EQ(doctor.out.find("\nCUPTI,no,"), std::string::npos)
      << "asking them must not disturb the timer";
}

// That twice the work takes twice the energy, and no board more than its limit, the profiler
// checks itself.
TEST_F(GpuTest, EnergyIsCountedOfABusyGpu) {
  const Outcome outcome = moegate(
      "profile energy --suite ./gpu.suite --device cuda --db e.sqlite --variant "
      "'^fused_cluster$'");
  ASSERT_EQ(outcome.exit, 0) << outcome.out << outcome.err;
  EXPECT_EQ(query("e.sqlite", "SELECT group_concat(DISTINCT status || why) FROM result"), "ok");
  EXPECT_EQ(query("e.sqlite", "SELECT min(value > 0.83) FROM metric WHERE name = 'energy_busy'"),
            "1");
}

TEST_F(GpuTest, LaunchesTakeWhatTheProgramsFileSays) {
  ASSERT_EQ(moegate("run --suite ./gpu.suite --device cuda --db r.sqlite --rounds 1").exit, 0);
  std::map<std::string, nlohmann::json> stated;
  for (const auto& row : nlohmann::json::parse(moegate("list resources --format json").out)) {
    stated[row.at("kernel")] = row;
  }
  Database db((folder_ / "r.sqlite").string(), SQLITE_OPEN_READONLY);
  Statement launched(db, "SELECT DISTINCT name, registers, static_shared, local_bytes FROM kernel");
  int compared = 0;
  while (launched.step()) {
    const auto found = stated.find(launched.text(0));
    if (found == stated.end()) continue;  // a memory operation
    ++compared;
    constexpr int64_t kFewestRegisters = 16;  // of any launch
    EXPECT_EQ(launched.integer(1),
              std::max(kFewestRegisters, found->second.at("registers").get<int64_t>()))
        << found->first;
    EXPECT_EQ(launched.integer(2), found->second.at("static shared")) << found->first;
    if (launched.integer(3) >= 0) {  // known
      EXPECT_EQ(launched.integer(3), found->second.at("local bytes")) << found->first;
    }
  }
  EXPECT_GT(compared, 5);
  const std::string of_class =
      " --baselines b --class " + query("r.sqlite", "SELECT class FROM device");
  const Outcome blessed =
      moegate("bless --resources --reason 'shapes of a run' --db r.sqlite" + of_class);
  EXPECT_EQ(blessed.exit, 0) << blessed.err;
  EXPECT_EQ(moegate("gate --resources" + of_class).exit, 0);
}

TEST_F(GpuTest, WhyNamesThePlantedCause) {
  const std::string suite = MOEGATE_SOURCE_DIR "/tests/saboteurs/slowed.suite";
  const std::map<std::string, std::string> planted = {{"spills", "local memory 0 -> "},
                                                      {"reads_twice", "DRAM bytes read +"},
                                                      {"bank_conflicts", "bank conflicts "},
                                                      {"half_the_blocks", "blocks per SM 2 -> 1"},
                                                      {"waits", "stalls on sleeping +"}};
  for (const auto& [variant, part] : planted) {
    const Outcome ab =
        shell(saboteurs() + " ab --base variant=plain --head variant=" + variant + " --suite " +
              suite + " --device cuda --rounds 2,3,0 --why all --db why.sqlite --out v.json");
    const auto verdict = nlohmann::json::parse(read("v.json"), nullptr, false);
    ASSERT_TRUE(verdict.is_object() && verdict["cases"].size() == 1u) << variant << ab.err;
    const auto& row = verdict["cases"][0];
    ASSERT_TRUE(row.contains("cause")) << variant << ab.out << ab.err;
    const std::string sentence = row["cause"]["sentence"];
    EXPECT_NE(sentence.find(part), std::string::npos) << variant << ": " << row.dump(1);
  }
  const Outcome itself =
      shell(saboteurs() + " ab --base program=" + saboteurs() + " --suite " + suite +
            " --variant '^plain$' --device cuda "
            "--measure-identical --rounds 2,3,0 "
            "--why all --db why.sqlite --out v.json");
  const auto verdict = nlohmann::json::parse(read("v.json"), nullptr, false);
  ASSERT_TRUE(verdict.is_object()) << itself.err;
  EXPECT_EQ(verdict["cases"][0]["cause"]["kind"], "nothing") << verdict["cases"][0].dump(1);
}

TEST_F(GpuTest, EventsAreAStatedFallback) {
  ASSERT_EQ(run("none", "--variant fused_warp --timer event --rounds 1").exit, 0);
  EXPECT_EQ(query("r.sqlite", "SELECT group_concat(DISTINCT timer) FROM result"), "event");
}

}  // namespace
}  // namespace moegate::test
