// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/lanes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "harness/base/test_fixture.h"

namespace moegate::test {
namespace {

using DeviceNames = std::vector<std::string>;

/// What a list of devices is refused with.
std::string devices_refusal(const std::string& spec) {
  return refusal_of([&] { devices_of(spec); });
}

TEST(Devices, AListNamesGpusOneByOne) {
  EXPECT_EQ(devices_of("cuda:0,1"), (DeviceNames{"cuda:0", "cuda:1"}));
  EXPECT_EQ(devices_of("cuda:3,cuda:01"), (DeviceNames{"cuda:3", "cuda:1"}));
  EXPECT_EQ(devices_of("host"), DeviceNames{"host"});
  EXPECT_EQ(devices_of("anything"), DeviceNames{"anything"}) << "the worker refuses it";
  EXPECT_EQ(gpu_number("cuda:12"), 12);
}

TEST(Devices, AListHasOneSpelling) {
  EXPECT_EQ(device_list(devices_of("cuda:3,cuda:01")), "cuda:3,1");
  EXPECT_EQ(device_list({"auto"}), "auto");
}

TEST(Devices, AListIsRefusedByNameAndWithARemedy) {
  EXPECT_EQ(devices_refusal("cuda:0,00"),
            "--device cuda:0,00: names cuda:0 twice; name each GPU once");
  for (const char* spec : {"host,cuda:0", "cuda:0,host", "cuda,1", "cuda:0,", ",", "cuda:0,-1",
                           "cuda:0,1234", "auto,cuda:1", "cuda:0, 1", "cuda:all,cuda:0"}) {
    EXPECT_NE(devices_refusal(spec).find("a run on several devices needs numbered GPUs"),
              std::string::npos)
        << spec << ": " << devices_refusal(spec);
    EXPECT_NE(devices_refusal(spec).find("write cuda:0,1"), std::string::npos);
  }
}

PlannedCase planned_case(int rows) {
  PlannedCase planned;
  planned.spec.op = "fake";
  planned.spec.params["rows"] = std::to_string(rows);
  planned.variants = {"fused", "plain"};
  return planned;
}

std::vector<PlannedCase> planned_cases(int count) {
  std::vector<PlannedCase> cases;
  for (int rows = 0; rows < count; ++rows) cases.push_back(planned_case(rows));
  return cases;
}

std::vector<std::string> all_of(Dealer& dealer, size_t lane) {
  std::vector<std::string> keys;
  while (const auto planned = dealer.next(lane)) keys.push_back(planned->spec.key());
  return keys;
}

TEST(Dealer, OneLaneGetsAllInTheirOrder) {
  Dealer dealer(1);
  dealer.begin(planned_cases(5));
  std::vector<std::string> expected;
  for (const PlannedCase& planned : planned_cases(5)) expected.push_back(planned.spec.key());
  EXPECT_EQ(all_of(dealer, 0), expected);
}

TEST(Dealer, AnIdleLaneTakesWhatTheOtherHasNotComeTo) {
  Dealer dealer(2);
  dealer.begin(planned_cases(20));
  ASSERT_TRUE(dealer.next(0));  // and is busy with it ever after
  EXPECT_EQ(all_of(dealer, 1).size(), 19u);
  EXPECT_FALSE(dealer.next(0));
}

TEST(Dealer, MostCasesHaveTheirHomeWhateverOtherCasesThereAre) {
  Dealer few(2), many(2);
  few.begin(planned_cases(20));
  many.begin(planned_cases(40));
  // Fair turns: nobody has to help.
  const auto homes = [](Dealer& dealer, size_t each) {
    std::set<std::string> first;
    for (size_t i = 0; i < each; ++i) {
      first.insert(dealer.next(0)->spec.key());
      dealer.next(1);
    }
    return first;
  };
  const std::set<std::string> of_few = homes(few, 6);
  const std::set<std::string> of_many = homes(many, 16);
  for (const std::string& key : of_few) EXPECT_TRUE(of_many.contains(key)) << key;
}

TEST(Dealer, WhatWasMeasuredStaysWithItsLane) {
  Dealer dealer(2);
  dealer.begin(planned_cases(10));
  for (const std::string& key : all_of(dealer, 0)) dealer.settle(key, 0);
  dealer.begin(planned_cases(11));
  EXPECT_EQ(all_of(dealer, 1).size(), 1u) << "the new one";
  EXPECT_EQ(all_of(dealer, 0).size(), 10u);
  EXPECT_EQ(dealer.lane_of(planned_case(3).spec.key()), 0u);
}

TEST(Dealer, OfALostLaneOthersGetWhatItHadNotBegun) {
  Dealer dealer(2);
  dealer.begin(planned_cases(10));
  const PlannedCase begun = *dealer.next(1);
  dealer.settle(begun.spec.key(), 1);
  dealer.put_back(begun, 1);
  dealer.put_back(*dealer.next(1), 1);
  dealer.lose(1);
  EXPECT_EQ(dealer.left(), 1u);
  EXPECT_TRUE(dealer.any());
  const std::vector<std::string> others = all_of(dealer, 0);
  EXPECT_EQ(others.size(), 9u);
  EXPECT_EQ(std::ranges::count(others, begun.spec.key()), 0);
  EXPECT_FALSE(dealer.any());
  EXPECT_TRUE(dealer.leaves_some());
}

}  // namespace
}  // namespace moegate::test
