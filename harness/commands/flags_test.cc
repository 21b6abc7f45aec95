// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/flags.h"

#include <gtest/gtest.h>

#include "harness/base/error.h"
#include "harness/commands/cli.h"
#include "harness/device/open.h"

namespace moegate::test {
namespace {

/// What a --device flag makes of a text, or its refusal.
std::string device_typed(Flag (*make)(std::string&), const std::string& typed) {
  std::string device = "auto";
  Flags flags;
  flags.add(make(device));
  try {
    parse("run", flags, {"--device", typed});
  } catch (const Error& e) {
    return fmt::format("exit {}: {}", static_cast<int>(e.code()), e.what());
  }
  return device;
}

TEST(DeviceFlag, AListIsStoredInItsShortestSpelling) {
  EXPECT_EQ(device_typed(device_flag, "cuda:0,cuda:01"), "cuda:0,1");
  EXPECT_EQ(device_typed(device_flag, "host"), "host");
  EXPECT_EQ(device_typed(device_flag, "cuda:1,1"),
            "exit 2: --device cuda:1,1: names cuda:1 twice; name each GPU once");
}

TEST(DeviceFlag, AllIsThoseThatAreThere) {
  const size_t gpus = cuda_devices(nullptr).size();
  for (const char* all : {"all", "cuda:all"}) {
    const std::string typed = device_typed(device_flag, all);
    if (gpus == 0) {
      EXPECT_EQ(typed.rfind(fmt::format("exit 21: --device {}: there is no GPU", all), 0), 0u)
          << typed;
    } else {
      EXPECT_EQ(typed.rfind("cuda:0", 0), 0u) << typed;
    }
  }
}

TEST(DeviceFlag, WhatLooksAtOneDeviceRefusesSeveral) {
  EXPECT_EQ(device_typed(one_device_flag, "cuda:1"), "cuda:1");
  for (const char* several : {"cuda:0,1", "all", "cuda:all"}) {
    EXPECT_EQ(device_typed(one_device_flag, several),
              fmt::format("exit 2: --device {}: names several; give one, as in cuda:0", several));
  }
}

}  // namespace
}  // namespace moegate::test
