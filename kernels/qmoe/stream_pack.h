// SPDX-License-Identifier: Apache-2.0
// The weights of a problem in stream_imma's layout.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/qmoe/qmoe.h"

namespace moegate::qmoe {

/// Lays them out on `stream`, once.
void stream_pack(Qmoe& problem, cudaStream_t stream);
/// Device pointer to what was laid out, 256-byte aligned.
const uint8_t* stream_packed(Qmoe& problem);

/// The same of a product among a problem's, whose packed weights go by `name`. Of the arguments
/// weights, scales, bias and shape are used.
void stream_pack(Problem& problem, const std::string& name, const QmoeArgs& args,
                 cudaStream_t stream);
const uint8_t* stream_packed(Problem& problem, const std::string& name);

}  // namespace moegate::qmoe
