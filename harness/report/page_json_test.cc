// SPDX-License-Identifier: Apache-2.0
#include "harness/report/page_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace moegate {
namespace {

using Json = nlohmann::json;

Json json_of(const Block& block) {
  return Json::parse(to_json({{{0, {block}}}, ""}, "t"))["blocks"][0];
}

TEST(PageJson, TextIsAsciiWithoutMarkupOrControls) {
  const std::string text = json_string("</script>&\xc3\xa9\xe2\x80\xae\xff\n\"\\");
  EXPECT_EQ(text.find_first_of("<>&"), std::string::npos);
  for (const char c : text) EXPECT_TRUE(c >= ' ' && c < 0x7f);
  EXPECT_EQ(Json::parse(text), "</script>&\u00e9\ufffd\ufffd \"\\");
}

TEST(PageJson, NumbersAreNumbersWhereJsonHasThem) {
  const Table table{{"x"},
                    {{{"-3.5e-7", true}},
                     {{"0.5", true}},
                     {{"+1.2 %", true}},
                     {{"007", true}},
                     {{"1.", true}},
                     {{"inf", true}},
                     {{"", true}},
                     {{"12"}}}};
  const Json rows = Json::parse(json_table(table))["rows"];
  EXPECT_EQ(rows[0][0], -3.5e-7);
  EXPECT_EQ(rows[1][0], 0.5);
  for (const size_t i : {2, 3, 4, 5, 6}) EXPECT_EQ(rows[i][0]["n"], 1) << i;
  EXPECT_EQ(rows[2][0]["t"], "+1.2 %");
  EXPECT_EQ(rows[7][0], "12");
}

TEST(PageJson, CellsAndSpansKeepTheirFlags) {
  Table::Cell cell{.text = "1.5x", .number = true, .bold = true, .mark = "!", .link = "night=1"};
  EXPECT_EQ(Json::parse(json_table({{"x"}, {{cell}}}))["rows"][0][0],
            Json::parse(R"({"t":"1.5x","n":1,"b":1,"m":"!","l":"night=1"})"));
  EXPECT_EQ(json_of(Paragraph{{{bold("a"), code("b"), linked("c", "start")}}, /*small=*/true}),
            Json::parse(R"({"p":[[{"t":"a","b":1},{"t":"b","c":1},{"t":"c","l":"start"}]],)"
                        R"("small":1})"));
}

TEST(PageJson, BlocksSayWhatTheyAre) {
  EXPECT_EQ(json_of(Heading{"h"}), Json::parse(R"({"h":"h"})"));
  EXPECT_EQ(json_of(List{{{plain("x")}}}), Json::parse(R"({"l":[[{"t":"x"}]]})"));
  EXPECT_EQ(json_of(Commands{{{"To repeat", "ls"}}}), Json::parse(R"({"k":[["To repeat","ls"]]})"));
  EXPECT_EQ(json_of(Rows{{{"x"}, {}}}), Json::parse(R"({"t":{"columns":["x"],"rows":[]}})"));
}

TEST(PageJson, AChartIsCalledWithoutItsFolder) {
  const Json chart =
      json_of(Chart{"/a/b/history.vg.json", "T", {{"x"}, {}}, {{"unit", "us"}, {"base", "1.5"}}});
  EXPECT_EQ(chart["c"], "history");
  EXPECT_EQ(chart["title"], "T");
  EXPECT_EQ(chart["signals"], Json::parse(R"({"unit":"us","base":1.5})"));
}

}  // namespace
}  // namespace moegate
