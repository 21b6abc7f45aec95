// SPDX-License-Identifier: Apache-2.0
// The weights as the GEMV kernels read them, so that 128 threads with 16 bytes each cover 4 columns
// over 1024 of K without a gap:
//
// - codes [E, N/4, K/64, 4 columns, 64 k], two per byte. In a 32-bit word the codes of k = 0..7
//   are, from the low nibble up, k = 0, 2, 4, 6, 1, 3, 5, 7: a mask at one position then yields two
//   neighbours in k, half a word apart, as a pair of halves wants them.
// - scales [E, K/b, N]: neighbouring columns side by side.
//
// The same idea as the CUTLASS mixed-input layout that ONNX Runtime prepacks to, without its
// permutation of rows for tensor cores.
#pragma once

#include <cuda_runtime.h>

#include "kernels/qmoe/eligibility.h"

namespace moegate::qmoe {

constexpr int kGroupColumns = 4;
constexpr int kChunkK = 32;  // codes of one column in 16 bytes

struct Interleaved {
  const uint4* codes;
  const uint16_t* scales;
};

/// Packs on where.stream unless done already; wants K % 64 == 0 and N % 4 == 0.
void pack_interleaved(Qmoe& problem, const Launch& where);
/// What pack_interleaved() made.
Interleaved interleaved(Qmoe& problem);

/// The same of a product among a problem's, whose packed weights go by the name `layout`. Of the
/// arguments weights, scales and shape are used.
void pack_interleaved(Problem& problem, const std::string& layout, const QmoeArgs& args,
                      const Launch& where);
Interleaved interleaved(Problem& problem, const std::string& layout, const QmoeShape& shape);

}  // namespace moegate::qmoe
