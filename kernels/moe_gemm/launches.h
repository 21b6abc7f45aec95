// SPDX-License-Identifier: Apache-2.0
// The CUDA launches of the grouped GEMMs as plain functions, for operators that are chains of
// launches. All are asynchronous on `where.stream`, allocate nothing and can be captured into a
// graph. BM is 16, 32, 64 or 128, N a multiple of 8. Errors: Error(internal) when a launch is
// refused.
#pragma once

#include "kernels/moe_gemm/moe_gemm.h"

namespace moegate::gemm {

/// K a multiple of 8.
void launch_gather(const MoeGemmArgs& args, const Launch& where);

/// Whether K is cut over the blocks of a cluster.
enum class SplitK { never, where_tiles_are_few };
/// fp8; K a multiple of 128. The variants swap_ab and swap_ab_split_k.
void launch_swap_ab(const MoeGemmArgs& args, SplitK split, const Launch& where);

}  // namespace moegate::gemm
