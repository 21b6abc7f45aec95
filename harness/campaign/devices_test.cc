// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/devices.h"

#include <gtest/gtest.h>

#include "harness/base/test_fixture.h"

namespace moegate {
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
    EXPECT_NE(devices_refusal(spec).find("is no GPU that others could share a run with"),
              std::string::npos)
        << spec << ": " << devices_refusal(spec);
    EXPECT_NE(devices_refusal(spec).find("as in cuda:0,1"), std::string::npos);
  }
}

}  // namespace
}  // namespace moegate
