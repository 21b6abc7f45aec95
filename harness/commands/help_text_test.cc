// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/help_text.h"

#include <gtest/gtest.h>

#include "harness/base/error.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"

namespace moegate {
namespace {

namespace po = boost::program_options;

int documented(const Args& args) {
  std::string db = "results.sqlite", list = "latency,accuracy,coverage,environment";
  bool check = false;
  int most = 2000;
  po::options_description how("How to judge");
  how.add_options()  //
      ("fail-on", po::value(&list)->default_value(list)->value_name("LIST"),
       "what fails, of latency, accuracy, coverage and what else there is to say about it")  //
      ("most", po::value(&most)->default_value(most)->value_name("N"), "");
  po::options_description flags("What to judge");
  flags.add_options()                                                             //
      ("db", po::value(&db)->default_value(db)->value_name("PATH"), "the store")  //
      ("check", po::bool_switch(&check), "compare only");
  flags.add(how);
  parse("moegate judge --db PATH [options]\n       moegate judge RUN [options]", flags, args);
  return 0;
}

TEST(HelpText, IsReadAsItIsPrinted) {
  const HelpText help = help_of({"judge", documented, "judges"});
  EXPECT_EQ(help.usages, (std::vector<std::string>{"moegate judge --db PATH [options]",
                                                   "moegate judge RUN [options]"}));
  const std::vector<HelpGroup> groups = {
      {"What to judge",
       {{"--db", "PATH", "results.sqlite", "the store"},
        {"--check", "", "", "compare only"},
        {"--help", "", "", "this text"}}},
      {"How to judge",
       {{"--fail-on", "LIST", "latency,accuracy,coverage,environment",
         "what fails, of latency, accuracy, coverage and what else there is to say about it"},
        {"--most", "N", "2000", ""}}}};
  EXPECT_EQ(help.groups, groups);
}

TEST(HelpText, FindsAFlagInAnyGroup) {
  const HelpText help = help_of({"judge", documented, "judges"});
  ASSERT_NE(help.find("--most"), nullptr);
  EXPECT_EQ(help.find("--most")->if_unset, "2000");
  EXPECT_EQ(help.find("--least"), nullptr);
}

TEST(HelpText, OfSomethingElseIsRefused) {
  EXPECT_THROW(parse_help(""), Error);
  EXPECT_THROW(parse_help("usage: moegate run\n\n  --db PATH the store\n"), Error);
  EXPECT_THROW(parse_help("usage: moegate run\n\n  -h [ --help ] this text\n"), Error);
}

}  // namespace
}  // namespace moegate
