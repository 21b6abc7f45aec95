// SPDX-License-Identifier: Apache-2.0
#include "harness/base/interrupt.h"

#include <gtest/gtest.h>

namespace moegate {
namespace {

TEST(InterruptGuard, NotesEveryWayToAskForTheEnd) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const InterruptGuard guard;
    EXPECT_FALSE(InterruptGuard::interrupted()) << "that was another time";
    raise(signal);
    EXPECT_TRUE(InterruptGuard::interrupted());
  }
}

TEST(InterruptGuard, OneWithinAnotherForgetsNothing) {
  const InterruptGuard outer;
  raise(SIGINT);
  const InterruptGuard inner;
  EXPECT_TRUE(InterruptGuard::interrupted());
}

TEST(InterruptGuard, NohupKeepsHangupsAway) {
  const auto before = std::signal(SIGHUP, SIG_IGN);
  {
    const InterruptGuard guard;
    raise(SIGHUP);
    EXPECT_FALSE(InterruptGuard::interrupted());
  }
  EXPECT_EQ(std::signal(SIGHUP, before), SIG_IGN);
}

}  // namespace
}  // namespace moegate
