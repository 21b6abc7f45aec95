// SPDX-License-Identifier: Apache-2.0
#include "harness/values/run.h"

#include <gtest/gtest.h>

namespace moegate::test {
namespace {

TEST(Run, OnOneDeviceEveryRowIsItsOwn) {
  RunInfo run;
  run.device.uuid = "GPU-a";
  EXPECT_TRUE(gpus_of(run).empty());
  EXPECT_EQ(uuids_of(run), "GPU-a");
  EXPECT_EQ(uuid_of(run, -1), "GPU-a");
}

TEST(Run, OnSeveralGpusARowSaysWhichOne) {
  RunInfo run;
  run.device.uuid = "GPU-a";
  run.tags[kGpusTag] = gpus_text({{0, "GPU-a"}, {12, "GPU-b"}});
  EXPECT_EQ(run.tags[kGpusTag], "0=GPU-a 12=GPU-b");
  EXPECT_EQ(uuids_of(run), "GPU-a,GPU-b");
  EXPECT_EQ(uuid_of(run, 12), "GPU-b");
  EXPECT_EQ(uuid_of(run, 7), "GPU-a") << "of a foreign store";
}

TEST(Run, ATagThatIsNoListNamesNoGpu) {
  RunInfo run;
  run.device.uuid = "GPU-a";
  for (const char* text : {"", "GPU-a", "0:GPU-a", "x=y", "0="}) {
    run.tags[kGpusTag] = text;
    EXPECT_EQ(uuids_of(run), "GPU-a") << text;
  }
}

}  // namespace
}  // namespace moegate::test
