// SPDX-License-Identifier: Apache-2.0
// The inner loops of the grouped GEMMs with AVX2, FMA and F16C.
#include "kernels/dense_fc2/host/dense.h"

#ifdef MOEGATE_HOST_X86
#include <immintrin.h>
MOEGATE_TARGET_BEGIN("avx2,fma,f16c")
#include "kernels/moe_gemm/host/decode_avx2.h"
#include "kernels/moe_gemm/host/product_body.h"

namespace moegate::dense_fc2::host {

const moe_gemm::host::Isa kAvx2 = {"avx2", moegate::host::has_avx2,
                                   moe_gemm::host::widen<moe_gemm::host::Avx2>,
                                   moe_gemm::host::multiply<moe_gemm::host::Avx2>};

}  // namespace moegate::dense_fc2::host
MOEGATE_TARGET_END
#else
namespace moegate::dense_fc2::host {
const moe_gemm::host::Isa kAvx2 = {.name = "avx2", .present = moegate::host::has_avx2};
}
#endif
