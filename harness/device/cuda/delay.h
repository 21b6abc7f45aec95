// SPDX-License-Identifier: Apache-2.0
// Kernels of the canaries: a delay in SM cycles, and a factor on a tensor.
#pragma once

#include <cstdint>

#include "harness/kernel/dtype.h"

namespace moegate {

/// A chain of dependent multiply-adds of `steps` steps on one thread of `stream`, and how
/// many SM cycles a step takes, measured. In a build without CUDA these throw.
void launch_delay(void* stream, int64_t steps);
double delay_cycles_per_step();
/// Multiplies a tensor of a floating type on the device by `factor`.
void launch_scale(void* stream, void* data, DType dtype, int64_t elements, float factor);

}  // namespace moegate
