// SPDX-License-Identifier: Apache-2.0
// How a host kernel that works in token order registers itself.
#pragma once

#include "kernels/moe_gemm/host/product.h"
#include "kernels/moe_gemm/tiles/tile.h"

namespace moegate::moe_gemm::host {

/// One whose path is its instruction set.
template <void (*kLaunch)(const MoeGemmArgs&, void* workspace, const Launch&),
          size_t (*kWorkspace)(const MoeGemmShape&)>
using HostKernel = tiles::PlainKernel<Backend::host, kLaunch, nullptr, kWorkspace, isa_path>;

}  // namespace moegate::moe_gemm::host
