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
#include "kernels/cuda/mma.cuh"
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

/// How many groups of so many panels an expert has; the last may end with panels of zeros.
MOEGATE_HD inline int panel_groups(const W4Shape& shape, int group) {
  return (panels_of(shape) + group - 1) / group;
}

/// Bytes of all units, in groups of so many panels.
inline int64_t units_bytes(const W4Shape& shape, int group = 1) {
  const int64_t units =
      int64_t{shape.experts} * panel_groups(shape, group) * group * units_of(shape);
  return with_format(shape, [&]<class W>() { return units * W::kUnitBytes; });
}

/// Weights as kernels get them.
struct PackedWeights {
  const uint8_t* units;
  const uint32_t* is_wide;  // [1]: 1: a scale is 2^2 or more
};

/// A product's launch as a function, for layers, too.
struct PackedKernel {
  const char *name, *help;
  W4Scaling scaling;  // of int4
  int group;          // of panels
  void (*launch)(const W4Args&, const PackedWeights&, const Launch&);
  std::string (*unsupported)(const W4Shape&, const DeviceFacts&);
};
extern const PackedKernel kTileMma, kStreamRows, kStreamMma, kPrefillRs;

/// Packs all weights of a product, for prepare(): expert by expert, group by group of so many
/// panels, the units of a group's panels side by side. `name`: of the product in a layer.
void pack_weights(Problem& problem, const W4Args& args, const Launch& where, int group = 1,
                  const char* name = "w4");
PackedWeights packed_weights(Problem& problem, const W4Shape& shape, int group = 1,
                             const char* name = "w4");

/// A variant that reads packed weights, of either operator.
template <class P, const PackedKernel& kKernel>
KernelSpec<P> packed_spec() {
  return {
      .name = kKernel.name,
      .backend = Backend::cuda,
      .help = kKernel.help,
      .launch =
          [](P& problem, const Launch& where) {
            kKernel.launch(problem.args(kKernel.scaling),
                           packed_weights(problem, problem.shape, kKernel.group), where);
          },
      .prepare =
          [](P& problem, const Launch& where) {
            pack_weights(problem, problem.args(), where, kKernel.group);
          },
      .unsupported = [](const Case& c,
                        const DeviceFacts& d) { return kKernel.unsupported(P::shape_of(c), d); }};
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

}  // namespace moegate::w4_moe
