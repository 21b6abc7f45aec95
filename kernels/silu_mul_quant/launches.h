// SPDX-License-Identifier: Apache-2.0
// The CUDA launches of silu_mul_quant as plain functions, for operators that are chains of
// launches. All are asynchronous on `where.stream`, allocate nothing and can be captured into a
// graph. Errors: Error(internal) when a launch is refused.
#pragma once

#include "kernels/silu_mul_quant/silu_mul_quant.h"

namespace moegate::silu_mul_quant {

/// `act` [R, I] bf16 is scratch memory, aligned to 16 bytes as every operand is.
void launch_two_kernels(const SiluMulQuantArgs& args, uint16_t* act, const Launch& where);
/// The second of these: rows `act` to codes and scale factors. Of args it reads no h.
void launch_group_quant(const SiluMulQuantArgs& args, const uint16_t* act, const Launch& where);
void launch_fused(const SiluMulQuantArgs& args, const Launch& where);
/// The same; starts early (dependent_launch.cuh).
void launch_fused_early(const SiluMulQuantArgs& args, const Launch& where);

}  // namespace moegate::silu_mul_quant
