// SPDX-License-Identifier: Apache-2.0
// Waivers as files: what `gate` and `list waivers` read.
#include <fmt/chrono.h>

#include <fstream>

#include "harness/baseline/waivers.h"
#include "harness/judge/gate_fixture.h"

namespace moegate::test {
namespace {

/// A waiver for one slower case with so many days left.
std::string current(int days_left) {
  const auto expires = today() + std::chrono::days(days_left);
  return fmt::format(
      "[W-1]\ncases = topk_sort/tokens=8\nmax_cases = 1\nvariant = fused\nclass = nvidia-h200\n"
      "metric = latency\nmax_regression = 6%\nreason = driver\nissue = org/repo/412\n"
      "owner = alice\ncreated = {:%F}\nexpires = {:%F}\n",
      expires - std::chrono::days(30), expires);
}

TEST_F(GateTest, ReadsTheWaiversOfItsHomeOrAFile) {
  bless_run(add_run());
  add_run([](Row& row, int) {
    if (is(row, "8", "fused")) row.result.span_ns *= 1.05;
    return true;
  });
  EXPECT_EQ(gate(), 10) << out_;
  fs::create_directories(dir_ / "ci");
  std::ofstream(dir_ / "ci" / "waivers.ini") << current(3);
  EXPECT_EQ(gate(), 0) << out_;
  EXPECT_EQ(out_.find("**PASS: 1 waived, 0 inconclusive, 3 pass"), 0u) << out_;
  EXPECT_TRUE(says("\n- 1 row waived by W-1 until ")) << out_;
  EXPECT_TRUE(says("### Waived (1)")) << out_;
  Store store = Store::open(db_, Store::Mode::read);
  EXPECT_EQ(store.database().integer(
                "SELECT count(*) FROM verdict WHERE outcome = 'waived' AND waiver = 'W-1'"),
            1);
  EXPECT_EQ(call(cmd_gate, {"--against", "1", "--run", "2"}), 10) << "waivers are the gate's";
  const std::string other = (dir_ / "other.ini").string();
  std::ofstream(other) << "# none\n";
  EXPECT_EQ(gate({"--waivers", other}), 10) << out_;
  EXPECT_EQ(gate({"--waivers", (dir_ / "none.ini").string()}), 2) << out_;
  EXPECT_TRUE(says("none.ini")) << out_;
}

TEST_F(GateTest, AnExpiredWaiverIsExit24) {
  bless_run(add_run());
  add_run();
  std::ofstream(dir_ / "w.ini") << current(-1);
  EXPECT_EQ(gate({"--waivers", (dir_ / "w.ini").string()}), 24) << out_;
  EXPECT_TRUE(says("FAIL (exit 24)")) << out_;
  EXPECT_TRUE(says("- **waiver W-1 of alice expired on ")) << out_;
}

TEST_F(GateTest, WaiversLint) {
  const auto lint = [&](const Args& args) {
    testing::internal::CaptureStdout();
    int code = -1;
    try {
      code = cmd_list(args);
    } catch (const Error& e) {
      code = static_cast<int>(e.code());
    }
    out_ = testing::internal::GetCapturedStdout();
    return code;
  };
  const std::string file = (dir_ / "w.ini").string();
  std::ofstream(file) << current(3);
  EXPECT_EQ(lint({"waivers", "--waivers", file}), 0);
  EXPECT_TRUE(says("W-1 (alice, org/repo/412): holds until ")) << out_;
  std::ofstream(file) << current(-1);
  EXPECT_EQ(lint({"waivers", "--waivers", file}), 24);
  EXPECT_TRUE(says("EXPIRED")) << out_;
  std::ofstream(file) << "[W-1]\nowner = alice\n";
  EXPECT_EQ(lint({"waivers", "--waivers", file}), 2);
  EXPECT_EQ(lint({"waivers"}), 2) << "there is no ci/waivers.ini";
  EXPECT_EQ(lint({}), 2);
  EXPECT_EQ(lint({"mend"}), 2);
}

}  // namespace
}  // namespace moegate::test
