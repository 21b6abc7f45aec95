// SPDX-License-Identifier: Apache-2.0
// Blessings that are killed, and blessings at once.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <set>

#include "harness/baseline/baseline.h"
#include "harness/judge/gate_fixture.h"

namespace moegate::test {
namespace {

class BlessingsTest : public GateTest {
 protected:
  fs::path ledger() const { return dir_ / "baselines" / "blessings.tsv"; }
  static void write(const fs::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }
};

TEST_F(BlessingsTest, ABlessingThatIsKilledHealsItself) {
  bless_run(add_run());
  const std::string rows = read_file(baseline()), lines = read_file(ledger());
  const int64_t faster = add_run([](Row& row, int) {
    row.result.span_ns *= 0.8;
    return true;
  });
  const Args again = {
      "--db", db_, "--run", std::to_string(faster), "--reason", std::string(900, 'x')};
  int killed = 0;
  for (rlim_t bytes = 0;; bytes += 41) {
    const pid_t child = ::fork();
    if (child == 0) {  // the system kills what writes beyond the limit, in the middle of a line
      const rlimit limit = {bytes, bytes};
      ::setrlimit(RLIMIT_FSIZE, &limit);
      ::signal(SIGXFSZ, SIG_DFL);
      ::freopen("/dev/null", "w", stdout);
      ::_exit(cmd_bless(again));
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    if (!WIFSIGNALED(status)) break;
    if (read_file(baseline()) != rows) break;  // it was done, and only noted it in its store
    ++killed;
    EXPECT_EQ(gate({"--run", "1"}), 0) << bytes << out_;
    EXPECT_EQ(read_file(baseline()), rows) << bytes;
    EXPECT_EQ(read_file(ledger()), lines) << bytes;
    if (HasFailure()) return;
  }
  EXPECT_GT(killed, 20);
  EXPECT_EQ(read_ledger(ledger()).size(), 2u);
  EXPECT_EQ(gate(), 0) << out_;
}

TEST_F(BlessingsTest, WhatTheLedgerStatesIsPutInPlace) {
  bless_run(add_run());
  const std::string first = read_file(baseline());
  add_run([](Row& row, int) {
    row.result.span_ns *= 0.8;
    return true;
  });
  bless_run(2);
  const std::string second = read_file(baseline());
  // As if it had been killed between the ledger and the file.
  write(baseline().string() + ".blessed", second);
  write(baseline(), first);
  EXPECT_EQ(gate(), 0) << out_;
  EXPECT_EQ(read_file(baseline()), second);
  EXPECT_FALSE(fs::exists(baseline().string() + ".blessed"));
  write(baseline().string() + ".blessed", first);
  EXPECT_EQ(gate(), 0) << out_;
  EXPECT_EQ(read_file(baseline()), second) << "an older blessing's is not";
  EXPECT_FALSE(fs::exists(baseline().string() + ".blessed"));
}

TEST_F(BlessingsTest, BlessingsAtOnceHaveIdsOfTheirOwn) {
  constexpr int kBlessings = 6;
  for (int i = 0; i < kBlessings; ++i) {
    add_run([i](Row& row, int) {
      row.result.span_ns *= 1 - 0.05 * i;
      return true;
    });
  }
  std::vector<pid_t> children;
  for (int run = 1; run <= kBlessings; ++run) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::freopen("/dev/null", "w", stdout);
      ::_exit(cmd_bless(
          {"--db", db_, "--run", std::to_string(run), "--reason", "x", "--accept", "creep"}));
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  std::set<std::string> ids;
  for (const Blessing& b : read_ledger(ledger())) ids.insert(b.id);
  EXPECT_EQ(ids.size(), kBlessings);
  EXPECT_NO_THROW(check_recorded(baseline(), "nvidia-h200", "nightly", ledger()));
}

}  // namespace
}  // namespace moegate::test
