// SPDX-License-Identifier: Apache-2.0
// dense_fc2 on the CPU without what alpha says is useless: an expert's weights meet only the rows
// whose alpha for it is not 0, and are not read at all where there is none. Where rows lie in the
// dense layout, there is no sorting to be paid for.
//
// The operator's cost, and with it its floor, is that of the work done here, k / E of the dense
// form's products.
//
// Measured against `alpha_per_k_tile` (same runs as stated there): 10.4, 7.2 and 8.7 x its speed at
// T = 1, 4 and 16. Of its 28 us at T = 1 the weights that it reads would take 8 in one stretch;
// they are pieces of 256 bytes, 64 KiB apart.
#include "kernels/dense_fc2/host/dense.h"

namespace moegate::dense_fc2::host {
namespace {

const Kernel<DenseFc2> kernel(spec<Rows::routed, AlphaPer::expert>(
    "sparse_rows", "only rows whose alpha is not 0, gathered expert by expert"));

}  // namespace
}  // namespace moegate::dense_fc2::host
