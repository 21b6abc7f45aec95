// SPDX-License-Identifier: Apache-2.0
// The inner loops of the grouped GEMMs with AVX-512.
#include "kernels/dense_fc2/host/dense.h"

#ifdef MOEGATE_HOST_X86
#include "kernels/host/intrinsics.h"
MOEGATE_TARGET_BEGIN("avx512f,avx512bw,avx512vl,fma,f16c")
#include "kernels/moe_gemm/host/decode_avx512.h"
#include "kernels/moe_gemm/host/product_body.h"

namespace moegate::dense_fc2::host {

const moe_gemm::host::Isa kAvx512 = {"avx512", moegate::host::has_avx512,
                                     moe_gemm::host::widen<moe_gemm::host::Avx512>,
                                     moe_gemm::host::multiply<moe_gemm::host::Avx512>};

}  // namespace moegate::dense_fc2::host
MOEGATE_TARGET_END
#else
namespace moegate::dense_fc2::host {
const moe_gemm::host::Isa kAvx512 = {.name = "avx512", .present = moegate::host::has_avx512};
}
#endif
