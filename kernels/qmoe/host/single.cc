// SPDX-License-Identifier: Apache-2.0
// The int4 products on the CPU as the single-pass kernel does them: for every routed row and column
// one dot product over all of K, then bias and SwiGLU. The yardstick.
//
// Floor: the active experts' codes and scale factors from memory, at 33.7 GB/s (`moegate doctor`).
// Measured cold with AVX-512 on 2 threads of an AMD EPYC, other programs running, 3 processes: 35
// GB/s at T = 1, H = I = 704 (fc1 and fc2, one scale factor per column; 27 with blocks of 32); 25
// at H = 512, I = 128 (fc1). fc2 there has 64 bytes of codes per column and reaches 15; timed apart
// from the harness, without bias and rounding, which are scalar code, 18.1 us became 15.4. At T = 8
// an expert's later rows decode again what the first one brought into the cache: 20 to 28 GB/s at
// H = I = 704.
#include "kernels/qmoe/host/dot.h"

namespace moegate::qmoe::host {
namespace {

template <class P>
size_t workspace(const Case& c, const DeviceFacts&) {
  return widened_bytes(P::shape_of(c));
}

template <class P>
void launch(P& problem, const Launch&) {
  launch_single(best_isa(), {problem.args(), problem.template workspace<float>()});
}

constexpr const char* kHelp = "one pass over K per row and column";

const Kernel<QmoeFc1> fc1(spec<QmoeFc1>("single", kHelp, launch, workspace<QmoeFc1>));
const Kernel<QmoeFc2> fc2(spec<QmoeFc2>("single", kHelp, launch, workspace<QmoeFc2>));

}  // namespace
}  // namespace moegate::qmoe::host
