// SPDX-License-Identifier: Apache-2.0
// From samples of the program counter to the rows of a result: which of a launch's kernels, which
// instructions, which reasons. Pure; knows neither CUPTI nor CUDA.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/values/result.h"

namespace moegate {

/// How often one instruction was seen in one state.
struct PcSample {
  uint64_t cubin = 0;    // its CRC
  std::string function;  // mangled
  uint32_t symbol = 0;   // of the function in the cubin
  int64_t offset = 0;    // bytes from the function's start
  std::string reason;    // as stall_reason() has it
  int64_t samples = 0;
};

/// "smsp__pcsamp_warps_issue_stalled_long_scoreboard" -> "long_scoreboard"; a warp that issued is
/// "selected". Nothing for the twin that ends in "_not_issued": it counts a part of the same
/// samples once more, those in whose cycle no warp of the scheduler issued.
std::optional<std::string> stall_reason(const std::string& name);

/// What samples say of one operation of a launch, and where the text of its instructions is.
struct PcFunction {
  std::string name;      // as people read it
  std::string function;  // mangled; empty: never sampled
  uint64_t cubin = 0;
  uint32_t symbol = 0;
  int64_t samples = 0;  // all, those of "selected" too
};

struct StallTable {
  std::vector<PcFunction> kernels;  // by ordinal
  std::vector<StallRow> rows;       // by ordinal, the hottest of each first; without text and line
  int64_t samples = 0;              // of all kernels, also of what became no row
};

class StallTally {
 public:
  void add(const PcSample& sample);

  /// `operations`: names of what a launch consists of, in order: demangled kernels, "memset",
  /// "memcpy"; empty: unknown. A kernel that a launch runs twice has its samples at the first.
  /// Functions that are not among them follow, the hottest first, but for those of which `around`
  /// says, by the mangled name, that they run around a launch. At most `most_rows` rows of
  /// a kernel.
  StallTable table(const std::vector<std::string>& operations,
                   const std::function<bool(const std::string&)>& around, size_t most_rows) const;

 private:
  struct Function {
    std::map<std::pair<uint64_t, uint32_t>, int64_t> places;  // (cubin, symbol) -> samples
    std::map<std::pair<int64_t, std::string>, int64_t> rows;  // (offset, reason) -> samples
    int64_t samples = 0;
  };
  void add_rows(const Function& function, size_t ordinal, size_t most, StallTable& table) const;
  std::map<std::string, Function> functions_;  // by mangled name
};

}  // namespace moegate
