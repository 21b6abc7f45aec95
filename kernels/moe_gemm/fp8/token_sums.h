// SPDX-License-Identifier: Apache-2.0
// The fast kernels of moe_down with moe_sum in them: out is [T, N], zeros before
// (gather/zero_output.h), and every routed row is added to its token's by bf16 atomics. Saves
// writing and reading [R, N]; costs one rounding per row in place of one per token, in an order
// that changes from launch to launch. Launches are asynchronous on `where.stream` and take
// the shapes that are not unsupported (empty: supported). Errors: Error(internal) when a
// launch is refused.
#pragma once

#include <string>

#include "kernels/moe_gemm/moe_gemm.h"

namespace moegate::moe_gemm::fp8 {

void launch_wide_token_sums(const MoeGemmArgs& args, const Launch& where);
std::string wide_tiles_unsupported(const MoeGemmShape& shape);

void launch_resident_token_sums(const MoeGemmArgs& args, const Launch& where);
std::string resident_rows_unsupported(const MoeGemmShape& shape);

void launch_prefill_token_sums(const MoeGemmArgs& args, const Launch& where);
std::string prefill_unsupported(const MoeGemmShape& shape);

}  // namespace moegate::moe_gemm::fp8
