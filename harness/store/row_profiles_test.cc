// SPDX-License-Identifier: Apache-2.0
#include "harness/store/row_profiles.h"

#include "harness/store/store_fixture.h"

namespace moegate::test {
namespace {

class RowProfilesTest : public StoreFixture {
 protected:
  RowProfilesTest() {
    info_ = host_run();
    info_.program = "hash";
    info_.device.klass = "gpu";
  }

  /// A run of one row, whose counter or span is `value`.
  int64_t add(const std::string& task, double value, const std::string& status = "complete") {
    Store store = Store::open(path_, Store::Mode::write);
    info_.task = task;
    const int64_t run = store.begin_run(info_);
    const int64_t process = store.begin_process(run, 0, 1);
    Result result;
    result.variant = "chain";
    if (task == "measure") {
      result.timer = "cupti";
      result.samples = 1;
      result.span_ns = value;
    } else {
      result.metrics = {{"bytes", "bytes", value}};
      result.stalls = {{0, 16, "LDG", "", "wait", static_cast<int64_t>(value)}};
    }
    result.status = row_status_;
    store.add_result(process, {"s", "", "op", {{"tokens", "8"}}, {}}, {1, 2, 3}, {}, result);
    store.end_process(process, "");
    store.end_run(run, status);
    return run;
  }
  RowProfile profile(int64_t run) {
    Store store = Store::open(path_, Store::Mode::read);
    return read_row_profiles(store, run).at({"op/tokens=8", "chain"});
  }

  RunInfo info_;
  Status row_status_ = Status::ok;
};

TEST_F(RowProfilesTest, JoinsTheNewestOfTheSameProgramAndClass) {
  const int64_t run = add("measure", 100);
  EXPECT_FALSE(profile(run).counted);
  add("counters", 1);
  add("counters", 2);
  add("stalls", 3);
  add("energy", 4);
  row_status_ = Status::unsupported;
  add("counters", 5);
  row_status_ = Status::ok;
  add("counters", 6, "interrupted");
  info_.program = "another";
  add("counters", 7);
  info_.program = "hash";
  info_.device.klass = "another";
  add("counters", 8);

  const RowProfile found = profile(run);
  ASSERT_TRUE(found.measured && found.counted && found.stalled && found.metered);
  EXPECT_EQ(found.measured->span_ns, 100);
  EXPECT_EQ(found.counted->metrics.at(0).value, 2);
  EXPECT_EQ(found.stalled->stalls.at(0).samples, 3);
  EXPECT_EQ(found.metered->metrics.at(0).value, 4);
  EXPECT_EQ(found.device.klass, "gpu");
}

TEST_F(RowProfilesTest, WhatWasAskedForItComesFirstWholeOrNot) {
  const int64_t run = add("measure", 100);
  info_.tags[kWhyTag] = std::to_string(run);
  info_.program = "unknown to it";
  add("counters", 1, "interrupted");
  info_.tags.clear();
  info_.program = "hash";
  add("counters", 2);
  EXPECT_EQ(profile(run).counted->metrics.at(0).value, 1);
}

TEST_F(RowProfilesTest, AnUnknownProgramIsLikeNoOther) {
  info_.program = "";
  const int64_t run = add("measure", 100);
  add("counters", 1);
  EXPECT_FALSE(profile(run).counted);
}

}  // namespace
}  // namespace moegate::test
