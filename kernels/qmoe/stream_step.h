// SPDX-License-Identifier: Apache-2.0
// stream_imma as a step of a chain of launches; only in builds with CUDA.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/qmoe/qmoe.h"

namespace moegate::qmoe {

/// Why stream_imma cannot run a product; empty when it can.
std::string stream_unsupported(const QmoeShape& shape, const DeviceFacts& device);

/// Launches it on `packed` (stream_pack.h). It starts early (dependent_launch.cuh): fc1 behind what
/// writes row_source and row_expert, fc2 behind its fc1. What follows may start early, too. Errors:
/// Error(internal) when the launch is refused.
void launch_stream_step(const QmoeArgs& args, const uint8_t* packed, const Launch& where);

}  // namespace moegate::qmoe
