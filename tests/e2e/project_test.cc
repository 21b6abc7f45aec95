// SPDX-License-Identifier: Apache-2.0
// A team's own repository with moegate.ini: every verb without a flag, and nothing outside of it.
#include "harness/store/sqlite.h"
#include "tests/e2e/python_fixture.h"

namespace moegate::test {
namespace {

class ProjectProgramTest : public PythonTest {
 protected:
  const ScopedVariable cache_{"XDG_CACHE_HOME", folder_ / "cache"};

  ProjectProgramTest() {
    shell(
        "git init -q -b work team && cd team && git config user.name a && git config user.email "
        "a@b && mkdir bench && cp ../doubled.suite bench/");
    write("team/moegate.ini",
          "[project]\nmodule = bench/kernels.py\nsuite = bench/doubled.suite\ndevice = host\n"
          "budget = 40s\n[pull-request]\nrounds = 2,2,0\n");
    commit("1", "one");
  }
  /// A commit in which variant `other` is off by a factor.
  void commit(const std::string& factor, const std::string& subject) const {
    write_scaled("team/bench/kernels.py", factor);
    shell("cd team && git add -A && git commit -q -m " + subject);
  }
  /// In a folder of the repository that is not its root.
  Outcome team(const std::string& arguments) const {
    return shell("cd team/bench && '" + program() + "' " + arguments);
  }
  /// What a busy machine measured, as of a quiet one.
  void quieten() const {
    Database db((folder_ / "team/out/results.sqlite").string(), SQLITE_OPEN_READWRITE);
    db.execute(
        "UPDATE result SET checksum = 0, verified_checksum = 0, impossible = 0, suspect_warm = 0, "
        "invalid = 0, flags = 0, slow = 0, status = 'ok', why = '', timer = 'clock', samples = 20, "
        "span_ns = 1e5, min_ns = 9e4, ratio = 1, ratio_low = 1, ratio_high = 1, mean_ratio = 1, "
        "mean_ns = 1e5, yardstick_code = 'c0de', yardstick = 'plain', judged = iif(variant = "
        "'plain', 'is_yardstick', 'ratio') WHERE status <> 'wrong'");
  }
  bool is_there(const std::string& file) const { return std::filesystem::exists(folder_ / file); }
  /// The file of kernels without the variant that is wrong on purpose.
  std::string without_forgetful() const {
    const std::string text = read("team/bench/kernels.py");
    return text.substr(0, text.find("@moegate.variant(\"doubled\", \"forgetful\""));
  }
  static constexpr const char* kHonest = "--variant '^(plain|other)$' ";
};

TEST_F(ProjectProgramTest, OneFileAndNoFlag) {
  const Outcome settings = team("list project");
  EXPECT_EQ(settings.exit, 0) << settings.err;
  EXPECT_NE(settings.out.find((folder_ / "team/bench/kernels.py").string()), std::string::npos)
      << settings.out;

  const Outcome run = team(std::string("run --rounds 2 ") + kHonest + kQuick);
  EXPECT_EQ(run.exit, 0) << run.out << run.err;
  EXPECT_EQ(query("team/out/results.sqlite", "SELECT count(*) > 0 FROM result"), "1");
  EXPECT_EQ(shell("cd team && git status --porcelain").out, "") << "results are no change";
  const std::string commit = shell("git -C team rev-parse HEAD").out.substr(0, 12);
  EXPECT_NE(team("list runs").out.find(commit), std::string::npos) << team("list runs").out;

  write_scaled("team/bench/kernels.py", "1.5");
  const Outcome ab = team(std::string("ab work --variant other ") + kQuick);
  EXPECT_EQ(ab.exit, 11) << ab.out << ab.err;
  EXPECT_EQ(
      query("team/out/ab.sqlite", "SELECT count(*) FROM run WHERE label LIKE 'working tree at %'"),
      "1");
}

TEST_F(ProjectProgramTest, BlessedBesideTheFileAndJudgedByIt) {
  write("team/bench/kernels.py", without_forgetful());
  shell("cd team && git commit -q -a -m honest");
  ASSERT_EQ(team(std::string("run --rounds 3 ") + kQuick).exit, 0);
  quieten();
  const Outcome blessed = team("bless --reason first --accept dirty");  // this program may be
  EXPECT_EQ(blessed.exit, 0) << blessed.out << blessed.err;
  EXPECT_EQ(shell("ls team/baselines").out.find("blessings.tsv"), 0u);
  EXPECT_EQ(team("gate").exit, 0) << team("gate").out << team("gate").err;
  EXPECT_NE(team("report changes --against 1").err.find("both"), std::string::npos);

  const Outcome pages = team("pages");
  EXPECT_EQ(pages.exit, 0) << pages.err;
  EXPECT_TRUE(is_there("team/out/pages/index.html"));
}

TEST_F(ProjectProgramTest, AHeadDropsNoSuiteOfTheBase) {
  write("team/bench/other.suite", "op = doubled\n[d]\ntokens = 3\n");
  write("team/moegate.ini",
        "[project]\nmodule = bench/kernels.py\nsuite = bench/other.suite\ndevice = host\n");
  const Outcome ab = team(std::string("ab work --variant other --rounds 2,2,0 ") + kQuick);
  EXPECT_NE(ab.out.find("- doubled: against"), std::string::npos) << ab.out << ab.err;
  EXPECT_NE(ab.out.find("- other: against"), std::string::npos) << ab.out << ab.err;
}

TEST_F(ProjectProgramTest, ANightTestsTheTeamsOperatorsOnly) {
  const Outcome night = team("nightly --rounds 1");
  // The file has a variant that is wrong on purpose.
  EXPECT_EQ(night.exit, 11) << night.out << night.err;
  EXPECT_NE(night.err.find("token dropped"), std::string::npos) << night.err;
  EXPECT_EQ(night.out.find("topk_sort"), std::string::npos) << night.out;
  EXPECT_EQ(night.err.find("topk_sort"), std::string::npos) << night.err;
  EXPECT_TRUE(is_there("team/out/doctor.md"));
}

TEST_F(ProjectProgramTest, AStoreThatAVariableNamesIsTaken) {
  const Outcome plan = shell("cd team && MOEGATE_DB=mine.sqlite '" + program() + "' run --dry-run");
  EXPECT_EQ(plan.exit, 0) << plan.err;
  EXPECT_FALSE(is_there("team/out"));
}

TEST_F(ProjectProgramTest, AWrongKeyIsNamedByEveryVerb) {
  write("team/moegate.ini", "[project]\nmodul = x\n");
  for (const char* verb : {"run", "nightly", "gate", "bless", "list suites"}) {
    const Outcome outcome = team(verb);
    EXPECT_EQ(outcome.exit, 2) << verb;
    EXPECT_NE(outcome.err.find("has no key 'modul' (did you mean 'module'?)"), std::string::npos)
        << verb << outcome.err;
  }
}

}  // namespace
}  // namespace moegate::test
