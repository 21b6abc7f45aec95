// SPDX-License-Identifier: Apache-2.0
// The host variants' inner loops with AVX-512.
#include "kernels/moe_gemm/host/product.h"

#ifdef MOEGATE_HOST_X86
#include "kernels/host/intrinsics.h"
MOEGATE_TARGET_BEGIN("avx512f,avx512bw,avx512vl,fma,f16c")
#include "kernels/moe_gemm/host/decode_avx512.h"
#include "kernels/moe_gemm/host/product_body.h"

namespace moegate::moe_gemm::host {

const Isa kAvx512 = {"avx512", moegate::host::has_avx512, widen<Avx512>, multiply<Avx512>};

}  // namespace moegate::moe_gemm::host
MOEGATE_TARGET_END
#else
namespace moegate::moe_gemm::host {
const Isa kAvx512 = {.name = "avx512", .present = moegate::host::has_avx512};
}
#endif
