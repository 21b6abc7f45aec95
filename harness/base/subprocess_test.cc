// SPDX-License-Identifier: Apache-2.0
#include "harness/base/subprocess.h"

#include <gtest/gtest.h>

#include <csignal>

#include "harness/base/error.h"

namespace moegate::test {
namespace {

TEST(Subprocess, OutputAndExit) {
  const Finished f = run_program({"sh", "-c", "echo \"$1\"; echo lost >&2; exit 7", "sh", "a  'b"},
                                 Output::capture);
  EXPECT_EQ(f.exit, 7);
  EXPECT_EQ(f.out, "a  'b\n");
  EXPECT_EQ(run_program({"sh", "-c", "kill -9 $$"}, Output::capture).exit, 137);
  // More than a pipe holds.
  EXPECT_EQ(run_program({"head", "-c", "300000", "/dev/zero"}, Output::capture).out.size(),
            300000u);
  EXPECT_THROW(run_program({"/no/such/program"}, Output::capture), Error);
}

TEST(Subprocess, AnInterruptEndsTheWholeGroup) {
  const InterruptGuard guard;  // forgets what an earlier test was interrupted by
  EXPECT_EQ(run_interruptible({"sh", "-c", "exit 3"}), 3);
  // The signal comes from inside, so that it comes while the program runs.
  const std::string script = "kill -INT " + std::to_string(getpid()) + "; sleep 600 & wait";
  EXPECT_EQ(run_interruptible({"sh", "-c", script}), 128 + SIGTERM);
  EXPECT_TRUE(InterruptGuard::interrupted());
}

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
}  // namespace moegate::test
