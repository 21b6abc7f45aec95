// SPDX-License-Identifier: Apache-2.0
// silu_mul_quant on the CPU as functions that other operators' host variants call, too: a chain of
// two passes, and one group of columns in one go.
#pragma once

#include "kernels/silu_mul_quant/silu_mul_quant.h"

namespace moegate::silu_mul_quant {

/// The variant `two_passes`; `act` [R, I] bf16 is scratch memory.
void run_two_passes(const SiluMulQuantArgs& args, uint16_t* act);
/// Its second pass: rows [R, I] in bf16 to codes and scale factors. Of args it reads no h.
void run_group_quant(const SiluMulQuantArgs& args, const uint16_t* act);
/// The variant `fused`.
void run_fused(const SiluMulQuantArgs& args);

/// One group of columns of a row: 128 gates, 128 ups to 128 codes and their scale factor.
void fuse_group(const uint16_t* gate, const uint16_t* up, uint8_t* q, float* scale);

}  // namespace moegate::silu_mul_quant
