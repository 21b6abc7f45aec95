// SPDX-License-Identifier: Apache-2.0
// Where warps wait, base beside head: instructions of two versions of a kernel, matched by their
// text. Pure functions over stored values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/values/result.h"

namespace moegate {

/// One instruction and one reason to wait at it. Shares are of all samples of the launch, 0 to 1,
/// those of warps that issued too; 0 where a side has no such row among its hottest.
struct StallLine {
  std::string kernel, instruction,
      line;  // the head's, or the base's where only it has the instruction
  std::string reason;
  double base_share = 0, head_share = 0;
  std::optional<int64_t> base_offset, head_offset;  // bytes from the kernel's start

  double change() const { return head_share - base_share; }
};

/// An instruction without what another version of the code numbers anew: registers, predicates,
/// labels and branch targets; "@!P0 LDG.E R2, desc[UR4][R4.64]" -> "@!P LDG.E R, desc[UR][R.64]".
/// Registers that are always zero or true stay.
std::string instruction_shape(const std::string& instruction);

/// Both sides are results of Task::stalls; rows and metrics of several processes may stand in one,
/// one after the other. Kernels are matched by name, the rest in order; of two kernels the longest
/// common subsequence of shapes, in the order of the code (of offsets, where the text is unknown).
/// The line with the greatest change goes first; of equals the hottest.
std::vector<StallLine> align_stalls(const Result& base, const Result& head);

}  // namespace moegate
