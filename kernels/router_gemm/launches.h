// SPDX-License-Identifier: Apache-2.0
// The CUDA launches of router_gemm that several variants make. All are asynchronous on
// `where.stream`, allocate nothing and can be captured into a graph. Errors: Error(internal) when a
// launch is refused.
#pragma once

#include "kernels/router_gemm/parts.cuh"

namespace moegate::router_gemm {

/// The two have the same bits. The first one takes packed_args(), the second one row_args().
void launch_mma_cluster(const PackedArgs& packed, const Launch& where);
void launch_tiles(const PackedArgs& rows, const Launch& where);

/// Why mma_cluster does not take a case; empty: it does.
std::string cluster_unsupported(const RouterGemmShape& shape);

}  // namespace moegate::router_gemm
