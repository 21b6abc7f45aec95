// SPDX-License-Identifier: Apache-2.0
// The weights of a problem in stream_imma's layout.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/qmoe/qmoe.h"

namespace moegate::qmoe {

/// Device pointer to them, 256-byte aligned; lays them out on `stream` the first time it is asked.
const uint8_t* stream_packed(Qmoe& problem, cudaStream_t stream);

}  // namespace moegate::qmoe
