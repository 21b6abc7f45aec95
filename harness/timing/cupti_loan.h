// SPDX-License-Identifier: Apache-2.0
// CUPTI for one measurement in somebody else's process. CUPTI serves one tool at a time, and that
// of the process (a profiler of its own) comes first: it is taken, proved with empty kernels whose
// records have to arrive, and given back. It is never finalized: that would take it from everybody.
#pragma once

#include <string>

namespace moegate {

class CuptiLoan {
 public:
  /// Takes it. make_cupti_timer() works during its life.
  explicit CuptiLoan(int ordinal);
  ~CuptiLoan();
  CuptiLoan(CuptiLoan&&) = delete;

  /// Why CUPTI cannot be had now, and who has it; empty: it is had.
  const std::string& why() const { return why_; }

 private:
  std::string why_;
};

/// Keeps the subscription from now on, as long as the process lives: loans then know the machine
/// code of every module that is loaded, and no other tool gets CUPTI. Returns why it cannot; empty:
/// it does, or there is no GPU.
std::string keep_cupti();

}  // namespace moegate
