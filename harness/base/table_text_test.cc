// SPDX-License-Identifier: Apache-2.0
#include "harness/base/table.h"

#include <gtest/gtest.h>

#include <sstream>

namespace moegate::test {
namespace {

Table wide_table() {
  Table table{{"case", "variant", "us", "95 % interval", "launches", "status", "why"}, {}};
  for (const char* tokens : {"8", "16", "1024"}) {
    const bool wrong = std::string(tokens) == "16";
    table.rows.push_back(
        {{std::string("topk_sort/experts=256,hidden=7168,tokens=") + tokens + ",topk=8"},
         {"fused_warp_per_token"},
         {wrong ? "" : "12.25", true},
         {"12.11–12.40"},
         {"3", true},
         {.text = wrong ? "wrong" : "ok", .tone = wrong ? Tone::bad : Tone::plain},
         {wrong ? "output 'ids' differs from the truth in 12 of 128 elements" : ""}});
  }
  return table;
}

void expect_fitting(const std::string& text, size_t width) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), width) << line;
}

TEST(TableText, ATableThatFitsIsAsItIs) {
  const Table table{{"name", "us"},
                    {{{"a"}, {"1.5", true}}, {{"b|\x1b"}, {"10", true, false, "⚠"}}}};
  EXPECT_EQ(render_text(table, {80, false}),
            "name    us\n────  ────\na      1.5\nb|\xef\xbf\xbd   10 ⚠\n");
}

TEST(TableText, WhatAllRowsShareIsSaidOnceAboveThem) {
  EXPECT_EQ(render_text(wide_table(), {60, false}),
            "all rows: variant fused_warp_per_token, 95 % interval\n"
            "12.11–12.40, launches 3\n"
            "case: topk_sort/experts=256,hidden=7168,tokens=…,topk=8\n\n"
            "case              us  status  why\n"
            "─────────────  ─────  ──────  ──────────────────────────────\n"
            "…tokens=8…     12.25  ok\n"
            "…tokens=16…           wrong   output 'ids' differs from the\n"
            "                              truth in 12 of 128 elements\n"
            "…tokens=1024…  12.25  ok\n");
}

TEST(TableText, LongKeysStandAboveTheirRows) {
  Table table{{"case", "variant", "us"}, {}};
  for (const char* key : {"sort/experts=256,hidden=7168", "sum/rows=1024,columns=4096"}) {
    for (const char* us : {"1", "20"}) table.rows.push_back({{key}, {"fused"}, {us, true}});
  }
  EXPECT_EQ(render_text(table, {26, false}),
            "all rows: variant fused\n\n"
            "  us\n"
            "  ──\n"
            "sort/experts=256,\n"
            "    hidden=7168\n"
            "   1\n"
            "  20\n"
            "sum/rows=1024,columns=4096\n"
            "   1\n"
            "  20\n");
}

TEST(TableText, WhatIsKeptStaysAndWhatIsBeforeItStandsAbove) {
  Table table{{"model", "tokens", "variant", "Before (us)", "After (us)", "Speedup", "path"}, {}};
  for (const char* tokens : {"1", "8"}) {
    for (const char* variant : {"chain2", "fused_cluster"}) {
      const std::string number = tokens + std::to_string(table.rows.size());
      table.rows.push_back({{"deepseek"},
                            {tokens, true},
                            {variant},
                            {number, true},
                            {number, true},
                            {number + "x"},
                            {variant}});
    }
  }
  table.rows[0][0] = table.rows[1][0] = {"gpt-oss"};
  table.keep = {"variant", "After (us)", "Speedup"};
  EXPECT_EQ(render_text(table, {36, false}),
            "there was no space for: Before (us),\n"
            "path (choose with --columns, or use\n"
            "another --format)\n\n"
            "                 After\n"
            "  variant         (us)  Speedup\n"
            "  ─────────────  ─────  ───────\n"
            "model gpt-oss, tokens 1\n"
            "  chain2            10  10x\n"
            "  fused_cluster     11  11x\n"
            "model deepseek, tokens 8\n"
            "  chain2            82  82x\n"
            "  fused_cluster     83  83x\n");
}

TEST(TableText, TimesLoseTheirSeconds) {
  const Table table{
      {"started", "run"},
      {{{"2026-11-22T04:40:44Z"}, {"1", true}}, {{"2026-11-23T04:42:12Z"}, {"2", true}}}};
  EXPECT_EQ(render_text(table, {22, false}),
            "started           run\n"
            "────────────────  ───\n"
            "2026-11-22 04:40    1\n"
            "2026-11-23 04:42    2\n");
}

TEST(TableText, NoLineIsLongerThanTheScreen) {
  for (size_t width = 20; width <= 160; ++width) {
    expect_fitting(render_text(wide_table(), {width, false}), width);
  }
  Table numbers{{"variant"}, {{{"a"}}, {{"b"}}}};
  for (int i = 0; i < 12; ++i) {
    numbers.columns.push_back("column " + std::to_string(i));
    for (auto& row : numbers.rows) row.push_back({std::to_string(1000 + i + row[0].text[0]), true});
  }
  for (size_t width = 20; width <= 160; ++width) {
    expect_fitting(render_text(numbers, {width, false}), width);
  }
  const std::string text = render_text(numbers, {60, false});
  EXPECT_NE(text.find("there was no space for: column 6, column 7, column 8, column\n9, "
                      "column 10, column 11"),
            std::string::npos)
      << text;
}

TEST(TableText, OneRowThatIsTooWideStandsBelowEachOther) {
  const Table table{{"case", "us", "why"}, {{{"a/b=1"}, {"2", true}, {"too long to stand here"}}}};
  EXPECT_EQ(render_text(table, {22, false}),
            "case  a/b=1\nus    2\nwhy   too long to\n      stand here\n");
}

TEST(TableText, ColoursSayWhatARowIs) {
  const Table table{{"status"},
                    {{{"ok"}},
                     {{.text = "wrong", .tone = Tone::bad}},
                     {{.text = "noisy", .tone = Tone::doubtful}},
                     {{.text = "faster", .tone = Tone::good}}}};
  EXPECT_EQ(render_text(table, {80, true}),
            "\033[1mstatus\033[0m\n──────\nok\n\033[31mwrong\033[0m\n\033[33mnoisy\033[0m\n"
            "\033[32mfaster\033[0m\n");
  EXPECT_EQ(render_text(table, {80, false}).find('\033'), std::string::npos);
}

using Keys = std::vector<std::string>;

TEST(KeyFold, SharedPartsAreSaidOnce) {
  const FoldedKeys folded = fold_keys(
      {"sort/experts=8,tokens=1,cache=cold,topk=2", "sort/experts=8,tokens=20,cache=warm,topk=2"});
  EXPECT_EQ(folded.keys, (Keys{"…tokens=1,cache=cold…", "…tokens=20,cache=warm…"}));
  EXPECT_EQ(folded.shared, "sort/experts=8,tokens=…,cache=…,topk=2");
}

TEST(KeyFold, KeysMayHaveOtherParts) {
  const FoldedKeys folded = fold_keys({"sort/tokens=1,topk=2", "sum/k=7,tokens=1"});
  EXPECT_EQ(folded.keys, (Keys{"sort…topk=2", "sum/k=7…"}));
  EXPECT_EQ(folded.shared, "…/tokens=1,topk=…");
}

TEST(KeyFold, OnlyKeysOfPartsAreFolded) {
  for (const Keys& keys : {Keys{}, Keys{"a/b=1"}, Keys{"one, two", "one, three"},
                           Keys{"a/b=1", "plain"}, Keys{"a/b=1", "c/b=2"}}) {
    EXPECT_EQ(fold_keys(keys).shared, "");
    EXPECT_EQ(fold_keys(keys).keys, Keys{});
  }
}

}  // namespace
}  // namespace moegate::test
