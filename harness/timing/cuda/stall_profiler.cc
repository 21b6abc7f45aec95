// SPDX-License-Identifier: Apache-2.0
#include "harness/base/error.h"
#include "harness/timing/profiler.h"

namespace moegate {

std::unique_ptr<Profiler> make_stall_profiler(Device&, const Profiling&) {
  throw Error(Exit::environment, "stalls: not written yet");
}

}  // namespace moegate
