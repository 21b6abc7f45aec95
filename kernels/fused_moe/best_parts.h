// SPDX-License-Identifier: Apache-2.0
// The launches that chains of the best kernel of each part share; only in builds with CUDA.
#pragma once

#include "kernels/fused_moe/steps.h"
#include "kernels/moe_gemm/tiles/tile.h"

namespace moegate::fused_moe {

/// Which kernel, with which knobs, computes a product: tile_of(), or one kernel always.
using ChooseTile = moe_gemm::tiles::TileChoice (*)(const moe_gemm::MoeGemmShape& product,
                                                   const Case& c, const DeviceFacts& device);

/// The quantisation of x in bf16, redundant_count, gate-up as `choose` says, and the fused
/// activation and quantisation.
void launch_up_to_activation(FusedMoe& problem, const Buffers& buffers, ChooseTile choose,
                             const Launch& where);

/// The whole layer: the above, down as `choose` says, and sum_vectorised. Five launches, each set
/// up while the one before runs, if its kernel can (dependent_launch.cuh).
void launch_best_parts(FusedMoe& problem, ChooseTile choose, const Launch& where);

}  // namespace moegate::fused_moe
