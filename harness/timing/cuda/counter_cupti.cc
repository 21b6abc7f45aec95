// SPDX-License-Identifier: Apache-2.0
#include "harness/timing/cuda/counter_cupti.h"

#include "harness/base/error.h"

namespace moegate {

const CounterCupti& counter_cupti() {
  static const CounterCupti* functions = new CounterCupti;
  const std::string why = functions->why();
  if (why.empty()) return *functions;
  throw Error(Exit::environment, "counters cannot be read: " + why);
}

void require_counters(CUptiResult result, const char* what) {
  if (result == CUPTI_SUCCESS) return;
  throw Error(Exit::environment,
              "counters cannot be read: " + counter_cupti().failure(result, what));
}

}  // namespace moegate
