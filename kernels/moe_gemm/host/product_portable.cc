// SPDX-License-Identifier: Apache-2.0
// The host variants' inner loops in plain C++, for processors without AVX2
// and other architectures.
#include "kernels/moe_gemm/host/decode_portable.h"
#include "kernels/moe_gemm/host/product.h"
#include "kernels/moe_gemm/host/product_body.h"

namespace moegate::moe_gemm::host {

const Isa kPortable = {"portable", nullptr, widen<Portable>, multiply<Portable>};

}  // namespace moegate::moe_gemm::host
