// SPDX-License-Identifier: Apache-2.0
#include "harness/report/pr_table.h"

#include <cmath>

#include "harness/judge/gate_fixture.h"
#include "harness/report/page.h"

namespace moegate::test {
namespace {

/// A judgement whose log effect has a standard error of 1 % at 5 degrees of freedom.
Judgement judgement(Outcome outcome, double effect) {
  Judgement j;
  j.outcome = outcome;
  j.effect = effect;
  j.se = 0.01;
  j.df = 5;
  return j;
}

Side side(const ByRound& by_round) {
  Side s;
  s.level = evidence_of(by_round);
  s.by_round = s.times = by_round;
  return s;
}

std::string comment(const PrTables& tables) {
  return to_markdown({pr_sections(tables), ""}, kCommentBytes);
}

class PrTableTest : public ::testing::Test {
 protected:
  PrTableTest() {
    t_.base.git_sha = "aaa111";
    t_.head.git_sha = "bbb222";
    t_.head.device = {Backend::cuda, "NVIDIA H200", "nvidia-h200", "GPU-1", 132, 60 << 20, 1, 1,
                      "580"};
    t_.head.protocol = 1;
    t_.head.flush = "read";
    t_.head.timer = "cupti";
    t_.head.command = "ci/ab aaa111 bbb222 --filter 'a|b'";
    t_.result.judged = 7;
    t_.result.blind = 2;
  }
  /// A case measured in three rounds, `factor` times as fast as before.
  CaseVerdict& add(int64_t tokens, double before_us, Outcome outcome, double speedup,
                   const std::string& variant = "fused") {
    const CaseId id{"nightly", "topk_sort/experts=8,tokens=" + std::to_string(tokens), variant};
    t_.cases[id.key] = {"gpt-oss", "topk_sort", "experts=8", tokens, {}};
    t_.base_sides[id] = side({{0, before_us}, {1, before_us}, {2, before_us}});
    const double after = before_us / speedup;
    t_.head_sides[id] = side({{0, after}, {1, after * 1.01}, {2, after / 1.01}});
    CaseVerdict v;
    v.id = id;
    v.outcome = outcome;
    if (outcome != Outcome::identical) v.latency = judgement(outcome, 1 / speedup - 1);
    t_.result.cases.push_back(v);
    return t_.result.cases.back();
  }
  Cost& cost() { return t_.cases.at(t_.result.cases.back().id.key).cost; }
  /// Of the row that was added last, what the outputs' error is on each side.
  void errors(double base, double head) {
    const CaseId id = t_.result.cases.back().id;
    t_.base_sides[id].seeds = {{.seed = 0, .hash = 1, .rel_l2 = base}};
    t_.head_sides[id].seeds = {{.seed = 0, .hash = base == head ? 1u : 2u, .rel_l2 = head}};
  }
  /// The text without the padding of its cells.
  std::string packed() const {
    std::string text;
    for (const char c : comment(t_)) {
      if (c != ' ' || text.back() != ' ') text += c;
    }
    return text;
  }
  /// The row of so many tokens, of the geomean, or of the column names.
  std::string row(const std::string& first) const {
    const std::string text = packed();
    const size_t start = text.find("\n| " + first + " ");
    return start == std::string::npos
               ? "no row"
               : text.substr(start + 1, text.find('\n', start + 1) - start - 1);
  }
  bool says(const std::string& text) const { return comment(t_).find(text) != std::string::npos; }

  PrTables t_;
};

TEST_F(PrTableTest, EveryKindOfRow) {
  add(64, 125, Outcome::improved, 1.25);
  errors(1e-3, 1e-3);
  add(8, 10, Outcome::regressed, 0.8);
  errors(1e-3, 2e-3);
  add(16, 10, Outcome::pass, 1.004);
  add(32, 10, Outcome::identical, 1);
  EXPECT_EQ(row("64"), "| 64 | 125.0 | 100.0 | **1.250x** | 1.218–1.283 | | | = |");
  EXPECT_EQ(row("8"), "| 8 | 10.00 | 12.50 | 0.800x ▼ | 0.780–0.821 | | | +1.00 |");
  EXPECT_EQ(row("16"), "| 16 | 10.00 | 9.96 | ~ | 0.979–1.030 | | | |");
  EXPECT_EQ(row("32"), "| 32 | 10.00 | 10.00 | = | | | | |");
  const std::string text = comment(t_);
  EXPECT_NE(text.find("**topk_sort · `fused` · gpt-oss (nightly) · experts=8**\n\n1 faster / 1 "
                      "slower / 2 same / 0 inconclusive\n\n| "),
            std::string::npos)
      << text;
  // Ascending by number, not by text or order of arrival.
  EXPECT_LT(packed().find("\n| 8 |"), packed().find("\n| 16 |")) << text;
  EXPECT_LT(packed().find("\n| 32 |"), packed().find("\n| 64 |")) << text;
}

TEST_F(PrTableTest, WhatIsNotComparedSaysWhy) {
  add(1, 10, Outcome::inconclusive, 1.5);
  add(2, 10, Outcome::wrong, 2).latency = judgement(Outcome::improved, -0.5);
  add(4, 10, Outcome::missing, 1).latency.reset();
  CaseVerdict& busy = add(8, 10, Outcome::inconclusive, 1);
  busy.latency.reset();
  busy.base = 10;
  busy.head = 40;
  EXPECT_EQ(row("1"), "| 1 | 10.00 | 6.67 | ≈1.500x | 1.462–1.539 | | | |");
  EXPECT_EQ(row("2"), "| 2 | 10.00 | 5.00 | wrong | | | | |");
  EXPECT_EQ(row("4"), "| 4 | 10.00 | 10.00 | missing | | | | |");
  EXPECT_EQ(row("8"), "| 8 | 10.00 | 10.00 | ≈0.250x | | | | |");
  EXPECT_TRUE(says("0 faster / 0 slower / 0 same / 2 inconclusive / 2 not compared"));
  EXPECT_EQ(row("**geomean").substr(0, 18), "| **geomean (1)** ");
}

TEST_F(PrTableTest, TheGeomeanIsOverAllRowsWithAnIntervalFromTheRounds) {
  add(8, 10, Outcome::improved, 1.44);
  add(16, 10, Outcome::inconclusive, 1);
  add(32, 10, Outcome::identical, 1);
  add(64, 10, Outcome::identical, 1);
  // 1.44^(1/4). Rounds: the mean over 4 rows is 0, -x and +x from it, x = log(1.01) / 2; its sd is
  // x, its reach t(0.975, 2) x / sqrt(3) = 4.302653 * 0.00497517 / 1.7320508 = 0.0123589.
  EXPECT_EQ(row("**geomean"), "| **geomean (4)** | | | **1.095x** | 1.082–1.109 | | | |");
}

TEST_F(PrTableTest, AGeomeanThatMayBeOneIsNoNumber) {
  add(8, 10, Outcome::pass, 1.001);
  EXPECT_EQ(row("**geomean"), "| **geomean (1)** | | | ~ | 0.977–1.026 | | | |");
  t_ = {};
  add(8, 10, Outcome::regressed, 0.5);
  EXPECT_EQ(row("**geomean"), "| **geomean (1)** | | | 0.500x ▼ | 0.488–0.513 | | | |");
  t_ = {};
  add(8, 10, Outcome::identical, 1);
  EXPECT_EQ(row("**geomean"), "| **geomean (1)** | | | = | | | | |");
}

TEST_F(PrTableTest, RoundsThatNotAllRowsHaveAreNoEvidenceForTheGeomean) {
  add(8, 10, Outcome::improved, 2);
  t_.head_sides.begin()->second.by_round[7] = 1e-3;  // ten thousand times as fast, alone
  t_.base_sides.begin()->second.by_round[7] = 10;
  add(16, 10, Outcome::improved, 2);
  EXPECT_EQ(row("**geomean"), "| **geomean (2)** | | | **2.000x** | 1.951–2.050 | | | |");
}

TEST_F(PrTableTest, AGainThatCostsAccuracyIsMarked) {
  add(8, 10, Outcome::improved, 2);
  errors(1e-3, 1.3e-3);
  EXPECT_NE(row("8").find("**2.000x** ⚠"), std::string::npos) << row("8");
  EXPECT_NE(row("8").find("| +0.38 |"), std::string::npos) << row("8");
  errors(1e-3, 1.1e-3);
  EXPECT_EQ(row("8").find("⚠"), std::string::npos) << row("8");
  errors(1e-3, NAN);
  EXPECT_NE(row("8").find("⚠"), std::string::npos) << row("8");
}

TEST_F(PrTableTest, RatesAndCeilings) {
  t_.ceilings = {{"read_bytes_per_s", 4e12}, {"bf16_flops", 1e15}};
  add(8, 20, Outcome::pass, 1);
  cost() = {.flops = 1e6, .read_bytes = 30e6, .write_bytes = 10e6};  // 10 MB stay in the cache
  EXPECT_NE(row("tokens").find("| GB/s |"), std::string::npos) << row("tokens");
  EXPECT_EQ(row("8"), "| 8 | 20.00 | 20.00 | ~ | 0.975–1.026 | 2000.0 | 37.5 (mem) | |");
  add(4096, 20, Outcome::pass, 1);
  cost() = {.flops = 10e9, .read_bytes = 30e6, .write_bytes = 0};  // 333 operations per byte
  EXPECT_NE(row("tokens").find("| rate |"), std::string::npos) << row("tokens");
  EXPECT_EQ(row("8"), "| 8 | 20.00 | 20.00 | ~ | 0.975–1.026 | 2000.0 GB/s | 37.5 (mem) | |");
  EXPECT_EQ(row("4096"),
            "| 4096 | 20.00 | 20.00 | ~ | 0.975–1.026 | 500.0 TFLOPS | 50.0 (comp) | |");
  t_.ceilings.clear();
  EXPECT_EQ(row("8"), "| 8 | 20.00 | 20.00 | ~ | 0.975–1.026 | 2000.0 GB/s | | |");
}

TEST_F(PrTableTest, TheFooterSaysHowItWasMeasured) {
  add(8, 10, Outcome::pass, 1);
  EXPECT_TRUE(
      says("<sub>Protocol 1, cold, flush read, timer cupti, 3 processes per arm in drawn "
           "order, one NVIDIA H200 (GPU-1), 580, base aaa111, head bbb222. "))
      << comment(t_);
  EXPECT_TRUE(says("told from ±1 %"));
  EXPECT_TRUE(
      says("2 of 7 rows are blind to 5 %. To repeat: `ci/ab aaa111 bbb222 --filter "
           "'a|b'`</sub>\n"));
  EXPECT_FALSE(says("yardstick"));
  t_.result.judged = t_.result.blind = 0;
  EXPECT_TRUE(says("for all rows together), ≈ a number that is not certain. To repeat: "))
      << comment(t_);
  t_.head.dirty = true;
  t_.head.device.backend = Backend::host;
  t_.head.command = "echo `date`\n</sub>";
  EXPECT_TRUE(says("head bbb222 **DIRTY**")) << comment(t_);
  EXPECT_TRUE(says("ratios to the yardstick"));
  EXPECT_TRUE(says("`` echo `date` </sub> ``</sub>")) << comment(t_);
}

TEST_F(PrTableTest, TextIsEscaped) {
  add(8, 10, Outcome::pass, 1, "a → b");
  t_.cases.begin()->second.model = "<b>|*x*";
  EXPECT_TRUE(says("`a → b` · \\<b\\>\\|\\*x\\* (nightly)")) << comment(t_);
}

TEST_F(PrTableTest, AVariantATableAndACommentHasItsLimit) {
  for (int i = 0; i < 200; ++i) add(8, 10, Outcome::pass, 1, "v" + std::to_string(i));
  const std::string text = comment(t_);
  EXPECT_GT(text.size(), kCommentBytes * 9 / 10);
  EXPECT_LE(text.size(), kCommentBytes);
  EXPECT_NE(text.find(" more tables with "), std::string::npos);
  EXPECT_NE(text.find("</sub>"), std::string::npos);
}

TEST_F(PrTableTest, TheGeomeanStaysWhenRowsGo) {
  for (int i = 0; i < 1000; ++i) add(i, 10, Outcome::pass, 1);
  const std::string text = comment(t_);
  EXPECT_LE(text.size(), kCommentBytes);
  EXPECT_GT(text.size(), kCommentBytes * 9 / 10);
  EXPECT_LT(packed().find("\n| 0 |"), packed().find("\n| **geomean (1000)** |")) << text;
  EXPECT_EQ(packed().find("\n| 999 |"), std::string::npos);
  EXPECT_NE(text.find(" more left out for size."), std::string::npos);
}

class PrTableStoreTest : public GateTest {
 protected:
  /// Judges two stored runs, paired by round.
  PrTables judged(int64_t base, int64_t head, const std::optional<VariantPair>& pair = {}) {
    Store store = Store::open(db_, Store::Mode::read);
    PrTables t = read_pr_tables(store, base, head, pair);
    Expectation expectation{"base", "", false, t.base_sides};
    t.result = judge(t.head_sides, {{"nightly", expectation}}, {t.limits});
    return t;
  }
};

TEST_F(PrTableStoreTest, TwoRunsOfAStore) {
  const int64_t base = add_run();
  info_.git_sha = "def456";
  const int64_t head = add_run([](Row& row, int) {
    if (is(row, "16", "fused")) row.result.span_ns /= 2;
    return true;
  });
  const PrTables t = judged(base, head);
  const CaseId faster{"nightly", "topk_sort/tokens=16", "fused"};
  EXPECT_NEAR(evidence_of(t.base_sides.at(faster).times).level(), 10, 0.001);
  EXPECT_NEAR(evidence_of(t.head_sides.at(faster).times).level(), 5, 0.001);
  EXPECT_EQ(t.cases.at(faster.key).tokens, 16);
  EXPECT_EQ(t.cases.at(faster.key).model, "gpt-oss-120b");
  EXPECT_EQ(t.cases.at(faster.key).config, "");
  EXPECT_EQ(t.cases.at(faster.key).cost.write_bytes, 3);
  const std::string text = comment(t);
  EXPECT_NE(text.find("**2.000x**"), std::string::npos) << text;
  EXPECT_NE(text.find("base abc123, head def456"), std::string::npos) << text;
}

TEST_F(PrTableStoreTest, TwoVariantsAreOneCase) {
  const auto only = [](const char* variant) {
    return [=](Row& row, int) {
      if (row.variant == "fused") row.result.span_ns *= 0.8;
      return row.variant == variant;
    };
  };
  const int64_t base = add_run(only("chain")), head = add_run(only("fused"));
  const PrTables t = judged(base, head, VariantPair{"chain", "fused"});
  EXPECT_EQ(t.base_sides.size(), 2u);
  const Side& head_side = t.head_sides.at({"nightly", "topk_sort/tokens=8", "chain → fused"});
  EXPECT_NEAR(head_side.level.level(), 8, 0.001);
  EXPECT_NE(comment(t).find("**1.250x**"), std::string::npos) << comment(t);
  Store store = Store::open(db_, Store::Mode::read);
  EXPECT_THROW(read_pr_tables(store, base, head, VariantPair{"fused", "chain"}), Error);
}

TEST_F(PrTableStoreTest, AHostsSpeedupIsThatOfTheRatio) {
  info_.device.backend = Backend::host;
  info_.timer = "clock";
  const int64_t base = add_run();
  const int64_t head = add_run([](Row& row, int) {
    row.result.span_ns *= 3;  // a slower hour
    if (row.variant == "fused") row.result.ratio /= 2;
    return true;
  });
  PrTables t = judged(base, head);
  const std::string text = comment(t);
  EXPECT_NE(text.find("10.00 |      30.00 | **2.000x**"), std::string::npos) << text;
  EXPECT_NE(text.find("10.00 |      30.00 |"), std::string::npos) << text;
}

TEST_F(PrTableStoreTest, RunsOfTwoDevicesAreRefused) {
  const int64_t base = add_run();
  info_.device.uuid = "GPU-2";
  const int64_t head = add_run();
  Store store = Store::open(db_, Store::Mode::read);
  EXPECT_THROW(read_pr_tables(store, base, head), Error);
}

}  // namespace
}  // namespace moegate::test
