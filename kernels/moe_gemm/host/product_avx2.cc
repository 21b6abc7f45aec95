// SPDX-License-Identifier: Apache-2.0
// The host variants' inner loops with AVX2, FMA and F16C.
#include "kernels/moe_gemm/host/product.h"

#ifdef MOEGATE_HOST_X86
#include <immintrin.h>
MOEGATE_TARGET_BEGIN("avx2,fma,f16c")
#include "kernels/moe_gemm/host/decode_avx2.h"
#include "kernels/moe_gemm/host/product_body.h"

namespace moegate::moe_gemm::host {

const Isa kAvx2 = {"avx2", moegate::host::has_avx2, widen<Avx2>, multiply<Avx2>};

}  // namespace moegate::moe_gemm::host
MOEGATE_TARGET_END
#else
namespace moegate::moe_gemm::host {
const Isa kAvx2 = {.name = "avx2", .present = moegate::host::has_avx2};
}
#endif
