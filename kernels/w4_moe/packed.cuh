// SPDX-License-Identifier: Apache-2.0
// Weights as the CUDA variants read them: in the order of the fragments of mma.m16n8k16. So a warp
// reads one stream of whole lines, and a lane decodes what it reads.
//
// A panel is 16 rows of weights: for gate_up the gates of 8 columns of the output and, 8 rows
// behind, their ups, so that SwiGLU needs no exchange between lanes. A unit is a panel's 64 of K:
// 16 bytes of codes for each lane, a word for each 16 of K, then the scales, those of two rows for
// each four lanes; of int4 groups of 128 each unit has them. Behind all units is a word that says
// whether any scale of MXFP4 is large.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/cuda/barrier.cuh"
#include "kernels/cuda/cuda_check.cuh"
#include "kernels/w4_moe/decoders.cuh"

namespace moegate::w4_moe {

constexpr int kPanelRows = 16, kUnitK = 64;

/// An even number: some warps take two.
MOEGATE_HD inline int panels_of(const W4Shape& shape) {
  return (shape.n + 2 * kPanelRows - 1) / (2 * kPanelRows) * 2;
}
MOEGATE_HD inline int units_of(const W4Shape& shape) {
  return (shape.k + kUnitK - 1) / kUnitK;
}

/// The row of an expert's weights at row `i` of a panel; N or more: none.
MOEGATE_HD inline int weight_row(const W4Shape& shape, int panel, int i) {
  return panel * kPanelRows + (shape.down ? i : 2 * (i % 8) + i / 8);
}

/// Why no kernel with a grid row for each block of rows takes a case; empty: they do.
inline std::string too_many_blocks(const W4Shape& shape) {
  constexpr int64_t kMost = 65535;  // of a grid's y
  if (shape.capacity() <= kMost * shape.block) return {};
  return fmt::format("takes up to {} blocks of rows", kMost);
}

/// Bytes of all units.
inline int64_t units_bytes(const W4Shape& shape) {
  const int64_t units = int64_t{shape.experts} * panels_of(shape) * units_of(shape);
  return with_format(shape, [&]<class W>() { return units * W::kUnitBytes; });
}

/// Weights as kernels get them.
struct PackedWeights {
  const uint8_t* units;
  const uint32_t* is_wide;  // [1]: 1: a scale is 2^2 or more
};

/// Packs all weights, for prepare().
void pack_weights(W4Moe& problem, const Launch& where);
PackedWeights packed_weights(W4Moe& problem);

/// A variant that reads packed weights, of either operator. kUnsupported: of a W4Shape and
/// DeviceFacts.
template <class P, auto kUnsupported>
KernelSpec<P> packed_spec(const char* name, const char* help, void (*launch)(P&, const Launch&)) {
  return {.name = name,
          .backend = Backend::cuda,
          .help = help,
          .launch = launch,
          .prepare = [](P& problem, const Launch& where) { pack_weights(problem, where); },
          .unsupported = [](const Case& c,
                            const DeviceFacts& d) { return kUnsupported(P::shape_of(c), d); }};
}

/// What a lane has of a unit.
template <class W>
struct Unit {
  uint4 codes;
  typename W::Scales scales;
};

/// Whether decode() has to take two factors.
template <class W>
__device__ bool is_wide(const PackedWeights& weights) {
  if constexpr (W::kMayBeWide) {
    return *weights.is_wide != 0;
  } else {
    return false;
  }
}

/// Whether a row of an expert's weights has a bias.
template <class W>
__device__ bool has_bias(const W4Args& args, int row) {
  return row < args.shape.n && (!W::kMayLackBias || args.bias != nullptr);
}

/// Four 8x8 matrices of 16-bit elements; lane l gives the address of row l % 8 of matrix l / 8, and
/// gets of each the elements l % 4 * 2 and the next of row l / 4.
__device__ inline void load_matrices(uint32_t address, uint32_t (&to)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
}

/// sums += a[16, 16] * b[8, 16]^T. Lane 4g + t holds of rows g (sums 0, 1) and g + 8 (2, 3) the
/// columns 2t and 2t + 1.
__device__ inline void multiply(float (&sums)[4], const uint32_t (&a)[4], uint32_t b0,
                                uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace moegate::w4_moe
