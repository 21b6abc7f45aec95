// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/evidence.h"

#include <gtest/gtest.h>

#include <map>

#include "harness/base/error.h"
#include "harness/base/rng.h"
#include "harness/baseline/baseline.h"

namespace moegate::test {
namespace {

/// One process of one row: 10 us, samples that spread over several ticks.
Level level(int round, const std::string& code = "c0de") {
  Level l;
  l.key = "op/tokens=8";
  l.suite = "nightly";
  l.round = round;
  l.variant = l.result.variant = "fused";
  l.result.timer = "cupti";
  l.result.samples = 200;
  l.result.judged = Judged::span;
  l.result.tick_ns = 32;
  l.result.span_ns = 10000 + 10 * round;
  l.result.min_ns = 9800;
  l.result.code = code;
  return l;
}

Side side_of(const std::vector<Level>& levels) {
  const Sides sides = collect(levels);
  EXPECT_EQ(sides.size(), 1u);
  return sides.begin()->second;
}

TEST(Evidence, LevelsAreKeptByRoundForPairing) {
  const Side side = side_of({level(0), level(3)});
  EXPECT_EQ(side.level.n, 2);
  EXPECT_EQ(side.by_round, (ByRound{{0, 10.0}, {3, 10.03}}));
}

TEST(Evidence, TheTickLimitsOnlySamplesThatDoNotSpreadOverIt) {
  EXPECT_EQ(side_of({level(0)}).tick, 0);
  Level still = level(0);
  still.result.min_ns = still.result.span_ns - 40;
  EXPECT_DOUBLE_EQ(side_of({still}).tick, 32.0 / 10000);
}

TEST(Evidence, CodeIsKnownOnlyWhenEveryProcessSaysTheSame) {
  EXPECT_EQ(side_of({level(0), level(1)}).code, "c0de");
  EXPECT_EQ(side_of({level(0), level(1, "0ther")}).code, "");
  EXPECT_EQ(side_of({level(0), level(1, "")}).code, "");
}

TEST(Evidence, TheRowSaysWhatIsJudged) {
  // Numbers that look like another kind's do not make it one.
  Level l = level(0);
  l.result.ratio = l.result.ratio_low = l.result.ratio_high = 1;
  EXPECT_DOUBLE_EQ(side_of({l}).level.level(), 10);
  l.result.judged = Judged::ratio;
  EXPECT_DOUBLE_EQ(side_of({l}).level.level(), 1) << "a variant as fast as its yardstick";
  EXPECT_EQ(side_of({l}).judged, Judged::ratio);
  l.result.judged = Judged::is_yardstick;
  EXPECT_EQ(side_of({l}).judged, Judged::is_yardstick);
  l.result.judged = Judged::none;
  EXPECT_EQ(side_of({l}).level.n, 0) << "nothing was timed";
}

TEST(Evidence, AYardstickIsKnownOnlyWhenEveryProcessSaysTheSame) {
  const auto of = [](int round, const std::string& name, const std::string& code) {
    Level l = level(round);
    l.result.judged = Judged::ratio;
    l.result.ratio = 0.5;
    l.result.mean_ratio = 0.6;
    l.result.mean_ns = 12000;
    l.result.yardstick = name;
    l.result.yardstick_code = code;
    return l;
  };
  const Side side = side_of({of(0, "chain", "c4a1"), of(1, "chain", "c4a1")});
  EXPECT_EQ(side.yardstick, "chain@c4a1");
  EXPECT_DOUBLE_EQ(side.tail, 1.2);
  EXPECT_EQ(side.rounds(Quantity::time), (ByRound{{0, 10.0}, {1, 10.01}}));
  EXPECT_EQ(side.mean_rounds(Quantity::level), (ByRound{{0, 0.6}, {1, 0.6}}));
  EXPECT_EQ(side.mean_rounds(Quantity::time), (ByRound{{0, 12.0}, {1, 12.0}}));
  EXPECT_EQ(compared(side, side), Quantity::level);
  const Side other = side_of({of(0, "chain", "c4a1"), of(1, "chain", "0ther")});
  EXPECT_EQ(other.yardstick, "");
  EXPECT_EQ(compared(side, other), Quantity::time);
  EXPECT_EQ(side_of({of(0, "chain", "")}).yardstick, "");
}

TEST(Evidence, TheLevelsOfARowComeTogether) {
  Level other = level(0);
  other.variant = other.result.variant = "plain";
  EXPECT_EQ(collect({level(0), level(1), other}).size(), 2u);
  EXPECT_THROW(collect({level(0), other, level(1)}), Error);
}

TEST(Evidence, ABaselineStatesWhatItsRowsAre) {
  Level one = level(0);
  EXPECT_EQ(to_baseline({}, "nightly", collect({one}), "B0001").header.judged, Judged::span);
  one.result.judged = Judged::ratio;
  one.result.ratio = 0.8;
  Level two = one;
  two.round = 1;
  EXPECT_EQ(to_baseline({}, "nightly", collect({one, two}), "B0001").header.judged, Judged::ratio);
}

TEST(InOrder, FindsWhatTheMapFindsInWhateverOrder) {
  std::map<int, int> map;
  for (int i = 0; i < 200; ++i) map[3 * i] = i;
  InOrder ascending(map), descending(map), drawn(map);
  for (int key = -2; key < 610; ++key) {
    EXPECT_EQ(ascending.find(key), map.find(key)) << key;
    EXPECT_EQ(ascending.find(key), map.find(key)) << key << " again";
    EXPECT_EQ(descending.find(610 - key), map.find(610 - key)) << 610 - key;
    const int any = static_cast<int>(random_bits(7, 0, static_cast<uint64_t>(key + 2)) % 620);
    EXPECT_EQ(drawn.find(any), map.find(any)) << any;
  }
}

TEST(InOrder, OfAnEmptyMapIsNothing) {
  const std::map<int, int> map;
  InOrder in_order(map);
  EXPECT_EQ(in_order.find_or_null(3), nullptr);
}

}  // namespace
}  // namespace moegate::test
