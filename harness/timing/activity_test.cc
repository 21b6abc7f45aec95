// SPDX-License-Identifier: Apache-2.0
// Interval arithmetic and flags on records written by hand.
#include "harness/timing/activity.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>

namespace moegate::test {
namespace {

Activity op(uint64_t start, uint64_t end, int shape = 0) {
  return {start, end, 1, shape};
}

Recorded launch_of(std::vector<Activity> launch, std::vector<Activity> flush = {}) {
  return {std::move(flush), std::move(launch)};
}

Sample with_clock(double mhz) {
  Sample s;
  s.sm_mhz = mhz;
  return s;
}

TEST(Summarise, SequenceWithGapsHasSpanLargerThanBusy) {
  Recorded r = launch_of({op(100, 110), op(120, 150), op(150, 160)});
  const Sample s = summarise(r, {});
  EXPECT_EQ(s.flags, 0u);
  EXPECT_EQ(s.kernels, 3);
  EXPECT_DOUBLE_EQ(s.span_ns, 60);
  EXPECT_DOUBLE_EQ(s.busy_ns, 50);
  EXPECT_DOUBLE_EQ(s.sum_ns, 50);
}

TEST(Summarise, ConcurrentOperationsAreCountedOnceInBusy) {
  Recorded r = launch_of({op(130, 140), op(100, 200), op(150, 220)});
  const Sample s = summarise(r, {});
  EXPECT_DOUBLE_EQ(s.span_ns, 120);
  EXPECT_DOUBLE_EQ(s.busy_ns, 120);
  EXPECT_DOUBLE_EQ(s.sum_ns, 180);
  EXPECT_EQ(r.launch.front().start_ns, 100u) << "sorted by start";
}

TEST(Summarise, OperationInsideAnotherAddsNothingToBusy) {
  Recorded r = launch_of({op(100, 200), op(110, 120), op(300, 310)});
  EXPECT_DOUBLE_EQ(summarise(r, {}).busy_ns, 110);
}

TEST(Summarise, NothingRecordedIsMissing) {
  Recorded r = launch_of({}, {op(1, 2)});
  EXPECT_EQ(summarise(r, {}).flags, kMissingRecord);
}

TEST(Summarise, ZeroReversedOrForeignTimestampsAreBad) {
  for (const Activity& a : {op(0, 0), op(0, 10), op(20, 10), op(5, 20), op(50, 2000)}) {
    Recorded r = launch_of({op(30, 40), a});
    const Sample s = summarise(r, {10, 1000});
    EXPECT_EQ(s.flags, kBadTimestamp) << a.start_ns << ".." << a.end_ns;
    EXPECT_EQ(s.span_ns, 0);
  }
}

TEST(Summarise, StartBeforeTheFlushEndedIsFlagged) {
  Recorded touching = launch_of({op(100, 110)}, {op(50, 100)});
  EXPECT_EQ(summarise(touching, {}).flags, 0u);
  Recorded early = launch_of({op(99, 110)}, {op(20, 30), op(50, 100)});
  EXPECT_EQ(summarise(early, {}).flags, kOverlapsFlush);
}

TEST(KernelSets, MostFrequentSetOfTheFirstBatchIsTheReference) {
  // The first sample lacks a kernel; it must not make the other three invalid.
  std::vector<Recorded> recorded = {launch_of({op(1, 2, 7)}), launch_of({op(1, 2, 7), op(3, 4, 8)}),
                                    launch_of({op(3, 4, 8), op(1, 2, 7)}),
                                    launch_of({op(1, 2, 7), op(3, 4, 9)})};
  std::vector<Sample> samples(4);
  KernelSets kernel_sets;
  kernel_sets.flag(samples, recorded);
  EXPECT_EQ(samples[0].flags, kMissingRecord);
  EXPECT_EQ(samples[1].flags, 0u);
  EXPECT_EQ(samples[2].flags, 0u) << "order does not matter";
  EXPECT_EQ(samples[3].flags, 0u) << "another kernel now and then is what the variant does";

  std::vector<Recorded> later = {launch_of({op(1, 2, 7)}),
                                 launch_of({op(1, 2, 7), op(3, 4, 8), op(5, 99, 9)})};
  std::vector<Sample> next(2);
  kernel_sets.flag(next, later);
  EXPECT_EQ(next[0].flags, kMissingRecord) << "the reference outlives the batch";
  EXPECT_EQ(next[1].flags, 0u) << "a slow path with one kernel more counts";
}

TEST(KernelSets, EarliestWinsATieAndInvalidSamplesTeachNothing) {
  std::vector<Recorded> recorded = {launch_of({op(0, 0, 1), op(0, 0, 1), op(0, 0, 1)}),
                                    launch_of({op(1, 2, 2), op(3, 4, 2)}),
                                    launch_of({op(1, 2, 3)})};
  std::vector<Sample> samples(3);
  samples[0].flags = kBadTimestamp;
  KernelSets kernel_sets;
  kernel_sets.flag(samples, recorded);
  EXPECT_EQ(samples[1].flags, 0u);
  EXPECT_EQ(samples[2].flags, kMissingRecord);
}

TEST(KernelSets, EachProblemSetHasItsOwnReference) {
  std::vector<Recorded> recorded = {launch_of({op(1, 2, 1)}), launch_of({op(1, 2, 2)}),
                                    launch_of({op(1, 2, 1)}), launch_of({op(1, 2, 2)})};
  std::vector<Sample> samples(4);
  samples[1].set = samples[3].set = 1;
  KernelSets kernel_sets;
  kernel_sets.flag(samples, recorded);
  for (const Sample& s : samples) EXPECT_EQ(s.flags, 0u);
}

TEST(ClockWatch, FlagsBelowNinetyFivePercentOfTheMedian) {
  std::vector<Sample> samples(20, with_clock(1980));
  samples[3] = with_clock(1870);
  samples[4] = with_clock(1890);
  samples[5] = with_clock(0);
  ClockWatch watch;
  watch.flag(samples);
  EXPECT_EQ(samples[3].flags, kSlowClock);
  EXPECT_EQ(samples[4].flags, 0u);
  EXPECT_EQ(samples[5].flags, 0u) << "unknown is not slow";
}

TEST(ClockWatch, FollowsAClockThatSettlesElsewhere) {
  ClockWatch watch;
  std::vector<Sample> fast(200, with_clock(1980));
  watch.flag(fast);
  for (int batch = 0; batch < 3; ++batch) {
    std::vector<Sample> slow(100, with_clock(1700));
    watch.flag(slow);
    EXPECT_EQ(slow[0].flags, batch == 0 ? kSlowClock : 0u) << batch;
  }
}

TEST(OperationLog, RowsInOrderOfStartWithGaps) {
  ShapeTable shapes;
  OperationShape kernel;
  kernel.name = "_ZN7moegate4sortEv";
  kernel.grid[0] = 132, kernel.grid[1] = kernel.grid[2] = 1;
  const int second = shapes.id_of(OperationShape{.name = "memset"});
  const int first = shapes.id_of(kernel);
  EXPECT_EQ(shapes.id_of(kernel), first);
  OperationLog log;
  for (int i = 0; i < 10; ++i) {
    log.add(std::vector<Activity>{op(100, 110, first), op(115, 120, second), op(118, 130, first)});
  }
  const std::vector<KernelRow> rows = log.rows(shapes);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].name, "moegate::sort()");
  EXPECT_EQ(rows[0].grid, "132x1x1");
  EXPECT_EQ(rows[0].cluster, "");
  EXPECT_DOUBLE_EQ(rows[0].gap_ns, 0);
  EXPECT_EQ(rows[1].name, "memset");
  EXPECT_DOUBLE_EQ(rows[1].gap_ns, 5);
  EXPECT_DOUBLE_EQ(rows[2].ns, 12);
  EXPECT_DOUBLE_EQ(rows[2].gap_ns, -2) << "overlaps the one before";
}

TEST(MeasuredTick, IgnoresRoundingOfTheClockConversion) {
  const std::vector<double> durations = {864, 895, 864, 928, 897, 992, 863, 865};
  EXPECT_DOUBLE_EQ(measured_tick(durations), 32);
  EXPECT_DOUBLE_EQ(measured_tick(std::vector<double>{640, 640, 641}), 0);
}

/// A launch of two kernels and a fill, whose code the test sets.
class LaunchCode : public testing::Test {
 protected:
  std::string code(size_t sets = 1) {
    ShapeTable shapes;
    LaunchLog log;
    for (size_t set = 0; set < launches_.size(); ++set) {
      std::vector<Activity> launch = launches_[set];
      for (Activity& a : launch) a.shape = shapes.id_of(kinds_[static_cast<size_t>(a.shape)]);
      log.add(set, launch);
    }
    return log.code(sets, shapes, [&](const std::string& name) -> std::optional<uint64_t> {
      const auto found = codes_.find(name);
      if (found == codes_.end()) return std::nullopt;
      return found->second;
    });
  }

  static OperationShape kernel(const std::string& name) {
    return {name, {8, 1, 1}, {256, 1, 1}, {0, 0, 0}, 32, 1024, 2048};
  }

  std::vector<OperationShape> kinds_ = {kernel("first"), kernel("second"), {.name = "memset"}};
  std::map<std::string, uint64_t> codes_ = {{"first", 1}, {"second", 2}};
  std::vector<std::vector<Activity>> launches_ = {
      {{10, 20, 5, 0}, {20, 30, 6, 1}, {30, 40, 7, 2, 64}}};
};

TEST_F(LaunchCode, TimesIdsAndNamesDoNotEnter) {
  const std::string before = code();
  ASSERT_EQ(before.size(), 16u);
  for (Activity& a : launches_[0]) {
    a.start_ns += 1000;
    a.end_ns += 1007;
    a.correlation += 300;
  }
  kinds_[0].name = "renamed";
  codes_["renamed"] = codes_["first"];
  std::swap(kinds_[0], kinds_[1]);  // other numbers in the table of shapes
  std::swap(launches_[0][0].shape, launches_[0][1].shape);
  EXPECT_EQ(code(), before);
}

TEST_F(LaunchCode, MachineCodeGeometryDetailAndOrderEnter) {
  const std::string before = code();
  const auto changes = [&](auto&& edit) {
    const auto kinds = kinds_;
    const auto codes = codes_;
    const auto launches = launches_;
    edit();
    const bool differs = code() != before;
    kinds_ = kinds;
    codes_ = codes;
    launches_ = launches;
    return differs;
  };
  EXPECT_TRUE(changes([&] { codes_["second"] = 3; }));
  EXPECT_TRUE(changes([&] { kinds_[0].grid[2] = 2; }));
  EXPECT_TRUE(changes([&] { kinds_[0].block[0] = 128; }));
  EXPECT_TRUE(changes([&] { kinds_[0].cluster[0] = 2; }));
  EXPECT_TRUE(changes([&] { kinds_[0].registers = 40; }));
  EXPECT_TRUE(changes([&] { kinds_[0].static_shared = 0; }));
  EXPECT_TRUE(changes([&] { kinds_[0].dynamic_shared = 0; }));
  EXPECT_TRUE(changes([&] { kinds_[2].name = "memcpy"; }));
  EXPECT_TRUE(changes([&] { launches_[0][2].detail = 65; }));
  EXPECT_TRUE(changes([&] { launches_[0].pop_back(); }));
  EXPECT_TRUE(changes([&] { std::swap(launches_[0][0].shape, launches_[0][1].shape); }));
  EXPECT_FALSE(changes([] {}));
}

TEST_F(LaunchCode, OrderIsThatOfLaunchingNotOfStarting) {
  const std::string before = code();
  std::swap(launches_[0][0], launches_[0][1]);
  std::swap(launches_[0][0].start_ns, launches_[0][1].start_ns);
  EXPECT_EQ(code(), before) << "two streams";
}

TEST_F(LaunchCode, CoversEveryProblemSet) {
  const std::string one = code();
  launches_.push_back(launches_[0]);
  const std::string two = code(2);
  EXPECT_NE(two, one);
  launches_[1][0].shape = 1;
  EXPECT_NE(code(2), two);
  EXPECT_EQ(code(1), one);
}

TEST_F(LaunchCode, UnknownCodeOrASetNotSeenLeavesItEmpty) {
  EXPECT_EQ(code(2), "");
  EXPECT_EQ(code(0), "");
  codes_.erase("second");
  EXPECT_EQ(code(), "");
}

}  // namespace
}  // namespace moegate::test
