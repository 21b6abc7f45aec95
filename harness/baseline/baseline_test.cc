// SPDX-License-Identifier: Apache-2.0
#include "harness/baseline/baseline.h"

#include <gtest/gtest.h>

#include <fstream>

#include "harness/base/error.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/test_fixture.h"

namespace moegate::test {
namespace {

namespace fs = std::filesystem;

const char* const kText =
    "#moegate-baseline 1\n"
    "#class nvidia-h200  suite nightly  protocol 1  timer cupti  flush read  gpu GPU-3f2c  judged "
    "span\n"
    "topk_sort/experts=128,tokens=8 chain3\n"
    "\tspan_us=5.123 sd=0.12% n=3 error=1.2e-06 det=1 by=B0001\n"
    "topk_sort/experts=128,tokens=16 chain3\n"
    "\tspan_us=50.1 sd=0% n=12 error=0 det=0 by=B0002 tail=1.02 enqueue=6.25\n";

class BaselineTest : public ::testing::Test {
 protected:
  fs::path file(const std::string& text) {
    std::ofstream(dir_ / "b.tsv", std::ios::binary) << text;
    return dir_ / "b.tsv";
  }
  std::string refusal(const std::string& text) {
    return refusal_of([&] { read_baseline(file(text)); });
  }

  ScratchFolder dir_;
};

std::string replaced(const std::string& from, const std::string& to) {
  std::string text = kText;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST_F(BaselineTest, WhatIsReadIsWrittenAgain) {
  const Baseline b = read_baseline(file(kText));
  EXPECT_EQ(b.header.klass, "nvidia-h200");
  EXPECT_EQ(b.header.protocol, 1);
  EXPECT_FALSE(b.ratios());
  const BaselineRow& row = b.rows.at({"topk_sort/experts=128,tokens=8", "chain3"});
  EXPECT_EQ(row.level, 5.123);
  EXPECT_DOUBLE_EQ(row.sd, 0.0012);
  EXPECT_EQ(row.n, 3);
  EXPECT_EQ(row.error, 1.2e-6);
  EXPECT_TRUE(row.deterministic);
  EXPECT_EQ(row.by, "B0001");
  write_baseline(dir_ / "new" / "folder" / "b.tsv", b);
  EXPECT_EQ(read_file(dir_ / "new" / "folder" / "b.tsv"), kText);
}

TEST_F(BaselineTest, OptionalFieldsAreKeptAndMayBeAbsent) {
  const std::string text = replaced("judged span", "judged span  program 9f31  commit abc123");
  const Baseline plain = read_baseline(file(kText));
  EXPECT_EQ(plain.header.program, "");
  EXPECT_EQ(plain.rows.begin()->second.anchor, 5.123) << "the first recorded level";
  EXPECT_EQ(plain.rows.begin()->second.code, "");
  const Baseline b = read_baseline(file(text));
  EXPECT_EQ(b.header.program, "9f31");
  EXPECT_EQ(b.header.git_sha, "abc123");
  EXPECT_EQ(format_baseline(b), text);
  const std::string full = replaced("by=B0001", "by=B0001 anchor=5.02 code=c0de out=0a");
  const BaselineRow row = read_baseline(file(full)).rows.begin()->second;
  EXPECT_EQ(row.anchor, 5.02);
  EXPECT_EQ(row.code, "c0de");
  EXPECT_EQ(row.out, "0a");
  EXPECT_EQ(format_baseline(read_baseline(file(full))), full);
  EXPECT_NE(refusal(replaced("by=B0001", "by=B0001 anchor=0")).find("b.tsv:4: the anchor"),
            std::string::npos);
  EXPECT_NE(refusal(replaced("by=B0001", "by=B0001 code=a code=b")).find("b.tsv:4: 'code'"),
            std::string::npos);
}

TEST_F(BaselineTest, TheEnvironmentIsKeptAndMayBeAbsent) {
  EXPECT_TRUE(read_baseline(file(kText)).header.environment.empty());
  const std::string text = replaced("judged span\n",
                                    "judged span\n"
                                    R"(#environment ["package","triton","3.6.0","c0de"])"
                                    "\n"
                                    R"(#environment ["variable","MY_FLAGS","-a \"b\"\n\tc",""])"
                                    "\n");
  const Baseline b = read_baseline(file(text));
  EXPECT_EQ(b.header.environment,
            (EnvironmentItems{{"package", "triton", "3.6.0", "c0de"},
                              {"variable", "MY_FLAGS", "-a \"b\"\n\tc", ""}}));
  EXPECT_EQ(b.rows.size(), 2u);
  EXPECT_EQ(format_baseline(b), text);
  const EnvironmentItem folders{"variable", "PYTHONPATH", "/home/me", "", false};
  EXPECT_TRUE(to_baseline({}, "s", {}, "B0001", {folders}).header.environment.empty())
      << "what does not count names folders";
}

TEST_F(BaselineTest, PrecisionIsKeptAndMayBeAbsent) {
  EXPECT_EQ(read_baseline(file(kText)).rows.begin()->second.rounding.graded, 0) << "an older file";
  const std::string full = replaced(
      "by=B0001",
      "excess=0.0203 mis=0.000213,0.00391,0.0078 rows=2e-06,3.1e-05 cols=0,9e-05 by=B0001");
  const BeyondRounding r = read_baseline(file(full)).rows.begin()->second.rounding;
  EXPECT_GT(r.graded, 0);
  EXPECT_EQ(r.excess, 0.0203);
  EXPECT_EQ(r.misrounded, 0.000213);
  EXPECT_EQ(r.column_misrounded, 0.0078);
  EXPECT_EQ(r.row_scale_most, 3.1e-5);
  EXPECT_EQ(r.column_scale, 0);
  EXPECT_EQ(format_baseline(read_baseline(file(full))), full);
  const auto why = [&](const char* text) { return refusal(replaced("by=B0001", text)); };
  EXPECT_NE(
      why("by=B0001 excess=1").find("b.tsv:4: write all of excess, mis, rows and cols, or none"),
      std::string::npos);
  EXPECT_NE(why("by=B0001 mis=1,2,3,4").find("b.tsv:4: mis=1,2,3,4 has more than 3 numbers"),
            std::string::npos);
  EXPECT_NE(why("by=B0001 rows=1").find("b.tsv:4: rows= is not a number"), std::string::npos);
}

TEST_F(BaselineTest, TheHeaderSaysThatRowsAreRatios) {
  std::string text = replaced("judged span", "judged ratio");
  for (size_t at; (at = text.find("span_us")) != std::string::npos;) text.replace(at, 7, "ratio");
  const Baseline b = read_baseline(file(text));
  EXPECT_TRUE(b.ratios()) << "though it names a gpu";
  EXPECT_EQ(format_baseline(b), text);
  EXPECT_NE(
      refusal(replaced("judged span", "judged ratio")).find("b.tsv:4: 'span_us' is unknown here"),
      std::string::npos);
  EXPECT_NE(
      refusal(replaced("judged span", "judged cycles")).find("b.tsv:2: judged is 'cycles', not"),
      std::string::npos);
}

TEST_F(BaselineTest, AFileOfAnOlderProgramHasRatiosWhereItNamesNoGpu) {
  EXPECT_FALSE(read_baseline(file(replaced("  judged span", ""))).ratios());
  std::string host = replaced("GPU-3f2c  judged span", "-");
  for (size_t at; (at = host.find("span_us")) != std::string::npos;) host.replace(at, 7, "ratio");
  EXPECT_TRUE(read_baseline(file(host)).ratios());
}

TEST_F(BaselineTest, ErrorsNameFileAndLine) {
  const std::pair<std::string, std::string> broken[] = {
      {replaced("baseline 1", "baseline 2"), "b.tsv:1:"},
      {replaced("#class nvidia-h200  ", "#"), "b.tsv:2: 'class' is missing"},
      {replaced("flush read", "flush read  colour red"), "b.tsv:2: unknown field 'colour'"},
      {replaced("protocol 1", "protocol one"), "b.tsv:2: protocol=one"},
      {replaced(" chain3", ""), "b.tsv:3:"},
      {replaced("\tspan", "span"), "b.tsv:4:"},
      {replaced("n=3", "n=0"), "b.tsv:4:"},
      {replaced("n=3", "n=3 n=3"), "b.tsv:4: 'n'"},
      {replaced("n=3 ", ""), "b.tsv:4: 'n' is missing"},
      {replaced("n=3", "n=3 spill=0"), "b.tsv:4: 'spill' is unknown"},
      {replaced("n=3", "n=3 level=0"), "b.tsv:4: 'level' is unknown"},
      {replaced("sd=0.12%", "sd=0.12"), "b.tsv:4: sd=0.12 is not in percent"},
      {replaced("5.123", "nan"), "b.tsv:4: span_us=nan"},
      {replaced("5.123", "0"), "b.tsv:4:"},
      {replaced("5.123", "5,123"), "b.tsv:4:"},
      {replaced("tokens=16", "tokens=8"), "b.tsv:5:"},
      {replaced("=6.25\n", "=6.25\nlast/x v\n"), "b.tsv:7: the values of 'last/x v' are missing"},
      {replaced("topk", "<<<<<<< HEAD\ntopk"), "b.tsv:3: is a merge conflict"},
      {replaced("chain3\n", "chain3\r\n"), "b.tsv:3:"},
      {replaced("topk", "#environment [\"tool\",\"nvcc\",1,\"\"]\ntopk"), "b.tsv:3: '[\"tool\","},
      {replaced("topk", "#environment [\"tool\",\"nvcc\",\"1\"]\ntopk"), "is not [\"kind\","},
      {"", "is empty"},
  };
  for (const auto& [text, message] : broken) {
    EXPECT_NE(refusal(text).find(message), std::string::npos)
        << refusal(text) << "\nfor " << message;
  }
  EXPECT_THROW(read_baseline(dir_ / "none.tsv"), Error);
}

class SettledTest : public BaselineTest {
 protected:
  /// What is written where a run changed the baseline so, and what is said of it.
  template <class Change>
  Baseline settled(const Change& change) {
    Baseline now = before_;
    for (auto& [k, row] : now.rows) row.by = "B0009";
    change(now);
    changes_.clear();
    return settle(before_, now, changes_);
  }

  const std::pair<std::string, std::string> key_ = {"topk_sort/experts=128,tokens=8", "chain3"};
  Baseline before_ = read_baseline(file(kText));
  std::vector<BaselineChange> changes_;
};

TEST_F(SettledTest, OnlyALevelThatMovedIsRewritten) {
  const Baseline near = settled([&](Baseline& now) { now.rows[key_].level = 5.14; });  // +0.33 %
  EXPECT_TRUE(changes_.empty());
  EXPECT_EQ(format_baseline(near), kText);
  const Baseline moved = settled([&](Baseline& now) { now.rows[key_].level = 4.9; });
  ASSERT_EQ(changes_.size(), 1u);
  EXPECT_EQ(changes_[0].what, "5.123 -> 4.9 us (-4.4 %)");
  EXPECT_EQ(moved.rows.at(key_).by, "B0009");
  EXPECT_EQ(moved.rows.rbegin()->second.by, "B0002");
}

TEST_F(SettledTest, BatchInvarianceStaysWhereNobodyAskedAgain) {
  before_.rows[key_].invariance = Invariance::kept;
  const Baseline slower = settled([&](Baseline& now) {
    now.rows[key_].invariance = Invariance::unknown;
    now.rows[key_].level *= 2;
  });
  ASSERT_EQ(changes_.size(), 1u);
  EXPECT_EQ(slower.rows.at(key_).invariance, Invariance::kept);
  const std::string text = format_baseline(slower);
  EXPECT_NE(text.find(" inv=1 "), std::string::npos) << text;
}

TEST_F(SettledTest, WhatElseChangedOfARowIsNamed) {
  settled([&](Baseline& now) { now.rows[key_].deterministic = false; });
  ASSERT_EQ(changes_.size(), 1u);
  EXPECT_EQ(changes_[0].what, "no longer deterministic");
  settled([&](Baseline& now) { now.rows[key_].invariance = Invariance::broken; });
  ASSERT_EQ(changes_.size(), 1u);
  EXPECT_EQ(changes_[0].what, "not batch-invariant");
  const Baseline known = settled([&](Baseline& now) { now.rows[key_].code = "c0de"; });
  ASSERT_EQ(changes_.size(), 1u);
  EXPECT_EQ(changes_[0].what, "now known: machine code");
  EXPECT_EQ(known.rows.at(key_).code, "c0de");
  before_.rows[key_].out = "0a";
  settled([&](Baseline& now) { now.rows[key_].out = "0b"; });
  ASSERT_EQ(changes_.size(), 1u);
  EXPECT_EQ(changes_[0].what, "other outputs");
  settled([&](Baseline& now) {
    now.rows.erase(key_);
    now.rows[{"a", "b"}] = {{}, 1, 0, 3};
  });
  ASSERT_EQ(changes_.size(), 2u);
  EXPECT_EQ(changes_[0].what, "added");
  EXPECT_EQ(changes_[1].what, "removed");
}

TEST_F(SettledTest, AnotherGpuIsAConditionAndAnotherProgramIsNone) {
  settled([&](Baseline& now) {
    now.header.program = "other";
    now.header.git_sha = "other";
  });
  EXPECT_TRUE(changes_.empty()) << "what measured is no condition";
  const Baseline elsewhere = settled([&](Baseline& now) { now.header.gpu = "GPU-2"; });
  EXPECT_EQ(changes_.size(), 2u);
  EXPECT_EQ(elsewhere.rows.at(key_).by, "B0009");
}

TEST_F(BaselineTest, AnAnchorMovesOnlyToTheFaster) {
  const Baseline before = read_baseline(file(kText));
  const auto anchor_after = [&](double level) {
    Baseline now = before;
    now.rows.begin()->second.level = level;
    std::vector<BaselineChange> changes;
    return settle(before, now, changes).rows.begin()->second.anchor;
  };
  EXPECT_EQ(anchor_after(4.9), 4.9);
  EXPECT_EQ(anchor_after(5.3), 5.123);
  EXPECT_EQ(anchor_after(5.124), 5.123) << "did not move";
}

TEST_F(BaselineTest, ABlessingIsOfTheKindOfItsRows) {
  const Baseline before = read_baseline(file(kText));
  const auto kind = [&](auto change) {
    Baseline now = before;
    change(now, now.rows.begin()->second);
    return blessing_kind(before, now, "B0009", 0.02);
  };
  EXPECT_EQ(blessing_kind(Baseline{}, before, "B0001", 0.02), "record");
  EXPECT_EQ(kind([](Baseline&, BaselineRow& row) { row.level *= 0.9, row.by = "B0009"; }),
            "ratchet");
  EXPECT_EQ(kind([](Baseline&, BaselineRow& row) { row.level *= 1.019, row.by = "B0009"; }),
            "ratchet");
  EXPECT_EQ(kind([](Baseline&, BaselineRow& row) { row.level *= 1.021, row.by = "B0009"; }),
            "accept_regression");
  EXPECT_EQ(kind([](Baseline& now, BaselineRow&) { now.rows.erase(now.rows.begin()); }), "retire");
  const auto add = [](Baseline& now, BaselineRow&) { now.rows[{"a", "b"}].by = "B0009"; };
  EXPECT_EQ(kind(add), "record");
  EXPECT_EQ(kind([](Baseline& now, BaselineRow&) { now.header.flush = "write"; }), "epoch");
}

TEST_F(BaselineTest, TheLedgerOnlyGrows) {
  const fs::path ledger = dir_ / "baselines" / "blessings.tsv";
  EXPECT_EQ(next_blessing(ledger), "B0001");
  append_blessing(ledger, {"B0001", "2026-11-21", "record", "me", "nvidia-h200", "nightly", "run 3",
                           "abc", "first", "9f31c0a2", "5a5a"});
  const std::string first = read_file(ledger);
  EXPECT_EQ(first,
            "#id\tdate\tkind\tauthor\tclass\tsuite\trun\tcommit\treason\tprogram\tsha256\tbefore\n"
            "B0001\t2026-11-21\trecord\tme\tnvidia-h200\tnightly\trun 3\tabc\tfirst\t9f31c0a2\t"
            "5a5a\t" +
                sha256(first.substr(0, first.find("B0001"))) + "\n");
  EXPECT_EQ(next_blessing(ledger), "B0002");
  append_blessing(ledger, {"B0002", "2026-11-22", "ratchet", "me", "nvidia-h200", "nightly", "",
                           "abc", "two\nlines\there", ""});
  EXPECT_EQ(
      read_file(ledger),
      first +
          "B0002\t2026-11-22\tratchet\tme\tnvidia-h200\tnightly\t-\tabc\ttwo lines here\t-\t-\t" +
          sha256(first) + "\n");
  std::ofstream(ledger, std::ios::app) << "oops\n";
  EXPECT_THROW(next_blessing(ledger), Error);
}

}  // namespace
}  // namespace moegate::test
