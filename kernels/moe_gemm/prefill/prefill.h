// SPDX-License-Identifier: Apache-2.0
// The launches of prefill for whoever chains them: the products with x in token order, and down
// with x in sorted order, where the step before can write that (moe_gemm.h). Asynchronous on
// `where.stream`; take the shapes that are not unsupported (empty: supported). Errors:
// Error(internal) when a launch is refused.
#pragma once

#include <string>

#include "kernels/moe_gemm/moe_gemm.h"

namespace moegate::moe_gemm::prefill {

/// `cluster` blocks, 1 or 2, share the weights of an expert.
void launch_tokens(const MoeGemmArgs& args, int cluster, const Launch& where);
void launch_sorted(const MoeGemmArgs& args, int cluster, const Launch& where);
/// Down with x in sorted order, for chains: they start early. The first one's output is in sorted
/// order, too, out [capacity, N]; the other's rows are added to those of their tokens.
void launch_sorted_rows(const MoeGemmArgs& args, int cluster, const Launch& where);
void launch_sorted_token_sums(const MoeGemmArgs& args, int cluster, const Launch& where);
/// The better number of blocks, fitted to what `moegate tune` measured of fp8 MoE layers on H200s:
/// in token order at most 3.4 % behind the other (reports/gallery/nvidia-h200-default-blocks.md).
int usual_cluster(const MoeGemmShape& shape, bool sorted);
std::string unsupported(const MoeGemmShape& shape);

}  // namespace moegate::moe_gemm::prefill
