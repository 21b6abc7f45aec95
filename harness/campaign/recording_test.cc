// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/recording.h"

#include <gtest/gtest.h>

#include "harness/campaign/campaign_fixture.h"
#include "harness/campaign/runner.h"

namespace moegate {
namespace {

class RecordingTest : public CampaignTest {};

TEST_F(RecordingTest, ARunHasEveryRowInEveryRoundAndAProcessPerRound) {
  options_.rounds = 3;
  const Tally tally = run_suites(options_, 0, fake_);
  EXPECT_EQ(tally.exit(), Exit::ok);
  EXPECT_EQ(tally.counts.at(Status::ok), 2 * 2 * 3);
  EXPECT_EQ(count("fake: start"), 0);
  EXPECT_EQ(count("start"), 3) << "the worker that planned measures the first round";
  const auto levels = store().levels(tally.run);
  EXPECT_EQ(levels.size(), 12u);
}

}  // namespace
}  // namespace moegate
