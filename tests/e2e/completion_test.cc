// SPDX-License-Identifier: Apache-2.0
// What a shell offers at the cursor, and the man page: both from --help.
#include <set>
#include <sstream>

#include "tests/e2e/program.h"

namespace moegate::test {
namespace {

/// The script for a shell: of the source tree, else of the installed folder.
std::string completion_script(const std::string& program, const std::string& shell) {
  const std::filesystem::path source =
      std::filesystem::path(MOEGATE_SOURCE_DIR) / ("harness/commands/moegate." + shell);
  if (std::filesystem::exists(source)) return source.string();
  const auto installed = std::filesystem::path(program).parent_path().parent_path() / "share";
  if (shell == "zsh") return (installed / "zsh/site-functions/_moegate").string();
  if (shell == "fish") return (installed / "fish/vendor_completions.d/moegate.fish").string();
  return (installed / "bash-completion/completions/moegate").string();
}

std::string bash_completion(const std::string& program) {
  return completion_script(program, "bash");
}

class CompletionTest : public ProgramTest {
 protected:
  static std::set<std::string> lines_of(const Outcome& outcome) {
    EXPECT_EQ(outcome.exit, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    std::set<std::string> lines;
    std::istringstream text(outcome.out);
    for (std::string line; std::getline(text, line);) lines.insert(line);
    return lines;
  }
  std::set<std::string> complete(const std::string& words) const {
    return lines_of(moegate("complete " + words));
  }
  /// What bash offers for `words`, of which the last is at the cursor.
  std::set<std::string> in_bash(const std::string& words) const {
    write("ask.bash", "source '" + bash_completion(program()) + "'\nCOMP_WORDS=(\"$PROGRAM\" " +
                          words +
                          ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_moegate\n"
                          "printf '%s\\n' \"${COMPREPLY[@]}\"\n");
    return lines_of(shell("PROGRAM=" + program() + " bash ask.bash"));
  }
  void make_store(const std::string& more) const {
    write("quick.suite", "op = moe_sum\ntopk = 2\nhidden = 64\n[small]\ntokens = 3\n");
    const Outcome run = moegate(
        "run --suite ./quick.suite --device host --min-samples 10 --max-samples 20 --budget 100ms "
        "--rounds 1 " +
        more);
    ASSERT_EQ(run.exit, 0) << run.err;
  }
};

using Lines = std::set<std::string>;

TEST_F(CompletionTest, CommandsAndTheirFlags) {
  EXPECT_EQ(complete("ru"), (Lines{"run"}));
  const Lines all = complete("''");
  for (const char* command : {"run", "verify", "ab", "new", "store", "help", "--version"}) {
    EXPECT_TRUE(all.contains(command)) << command;
  }
  EXPECT_FALSE(all.contains("worker")) << "not for people";
  EXPECT_FALSE(all.contains("complete"));
  EXPECT_EQ(complete("run --max"), (Lines{"--max-samples"}));
  EXPECT_TRUE(complete("run --").contains("--resume"));
  EXPECT_FALSE(complete("verify --").contains("--resume"));
  EXPECT_TRUE(complete("verify --").contains("--controls"));
  EXPECT_EQ(complete("frobnicate --"), Lines{});
}

TEST_F(CompletionTest, WhatThereIsToRunAndToLookAt) {
  EXPECT_EQ(complete("run --suite tin"), (Lines{"tiny"}));
  EXPECT_EQ(complete("tune --op moe_sum,moe_al"), (Lines{"moe_sum,moe_align"}));
  const Lines variants = complete("run --variant ''");
  EXPECT_TRUE(variants.contains("chain")) << "of the host's topk_sort";
  for (const std::string& variant : variants) EXPECT_FALSE(variant.starts_with("tile/"));
  EXPECT_EQ(complete("report late"), (Lines{"latency"}));
  EXPECT_EQ(complete("report latency --format j"), (Lines{"json"}));
  EXPECT_EQ(complete("list ''"), (Lines{"suites", "kernels", "cases", "devices", "runs", "reports",
                                        "views", "resources", "waivers", "project"}));
  EXPECT_EQ(complete("new v"), (Lines{"variant"}));
  EXPECT_EQ(complete("run --module ''"), (Lines{":files"}));
}

TEST_F(CompletionTest, RunsAreThoseOfTheStoreThatIsMeant) {
  EXPECT_EQ(complete("gate --run ''"), Lines{}) << "no store, and not a word about it";
  EXPECT_FALSE(std::filesystem::exists(folder_ / "results.sqlite")) << "none is made";
  make_store("--label first");
  make_store("--db other.sqlite --label second");
  EXPECT_EQ(complete("gate --run ''"), (Lines{"latest", "1", "first"}));
  EXPECT_EQ(complete("gate --against ''"), (Lines{"latest", "1", "first"}));
  EXPECT_EQ(complete("gate --against 1 --run f"), (Lines{"first"}));
  EXPECT_EQ(complete("gate --db other.sqlite --against ''"), (Lines{"latest", "1", "second"}));
  EXPECT_EQ(complete("gate --db nowhere.sqlite --run ''"), Lines{});
  write("notes.txt", "these are my notes, not a database, and long enough to be looked at\n");
  EXPECT_EQ(complete("gate --db notes.txt --run ''"), Lines{});
}

TEST_F(CompletionTest, ParametersOfTheCasesThatAreMeant) {
  write("own.suite",
        "op = moe_sum\ntopk = 2\nhidden = 64, 128\n[small]\ntokens = 3, 12\nlaunch = graph\n");
  const std::string suite = "run --suite ./own.suite ";
  EXPECT_EQ(complete(suite + "--axis tok"), (Lines{"tokens="}));
  EXPECT_EQ(complete(suite + "--axis tokens="), (Lines{"tokens=3", "tokens=12"}));
  EXPECT_EQ(complete(suite + "--axis hidden=64,1"), (Lines{"hidden=64,128"}));
  EXPECT_TRUE(complete(suite + "--axis ''").contains("cache=")) << "a default can be replaced";
  EXPECT_EQ(complete(suite + "--filter ''"),
            (Lines{"hidden=", "launch=", "moe_sum/", "tokens=", "topk="}))
      << "what keys have";
  EXPECT_EQ(complete(suite + "--filter '^moe_sum/.*tokens=1'"), (Lines{"^moe_sum/.*tokens=12"}));
  EXPECT_EQ(complete("report history --filter tok"), Lines{})
      << "no store, and not a word about it";
  make_store("--label first");
  EXPECT_EQ(complete("report history --filter tok"), (Lines{"tokens="}));
  EXPECT_EQ(complete("report latency --filter tokens="), (Lines{"tokens=3"}));
  EXPECT_EQ(complete("report history --db nowhere.sqlite --filter tok"), Lines{});
  EXPECT_EQ(complete("run --suite nowhere --axis tok"), Lines{});
  EXPECT_EQ(in_bash(suite + "--axis tokens = 1"), (Lines{"12"})) << "as bash cuts tokens=1";
  EXPECT_EQ(in_bash(suite + "--axis tokens ="), (Lines{"3", "12"}));
  EXPECT_EQ(in_bash(suite + R"(--filter "'moe_sum/tok")"), (Lines{"moe_sum/tokens="}))
      << "in quotes";
}

TEST_F(CompletionTest, BashOffersIt) {
  EXPECT_EQ(in_bash("ru"), (Lines{"run"}));
  EXPECT_EQ(in_bash("run --suite tin"), (Lines{"tiny"}));
  EXPECT_EQ(in_bash("run --suite = tin"), (Lines{"tiny"})) << "as bash cuts --suite=tin";
  EXPECT_EQ(in_bash("tune --op moe_sum,moe_al"), (Lines{"moe_sum,moe_align"}));
  EXPECT_TRUE(in_bash("run --suite =").contains("tiny"));
  write("a file.py", "");
  EXPECT_EQ(in_bash("run --module 'a f'"), (Lines{"a file.py"}));
  EXPECT_TRUE(in_bash("run --module =").contains("a file.py"));
  make_store("--label 'two words; one $HOME'");
  EXPECT_EQ(in_bash("gate --run tw"), (Lines{R"(two\ words\;\ one\ \$HOME)"})) << "quoted";
  const Outcome registered =
      shell("bash -c 'source " + bash_completion(program()) + " && complete -p moegate'");
  EXPECT_EQ(registered.out, "complete -F _moegate moegate\n") << registered.err;
}

TEST_F(CompletionTest, FishOffersIt) {
  if (shell("command -v fish").exit != 0) GTEST_SKIP() << "no fish on this machine";
  const auto in_fish = [&](const std::string& line) {
    const std::string folder = std::filesystem::path(program()).parent_path().string();
    return lines_of(shell("HOME=$PWD PATH=" + folder + ":$PATH fish --no-config -c 'source " +
                          completion_script(program(), "fish") + "; complete -C \"" + line +
                          "\"'"));
  };
  EXPECT_EQ(in_fish("moegate ru"), (Lines{"run"}));
  EXPECT_EQ(in_fish("moegate run --suite tin"), (Lines{"tiny"}));
  EXPECT_EQ(in_fish("moegate run --suite=tin"), (Lines{"--suite=tiny"}));
  EXPECT_EQ(in_fish("moegate tune --op moe_sum,moe_al"), (Lines{"moe_sum,moe_align"}));
  write("file.py", "");
  EXPECT_EQ(in_fish("moegate run --module fi"), (Lines{"file.py"}));
}

TEST_F(CompletionTest, ZshOffersIt) {
  if (shell("command -v zsh").exit != 0) GTEST_SKIP() << "no zsh on this machine";
  // What the completion system would get.
  write("ask.zsh",
        "compdef() { : }\ncompset() { : }\n_files() { print -r -- :files }\n"
        "compadd() { print -rl -- ${(P)@[-1]} }\nsource '" +
            completion_script(program(), "zsh") +
            "'\nwords=(\"$@\")\nCURRENT=$#\n_moegate | grep . || true\n");
  const auto in_zsh = [&](const std::string& words) {
    return lines_of(shell("HOME=$PWD zsh -f ask.zsh " + program() + " " + words));
  };
  EXPECT_EQ(in_zsh("ru"), (Lines{"run"}));
  EXPECT_EQ(in_zsh("run --suite tin"), (Lines{"tiny"}));
  EXPECT_EQ(in_zsh("run --suite=tin"), (Lines{"--suite=tiny"}));
  EXPECT_EQ(in_zsh("tune --op moe_sum,moe_al"), (Lines{"moe_sum,moe_align"}));
  EXPECT_EQ(in_zsh("run --module ''"), (Lines{":files"}));
  EXPECT_EQ(in_zsh("list cas"), (Lines{"cases"}));
}

TEST_F(CompletionTest, TheManPageHasEveryCommandAndFlag) {
  const Outcome page = moegate("man");
  ASSERT_EQ(page.exit, 0) << page.err;
  EXPECT_TRUE(page.out.starts_with(".TH MOEGATE 1 ")) << page.out.substr(0, 100);
  for (const std::string& command : complete("''")) {
    if (command.starts_with("-") || command == "help") continue;
    EXPECT_NE(page.out.find("\n.SS moegate " + command + "\n"), std::string::npos) << command;
  }
  EXPECT_NE(page.out.find("\\-\\-case\\-timeout\\fR \\fIT\\fR\n"), std::string::npos);
  for (const char* section : {"EXAMPLES", "EXIT STATUS", "FILES", "ENVIRONMENT"}) {
    EXPECT_NE(page.out.find(std::string("\n.SH ") + section + "\n"), std::string::npos) << section;
  }
  EXPECT_EQ(moegate("man pages").exit, 2);
}

TEST_F(CompletionTest, TheReadmeHasTheTableOfVerbsAndFlags) {
  const Outcome table = moegate("man table");
  ASSERT_EQ(table.exit, 0) << table.err;
  const auto path = std::filesystem::path(MOEGATE_SOURCE_DIR) / "README.md";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no sources";
  const std::string readme = shell("cat '" + path.string() + "'").out;
  EXPECT_NE(readme.find(table.out), std::string::npos)
      << "put what `moegate man table` prints into README.md:\n"
      << table.out;
}

TEST_F(CompletionTest, TheManPageIsGoodRoff) {
  if (shell("command -v groff").exit != 0) GTEST_SKIP() << "no groff on this machine";
  const Outcome shown = shell(program() + " man | groff -man -Tutf8 -Kutf8 -ww -P-cbou");
  EXPECT_EQ(shown.exit, 0);
  EXPECT_EQ(shown.err, "") << "warnings";
  EXPECT_NE(shown.out.find("--case-timeout T"), std::string::npos) << shown.out.substr(0, 2000);
  EXPECT_NE(shown.out.find("moegate report why --against RUN [options]"), std::string::npos);
  EXPECT_NE(shown.out.find("the store that is meant without --db\n"), std::string::npos);
}

}  // namespace
}  // namespace moegate::test
