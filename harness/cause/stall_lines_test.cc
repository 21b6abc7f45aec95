// SPDX-License-Identifier: Apache-2.0
#include "harness/cause/stall_lines.h"

#include <gtest/gtest.h>

namespace moegate::test {
namespace {

Result stalled(std::vector<StallRow> rows, double samples,
               const std::vector<std::string>& kernels = {"gemm"}) {
  Result r;
  for (const std::string& name : kernels) r.kernels.emplace_back().name = name;
  r.stalls = std::move(rows);
  r.metrics.push_back({.name = "pc_samples", .unit = "samples", .value = samples});
  return r;
}

StallRow stall(int64_t offset, const std::string& instruction, const std::string& reason,
               int64_t samples, int ordinal = 0) {
  return {ordinal, offset, instruction, "", reason, samples};
}

const StallLine* line_of(const std::vector<StallLine>& lines, const std::string& instruction,
                         const std::string& reason) {
  for (const StallLine& l : lines) {
    if (l.instruction == instruction && l.reason == reason) return &l;
  }
  return nullptr;
}

TEST(StallLines, ShapesHaveNoNumbersOfRegistersLabelsAndTargets) {
  const std::pair<const char*, const char*> shapes[] = {
      {"@!P0 LDG.E R2, desc[UR4][R4.64]", "@!P LDG.E R, desc[UR][R.64]"},
      {"FFMA R12, R3.reuse, R4, RZ", "FFMA R, R, R, RZ"},
      {"ISETP.GE.AND P1, PT, R0, UR5, PT", "ISETP.GE.AND P, PT, R, UR, PT"},
      {"@P2 BRA `(.L_x_17)", "@P BRA `(.L)"},
      {"BRA 0x1b0", "BRA "},
      {"IADD3 R1, R1, 0x1b0, RZ", "IADD3 R, R, 0x1b0, RZ"},
      {"R2UR UR4, R6", "R2UR UR, R"},
      {"LDC R1, c[0x0][0x28]", "LDC R, c[0x0][0x28]"},
      {"S2R R0, SR_TID.X", "S2R R, SR_TID.X"},
      {"BSYNC B11", "BSYNC B"},
      {"", ""}};
  for (const auto& [instruction, shape] : shapes) EXPECT_EQ(instruction_shape(instruction), shape);
}

TEST(StallLines, TheSameInstructionMeetsItselfElsewhereAndTheGreatestChangeIsFirst) {
  const Result base = stalled(
      {stall(0x100, "LDG.E R2, [R4]", "long_scoreboard", 30),
       stall(0x100, "LDG.E R2, [R4]", "selected", 5), stall(0x200, "BAR.SYNC 0x0", "barrier", 10),
       stall(0x300, "STG.E [R4], R2", "lg_throttle", 8)},
      100);
  // A register more, an instruction more, and a barrier that waits longer; half the samples.
  const Result head = stalled({stall(0x120, "LDG.E R7, [R8]", "long_scoreboard", 15),
                               stall(0x180, "LDS R3, [R9]", "short_scoreboard", 5),
                               stall(0x220, "BAR.SYNC 0x0", "barrier", 14),
                               stall(0x340, "STG.E [R8], R7", "lg_throttle", 4)},
                              50);
  const auto lines = align_stalls(base, head);
  ASSERT_EQ(lines.size(), 4u) << "warps that issued have no line";
  EXPECT_EQ(lines[0].reason, "barrier");
  EXPECT_NEAR(lines[0].change(), 0.18, 1e-12);
  EXPECT_EQ(lines[0].base_offset, 0x200);
  EXPECT_EQ(lines[0].head_offset, 0x220);
  EXPECT_EQ(lines[0].kernel, "gemm");
  EXPECT_EQ(lines[1].instruction, "LDS R3, [R9]");
  EXPECT_EQ(lines[1].base_offset, std::nullopt);
  EXPECT_DOUBLE_EQ(lines[1].head_share, 0.1);
  EXPECT_EQ(lines[2].reason, "long_scoreboard") << "of two that did not change, the hotter";
  EXPECT_NEAR(lines[2].base_share, 0.3, 1e-12);
  EXPECT_NEAR(lines[2].change(), 0, 1e-12);
}

TEST(StallLines, RepeatedInstructionsKeepTheirOrder) {
  const auto loads = [](const std::vector<int64_t>& samples) {
    std::vector<StallRow> rows;
    for (size_t i = 0; i < samples.size(); ++i) {
      rows.push_back(stall(static_cast<int64_t>(16 * i), i == 1 ? "BAR.SYNC 0x0" : "LDG.E R1, [R2]",
                           "wait", samples[i]));
    }
    return rows;
  };
  const auto lines = align_stalls(stalled(loads({1, 2, 3}), 10), stalled(loads({4, 5, 6}), 10));
  ASSERT_EQ(lines.size(), 3u);
  for (const StallLine& l : lines) EXPECT_EQ(l.base_offset, l.head_offset) << l.instruction;
}

TEST(StallLines, ReasonsOfOneInstructionAreLinesOfTheirOwn) {
  const auto lines = align_stalls(stalled({stall(0, "LDS R0, [R1]", "wait", 4)}, 10),
                                  stalled({stall(0, "LDS R0, [R1]", "mio_throttle", 3)}, 10));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_DOUBLE_EQ(line_of(lines, "LDS R0, [R1]", "wait")->change(), -0.4);
  EXPECT_DOUBLE_EQ(line_of(lines, "LDS R0, [R1]", "mio_throttle")->change(), 0.3);
}

TEST(StallLines, KernelsMeetByNameThenInOrder) {
  const Result base = stalled({stall(0, "EXIT", "wait", 1, 0), stall(0, "NOP", "wait", 2, 1)}, 10,
                              {"zero", "gemm<64>"});
  const Result head = stalled({stall(0, "NOP", "wait", 5, 0), stall(0, "EXIT", "wait", 1, 1)}, 10,
                              {"gemm<128>", "zero"});
  const auto lines = align_stalls(base, head);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].kernel, "gemm<128>");
  EXPECT_DOUBLE_EQ(lines[0].change(), 0.3);
  EXPECT_EQ(lines[1].kernel, "zero");
  EXPECT_DOUBLE_EQ(lines[1].change(), 0);
}

TEST(StallLines, WithoutTextOffsetsDecide) {
  const auto lines =
      align_stalls(stalled({stall(0x10, "", "wait", 1), stall(0x20, "", "wait", 1)}, 10),
                   stalled({stall(0x20, "", "wait", 3)}, 10));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].base_offset, 0x20);
  EXPECT_EQ(lines[0].head_offset, 0x20);
  EXPECT_EQ(lines[1].head_offset, std::nullopt);
}

TEST(StallLines, ProcessesAddUp) {
  Result both = stalled({stall(0, "NOP", "wait", 5), stall(0, "NOP", "wait", 15)}, 40);
  both.metrics.push_back({.name = "pc_samples", .unit = "samples", .value = 60});
  const auto lines = align_stalls(both, both);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_DOUBLE_EQ(lines[0].base_share, 0.2);
}

TEST(StallLines, NothingSampledIsNoLine) {
  EXPECT_TRUE(align_stalls(Result{}, Result{}).empty());
  const auto lines = align_stalls(Result{}, stalled({stall(0, "NOP", "wait", 5)}, 10));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].base_offset, std::nullopt);
  EXPECT_DOUBLE_EQ(lines[0].head_share, 0.5);
}

}  // namespace
}  // namespace moegate::test
