// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/suite_text.h"

#include <gtest/gtest.h>

#include "harness/base/ini_file.h"

namespace moegate {
namespace {

TEST(SuiteText, CasesThatDifferInTokensAloneShareASection) {
  SuiteText suite;
  for (const char* tokens : {"16", "8", "16"}) {
    suite.add("sort", {"sort", {{"tokens", tokens}, {"topk", "2"}}});
  }
  suite.add("from: elsewhere\n[x]", {"sort", {{"tokens", "8"}, {"topk", "4"}}});
  suite.add("from: elsewhere\n[x]", {"sort", {{"topk", "4"}}});
  EXPECT_EQ(suite.cases(), 4u);
  EXPECT_EQ(suite.text("About\nthis"),
            "# About this\n"
            "\n[sort]\nop = sort\ntokens = 8, 16\ntopk = 2\n"
            "\n[from--elsewhere--x--sort]\n# from: elsewhere [x]\nop = sort\ntokens = 8\ntopk = 4\n"
            "\n[from--elsewhere--x--sort-2]\n# from: elsewhere [x]\nop = sort\ntopk = 4\n");
  EXPECT_EQ(parse_ini("x.suite", suite.text("about")).sections.size(), 4u);
}

TEST(SuiteText, WhatASuiteCannotSayIsAFault) {
  EXPECT_EQ(fault_of_case({"op", {{"topk-groups", "1"}, {"routing", "replay:a b/c=\xc3\xa4.npy"}}}),
            "");
  for (const char* op : {"", "a b", "a]"}) EXPECT_NE(fault_of_case({op, {}}), "") << op;
  for (const char* name : {"", "op", "a=b", "a.b", "[a"}) {
    EXPECT_NE(fault_of_case({"op", {{name, "1"}}}), "") << name;
  }
  for (const char* value : {"", " ", "a,b", "a#b", "a\nop = b", "\x7f", "a "}) {
    EXPECT_NE(fault_of_case({"op", {{"name", value}}}), "") << value;
  }
}

}  // namespace
}  // namespace moegate
