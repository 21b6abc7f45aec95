// SPDX-License-Identifier: Apache-2.0
// The CUDA launches of topk_sort as plain functions: variants fall back to each other through them.
// All are asynchronous on `where.stream`, allocate nothing and can be captured into a graph.
// Errors: Error(internal) when a launch is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/topk_sort/topk_sort.h"

namespace moegate::topk_sort {

/// Scratch memory of the chains: the chosen experts [T, k], their weights [T, k], and the rows of
/// each expert in each chunk of tokens [chunks, E].
struct ChainBuffers {
  int32_t* ids;
  float* weights;
  int32_t* chunk_rows;
};
size_t chain_bytes(const TopkSortShape& shape);
ChainBuffers chain_buffers(const TopkSortShape& shape, void* workspace);

/// The chains' steps, each one launch (sort: two when the tokens need several chunks).
/// launch_sort zeroes moe_buf with extra blocks of its last launch when `zero_too`.
void launch_topk(const TopkSortArgs& args, const ChainBuffers& buffers, const Launch& where);
void launch_sort(const TopkSortArgs& args, const ChainBuffers& buffers, bool zero_too,
                 const Launch& where);
void launch_zero(const TopkSortArgs& args, const Launch& where);

/// The variants. `workspace` holds chain_bytes; those that never fall back ignore it.
void launch_chain3(const TopkSortArgs& args, void* workspace, const Launch& where);
void launch_chain2(const TopkSortArgs& args, void* workspace, const Launch& where);
void launch_fused_one_block(const TopkSortArgs& args, void* workspace, const Launch& where);
void launch_fused_warp_per_token(const TopkSortArgs& args, void* workspace, const Launch& where);
void launch_fused_cluster(const TopkSortArgs& args, void* workspace, const Launch& where);

/// One of them as KernelSpec::launch.
template <void (*kLaunch)(const TopkSortArgs&, void* workspace, const Launch&)>
void launch_variant(TopkSort& problem, const Launch& where) {
  kLaunch(problem.args(), problem.workspace(), where);
}

/// Why a warp cannot select a token's experts, as launch_topk does; empty where it can.
std::string warp_select_fault(const TopkSortShape& shape);

/// What variants have in common in their KernelSpec: `unsupported` of all that select a warp per
/// token, `workspace` of all that may run a chain, and the parts of the two that fall back to
/// chain2 beyond `most` tokens.
std::string warp_select_unsupported(const Case& c, const DeviceFacts& device);
size_t chain_workspace(const Case& c, const DeviceFacts& device);
size_t workspace_beyond(const Case& c, int most);
std::string path_up_to(const Case& c, int most);

}  // namespace moegate::topk_sort
