// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/project.h"

#include <gtest/gtest.h>

#include "harness/base/error.h"
#include "harness/base/files.h"
#include "harness/base/test_fixture.h"
#include "harness/commands/cli.h"

namespace moegate::test {
namespace {

using Values = std::vector<std::string>;

Project parsed(const std::string& text) {
  return parse_project(text, "/engine/moegate.ini");
}

/// The sentence that a text is refused with.
std::string refused(const std::string& text) {
  try {
    parsed(text);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Exit::usage);
    return e.what();
  }
  return "accepted";
}

TEST(Project, PathsAreOfItsFolderAndListsHaveParts) {
  const Project project = parsed(
      "[project]\n"
      "module = bench/moe.py, bench/more.py  # two\n"
      "suite = bench/engine.suite, smoke\n"
      "suite = ../shared/x.suite\n"
      "python = .venv/bin/python\n"
      "build = pip install -e . && make\n");
  EXPECT_EQ(project.values("module"), (Values{"/engine/bench/moe.py", "/engine/bench/more.py"}));
  EXPECT_EQ(project.values("suite"),
            (Values{"/engine/bench/engine.suite", "smoke", "/shared/x.suite"}));
  EXPECT_EQ(project.values("python"), Values{"/engine/.venv/bin/python"});
  EXPECT_EQ(project.values("build"), Values{"pip install -e . && make"});
  EXPECT_EQ(parsed("[project]\npython = python3.12\n").values("python"), Values{"python3.12"});
}

TEST(Project, ThePullRequestsSectionIsForAnAb) {
  const Project project = parsed(
      "[project]\nsuite = smoke\nfail-on = latency\n[pull-request]\nsuite = tiny\nfilter = x\n");
  EXPECT_EQ(project.values("suite", "ab"), Values{"tiny"});
  EXPECT_EQ(project.values("suite", "nightly"), Values{"smoke"});
  EXPECT_EQ(project.values("fail-on", "ab"), Values{"latency"});
  const auto has_filter = [&](const char* verb) {
    const auto flags = project.flags_of(verb);
    return std::ranges::any_of(flags, [](const auto& f) { return f.first == "filter"; });
  };
  EXPECT_TRUE(has_filter("ab"));
  EXPECT_FALSE(has_filter("nightly"));
}

TEST(Project, WhatIsWrongIsNamed) {
  const std::string file = "/engine/moegate.ini: ";
  EXPECT_EQ(refused("[project]\nsiute = a\n"),
            file +
                "[project] has no key 'siute' (did you mean 'suite'?); `moegate list project` "
                "shows the keys");
  EXPECT_EQ(refused("[night]\nsuite = a\n"),
            file + "[night] is no section; use [project] or [pull-request]");
  EXPECT_EQ(refused("suite = a\n"),
            file + "'suite' stands before the first section; begin with [project]");
  EXPECT_EQ(refused("[project]\nout = a\nout = b\n"), file + "[project] has 'out' twice; keep one");
  EXPECT_EQ(refused("[project]\nsuite = a,,b\n"),
            file + "[project] 'suite' has no value; give one or delete the line");
  EXPECT_EQ(refused("[pull-request]\nout = a\n"),
            file +
                "[pull-request] cannot have 'out', which is the same for every A/B; move it to "
                "[project]");
}

TEST(Project, ABaseJudgesWithItsLimitsAndTheHeadsSuitesToo) {
  const Project base =
      parsed("[project]\nsuite = a\nfail-on = latency\nmargin = 2%\nbuild = old\n");
  const Project head = parsed("[project]\nsuite = b\nfail-on = accuracy\nbuild = new\n");
  const Project both = judged_by(base, head);
  EXPECT_EQ(both.values("suite"), (Values{"b", "a"}));
  EXPECT_EQ(both.values("fail-on"), Values{"latency"});
  EXPECT_EQ(both.values("margin"), Values{"2%"});
  EXPECT_EQ(both.values("build"), Values{"new"});
}

class ProjectFolder : public ::testing::Test {
 protected:
  void write(const std::string& text) { write_file_atomically(folder_ / kProjectFile, text); }
  Project project() { return find_project(folder_.path() / "below"); }

  ScratchFolder folder_;
};

TEST_F(ProjectFolder, TheNearestFileAboveCounts) {
  EXPECT_FALSE(project().is_there());
  write("[project]\nout = kept\n");
  EXPECT_EQ(project().root, std::filesystem::canonical(folder_.path()));
  EXPECT_EQ(std::filesystem::absolute(project().out()),
            std::filesystem::canonical(folder_.path()) / "kept");
  EXPECT_EQ(project().baselines().filename(), "baselines");
}

TEST_F(ProjectFolder, WhatIsTypedWins) {
  write("[project]\nrounds = 7\nrequire-baseline = true\nbudget = soon\n");
  const Project project = this->project();
  int rounds = 3;
  bool require = false;
  Flags flags;
  flags.add(flag("rounds", rounds)).add(flag("require-baseline", require));
  std::set<std::string> given;
  parse("nightly", flags, {}, {}, &given, &project);
  EXPECT_EQ(rounds, 7);
  EXPECT_TRUE(require);
  EXPECT_TRUE(given.empty()) << "nobody typed anything";
  Flags again;
  again.add(flag("rounds", rounds)).add(flag("require-baseline", require));
  parse("nightly", again, {"--rounds", "5"}, {}, &given, &project);
  EXPECT_EQ(rounds, 5);
  EXPECT_EQ(given, std::set<std::string>{"rounds"});
}

TEST_F(ProjectFolder, AnErrorNamesTheFile) {
  write("[project]\nbudget = soon\n");
  const Project project = this->project();
  Flags flags;
  flags.add(flag("budget", [](const std::string& text) { parse_seconds("--budget", text); }));
  try {
    parse("nightly", flags, {}, {}, nullptr, &project);
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()).find(project.file.string() + ": budget 'soon'"), 0u)
        << e.what();
  }
}

TEST_F(ProjectFolder, ResultsStayOutOfTheRepository) {
  make_results_folder(folder_.path() / "out");
  EXPECT_EQ(read_file(folder_.path() / "out" / ".gitignore"), "*\n");
}

}  // namespace
}  // namespace moegate::test
