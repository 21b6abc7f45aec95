// SPDX-License-Identifier: Apache-2.0
#include "harness/site/page_json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

namespace moegate::test {
namespace {

using Json = nlohmann::json;

Json json_of(const std::vector<Block>& blocks) {
  PagesJson pages;
  pages.add("p", {{{0, blocks}}, ""}, "t");
  return Json::parse(pages.json());
}

Json json_of(const Block& block) {
  return json_of(std::vector{block})["pages"]["p"]["blocks"][0];
}

/// The cells of a table's column, as they are in the file.
Json column_of(const Table& table, size_t column) {
  const Json packed = Json::parse(json_table(table));
  const Json cells = packed["table"]["cells"][column];
  return cells.is_number() ? packed["shared"][cells.get<size_t>()] : cells;
}

LevelChart levels(std::vector<LevelChart::Point> points) {
  const LevelChart::Run first{"7", "2026-01-01 03:00", "abc"}, second{"9", "2026-01-02 03:00", "d"};
  return {.file = "/a/history.vg.json",
          .title = "T",
          .unit = "us",
          .signals = {{"margin", "0.015"}},
          .runs = std::make_shared<const std::vector<LevelChart::Run>>(std::vector{first, second}),
          .points = std::move(points),
          .steps = {{1, 0.08}}};
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
  const Json cells = column_of(table, 0);
  EXPECT_EQ(cells[0], -3.5e-7);
  EXPECT_EQ(cells[1], 0.5);
  for (const size_t i : {2, 3, 4, 5, 6}) EXPECT_EQ(cells[i]["n"], 1) << i;
  EXPECT_EQ(cells[2]["t"], "+1.2 %");
  EXPECT_EQ(cells[7], "12");
}

TEST(PageJson, CellsAndSpansKeepTheirFlags) {
  Table::Cell cell{.text = "1.5x", .number = true, .bold = true, .mark = "!"};
  EXPECT_EQ(column_of({{"x"}, {{cell}}}, 0)[0], Json::parse(R"({"t":"1.5x","n":1,"b":1,"m":"!"})"));
  EXPECT_EQ(json_of(Paragraph{{{bold("a"), code("b"), linked("c", "start")}}, /*small=*/true}),
            Json::parse(R"({"p":[[{"t":"a","b":1},{"t":"b","c":1},{"t":"c","l":"start"}]],)"
                        R"("small":1})"));
}

TEST(PageJson, BlocksSayWhatTheyAre) {
  EXPECT_EQ(json_of(Heading{"h"}), Json::parse(R"({"h":"h"})"));
  EXPECT_EQ(json_of(List{{{plain("x")}}}), Json::parse(R"({"l":[[{"t":"x"}]]})"));
  EXPECT_EQ(json_of(Commands{{{"To repeat", "ls"}}}), Json::parse(R"({"k":[["To repeat","ls"]]})"));
  EXPECT_EQ(json_of(Rows{{{"x"}, {}}}),
            Json::parse(R"({"t":{"columns":["x"],"n":0,"cells":[[]]}})"));
}

TEST(PageJson, AChartIsCalledWithoutItsFolder) {
  const Json chart =
      json_of(Chart{"/a/b/history.vg.json", "T", {{"x"}, {}}, {{"unit", "us"}, {"base", "1.5"}}});
  EXPECT_EQ(chart["c"], "history");
  EXPECT_EQ(chart["title"], "T");
  EXPECT_EQ(chart["signals"], Json::parse(R"({"unit":"us","base":1.5})"));
}

TEST(PageJson, WhatRepeatsIsWrittenOnce) {
  Table table{{"case", "us", "outcome"}, {}, {{"case", "case={case}"}}};
  for (const char* us : {"1.5", "2.5", "3.5"})
    table.rows.push_back({{std::string("a long name, with ") + us}, {us, true}, {"pass"}});
  EXPECT_EQ(column_of(table, 0).size(), 3u);
  EXPECT_EQ(column_of(table, 2), Json::parse(R"(["pass"])")) << "the same in all rows";
  const Json json = json_of(std::vector<Block>{Rows{table}, Chart{"c.vg.json", "T", table, {}}});
  const Json &one = json["pages"]["p"]["blocks"][0]["t"], &other = json["pages"]["p"]["blocks"][1];
  EXPECT_EQ(one, other["t"]);
  EXPECT_EQ(one["n"], 3);
  EXPECT_EQ(one["links"]["case"], "case={case}");
  ASSERT_TRUE(one["cells"][0].is_number());
  EXPECT_EQ(json["shared"][one["cells"][0].get<size_t>()][2], "a long name, with 3.5");
  EXPECT_EQ(one["cells"][1], Json::parse("[1.5,2.5,3.5]")) << "shorter than its number would be";
}

TEST(PageJson, LevelsAreNumbersAndRunsAreNamedOnce) {
  const LevelChart chart = levels(
      {{.run = 0, .log = 0, .reach = 0.00372F, .processes = 5},
       {.run = 1, .log = 1, .reach = NAN, .processes = 1, .code = LevelChart::Code::changed}});
  const Json json = json_of(std::vector<Block>{chart, chart});
  const Json& block = json["pages"]["p"]["blocks"][0];
  EXPECT_EQ(block, json["pages"]["p"]["blocks"][1]);
  EXPECT_EQ(json["shared"].size(), 1u);
  EXPECT_EQ(json["shared"][block["runs"].get<size_t>()][1],
            Json::parse(R"(["9","2026-01-02 03:00","d"])"));
  EXPECT_EQ(block["y"], "history");
  EXPECT_EQ(block["at"], Json::parse("[0,1]"));
  EXPECT_EQ(block["level"], Json::parse("[1,2.7183]"));
  EXPECT_EQ(block["reach"], Json::parse("[372,null]")) << "in 1e-5 of the logarithm";
  EXPECT_EQ(block["code"], Json::parse("[0,2]"));
  EXPECT_EQ(block["steps"], Json::parse("[[1,8]]"));
  LevelChart environment = chart;
  environment.of_environment = {1};
  EXPECT_EQ(json_of(environment)["steps"], Json::parse("[[1,8,1]]"));
  EXPECT_EQ(block["signals"], Json::parse(R"({"margin":0.015})"));
}

}  // namespace
}  // namespace moegate::test
