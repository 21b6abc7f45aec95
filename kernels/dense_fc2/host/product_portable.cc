// SPDX-License-Identifier: Apache-2.0
// The inner loops of the grouped GEMMs in plain C++, for processors without AVX2
// and other architectures.
#include "kernels/dense_fc2/host/dense.h"
#include "kernels/moe_gemm/host/decode_portable.h"
#include "kernels/moe_gemm/host/product_body.h"

namespace moegate::dense_fc2::host {

const moe_gemm::host::Isa kPortable = {"portable", nullptr,
                                       moe_gemm::host::widen<moe_gemm::host::Portable>,
                                       moe_gemm::host::multiply<moe_gemm::host::Portable>};

}  // namespace moegate::dense_fc2::host
