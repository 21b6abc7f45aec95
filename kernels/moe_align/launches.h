// SPDX-License-Identifier: Apache-2.0
// The CUDA launches of moe_align as plain functions, for operators that are chains of launches.
// All are asynchronous on `where.stream`, allocate nothing and can be captured into a graph.
// Errors: Error(internal) when a launch is refused.
#pragma once

#include "kernels/moe_align/moe_align.h"

namespace moegate::moe_align {

/// `next` [E] is scratch memory.
void launch_count_scan_scatter(const MoeAlignArgs& args, int32_t* next, const Launch& where);
/// Its tables must fit: any R, E <= 64 on every GPU.
void launch_one_block(const MoeAlignArgs& args, const Launch& where);
void launch_redundant_count(const MoeAlignArgs& args, const Launch& where);
/// Empty, or why redundant_count does not take so many rows.
std::string redundant_count_unsupported(int rows);

}  // namespace moegate::moe_align
