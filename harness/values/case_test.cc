// SPDX-License-Identifier: Apache-2.0
#include "harness/values/case.h"

#include <gtest/gtest.h>

#include "harness/base/test_fixture.h"

namespace moegate::test {
namespace {

Case sample() {
  Case c;
  c.suite = "tiny";
  c.section = "ties";
  c.op = "topk_sort";
  c.defaults = {{"unit", "32"}, {"scale", "1"}, {"launch", "stream"}};
  c.params = c.defaults.get();
  c.params["tokens"] = "13";
  c.params["experts"] = "60";
  return c;
}

TEST(Case, KeyLeavesOutDefaultsAndSorts) {
  Case c = sample();
  EXPECT_EQ(c.key(), "topk_sort/experts=60,tokens=13");
  c.params["unit"] = "16";
  EXPECT_EQ(c.key(), "topk_sort/experts=60,tokens=13,unit=16");
}

TEST(Case, KeyOfDefaultsAloneIsTheOperator) {
  Case c = sample();
  c.params = c.defaults.get();
  EXPECT_EQ(c.key(), "topk_sort");
}

TEST(Case, NewParameterWithDefaultKeepsTheKey) {
  Case c = sample();
  const std::string before = c.key();
  auto defaults = c.defaults.get();
  defaults["new"] = "off";
  c.defaults = defaults;
  c.params["new"] = "off";
  EXPECT_EQ(c.key(), before);
}

TEST(Case, SectionAndSuiteAreNotIdentity) {
  Case c = sample();
  const std::string before = c.key();
  c.suite = c.section = "other";
  EXPECT_EQ(c.key(), before);
}

TEST(Case, WhereNamesFileAndSection) {
  EXPECT_EQ(sample().where(), "tiny.suite [ties]");
}

TEST(Case, ReadsNumbersToTheirLimits) {
  const Case c = sample();
  EXPECT_EQ(c.get_int("tokens", 13, 13), 13);
  EXPECT_EQ(c.get_double("scale", 0, 1), 1.0);
  EXPECT_EQ(c.get_choice("launch", {"graph", "stream"}), 1u);
}

TEST(Case, RefusesWhatIsNoInteger) {
  Case c = sample();
  for (const char* text :
       {"", "x", "13x", " 13", "1e3", "1.5", "12", "14", "99999999999999999999"}) {
    c.params["tokens"] = text;
    const std::string message = refusal_of([&] { c.get_int("tokens", 13, 13); });
    EXPECT_EQ(message, std::string("tiny.suite [ties]: tokens = '") + text +
                           "' is not an integer in [13, 13]; change it there");
  }
}

TEST(Case, RefusesWhatIsNoNumber) {
  Case c = sample();
  for (const char* text : {"", "nan", "inf", "1,5", "-0.5", "2.0001", "0x"}) {
    c.params["scale"] = text;
    const std::string message = refusal_of([&] { c.get_double("scale", 0, 2); });
    EXPECT_NE(message.find("scale = '" + std::string(text) + "'"), std::string::npos) << message;
  }
  c.params["scale"] = "2.5e-1";
  EXPECT_EQ(c.get_double("scale", 0, 2), 0.25);
}

TEST(Case, RefusesUnknownChoiceListingThem) {
  const std::string message = refusal_of([] { sample().get_choice("launch", {"eager", "graph"}); });
  EXPECT_EQ(message,
            "tiny.suite [ties]: launch = 'stream' is none of eager, graph; use one of these");
}

TEST(Case, RefusesUndeclaredParameter) {
  const std::string message = refusal_of([] { sample().get("hidden"); });
  EXPECT_NE(message.find("tiny.suite [ties]"), std::string::npos) << message;
  EXPECT_NE(message.find("'hidden'"), std::string::npos) << message;
}

TEST(Case, CommonParametersHaveTheirDefaults) {
  std::map<std::string, std::string> defaults;
  for (const Param& param : common_params()) defaults[param.name] = param.default_value;
  const std::map<std::string, std::string> expected = {
      {"launch", "stream"}, {"cache", "cold"}, {"seed", "1"}};
  EXPECT_EQ(defaults, expected);
}

}  // namespace
}  // namespace moegate::test
