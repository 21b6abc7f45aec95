// SPDX-License-Identifier: Apache-2.0
// Kernels of the canaries: a delay in SM cycles, and a factor on a tensor.
#pragma once

#include <cstdint>

#include "harness/kernel/dtype.h"

namespace moegate {

/// Launches a chain of `steps` dependent multiply-adds on one thread. In a build without CUDA the
/// functions of this header throw Error(environment).
void launch_delay(void* stream, int64_t steps);
/// SM cycles that one step takes, measured.
double delay_cycles_per_step();
/// Multiplies a tensor of a floating type on the device by `factor`.
void launch_scale(void* stream, void* data, DType dtype, int64_t elements, float factor);

}  // namespace moegate
