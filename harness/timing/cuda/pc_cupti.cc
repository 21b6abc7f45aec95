// SPDX-License-Identifier: Apache-2.0
#include "harness/timing/cuda/pc_cupti.h"

#include "harness/base/error.h"

namespace moegate {

const PcCupti& pc_cupti() {
  static const PcCupti* functions = new PcCupti;
  const std::string why = functions->why();
  if (why.empty()) return *functions;
  throw Error(Exit::environment, "stalls cannot be sampled: " + why);
}

void require_pc(CUptiResult result, const std::string& what) {
  if (result == CUPTI_SUCCESS) return;
  throw Error(Exit::environment, "stalls cannot be sampled: " + pc_cupti().failure(result, what));
}

}  // namespace moegate
