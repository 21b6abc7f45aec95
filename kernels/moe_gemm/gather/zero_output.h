// SPDX-License-Identifier: Apache-2.0
// Zeros for outputs that kernels add to.
#pragma once

#include <cstdint>

namespace moegate::moe_gemm::gather {

/// Asynchronous on `stream`; out is aligned to 16 bytes, elements a multiple of 8.
void zero_output(uint16_t* out, int64_t elements, void* stream);

}  // namespace moegate::moe_gemm::gather
