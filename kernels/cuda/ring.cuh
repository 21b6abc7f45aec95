// SPDX-License-Identifier: Apache-2.0
// A ring of stages in shared memory between threads that copy and threads that multiply.
#pragma once

#include <cstdint>

namespace moegate::cuda {

/// Position in a ring of `stages`; producers wait for the stage to be empty with phase ^ 1,
/// consumers for it to be full with phase.
struct Ring {
  int stages;
  int stage = 0;
  uint32_t phase = 0;

  __device__ void advance() {
    if (++stage < stages) return;
    stage = 0;
    phase ^= 1;
  }
  /// By `places`, at most as many as there are stages.
  __device__ void advance(int places) {
    stage += places;
    if (stage < stages) return;
    stage -= stages;
    phase ^= 1;
  }
};

}  // namespace moegate::cuda
