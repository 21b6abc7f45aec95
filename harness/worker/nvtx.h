// SPDX-License-Identifier: Apache-2.0
// A scoped NVTX range, so that a profiler's timeline reads like the report. Only for runs under
// --profile, never inside a timed sample. Nothing at all in a build without CUDA.
#pragma once

#include <string>

#ifdef MOEGATE_HAS_CUDA
#include <nvtx3/nvToolsExt.h>
#endif

namespace moegate {

/// The range around all launches under --profile: a filter for it needs no quoting, as one for a
/// case's name would.
constexpr const char* kLaunchesRange = "moegate";

class NvtxRange {
 public:
#ifdef MOEGATE_HAS_CUDA
  explicit NvtxRange(const std::string& name) {
    nvtxRangePushA(name.c_str());
  }
  ~NvtxRange() {
    nvtxRangePop();
  }
#else
  explicit NvtxRange(const std::string&) {}
  ~NvtxRange() {}  // user-provided, so that a range that is only named is not "unused"
#endif
  NvtxRange(NvtxRange&&) = delete;
};

}  // namespace moegate
