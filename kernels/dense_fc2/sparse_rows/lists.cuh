// SPDX-License-Identifier: Apache-2.0
// Which rows sparse_rows multiplies: four warps turn alpha [M, E] into a bit per token and expert,
// some experts ahead of those that need them, batch by batch.
#pragma once

#include "kernels/cuda/pipeline.cuh"
#include "kernels/cuda/ring.cuh"
#include "kernels/dense_fc2/sparse_rows/plan.h"

namespace moegate::dense_fc2::sparse_rows {

using namespace cuda;

constexpr int kScanWarps = 4;
constexpr int kScanExperts = 8;  // that a lane looks at at once: of a token a sector of 32 bytes
constexpr int kScansPerWarp = kListWords / kScanExperts / kScanWarps;  // of 32 tokens each

struct Work {
  DenseFc2Args args;
  Plan plan;
};

/// Eight alphas of a token, of which `left` exist; zeros for others.
template <bool kVectors>
struct Alphas {
  float values[kScanExperts];

  __device__ void load(const float* from, int left) {
    if constexpr (kVectors) {
#pragma unroll
      for (int i = 0; i < kScanExperts; i += 4) {
        float4 four = {};
        if (i < left) four = __ldg(reinterpret_cast<const float4*>(from + i));
        values[i] = four.x, values[i + 1] = four.y, values[i + 2] = four.z, values[i + 3] = four.w;
      }
    } else {
#pragma unroll
      for (int i = 0; i < kScanExperts; ++i) values[i] = i < left ? __ldg(from + i) : 0;
    }
  }
};

/// Fills the ring of lists, by kScanWarps warps; kVectors: E is a multiple of 4.
template <bool kVectors>
__device__ void scan_alphas(const Work& work, Shared& shared, int warp) {
  const DenseFc2Shape& s = work.args.shape;
  const Plan& plan = work.plan;
  const int lane = threadIdx.x % 32;
  Ring ring{kLists};
  for (int first = 0; first < s.experts; first += plan.batch(), ring.advance()) {
    Alphas<kVectors> alphas[kScansPerWarp];
    int to[kScansPerWarp];
#pragma unroll
    for (int i = 0; i < kScansPerWarp; ++i) {
      const int scan = warp * kScansPerWarp + i;
      const int expert = (scan >> plan.log_words) * kScanExperts, word = scan & (plan.words() - 1);
      const int token = word * 32 + lane;
      const int left = token < s.tokens ? s.experts - first - expert : 0;
      to[i] = ((expert + lane) << plan.log_words) + word;
      alphas[i].load(work.args.alpha + (int64_t{token} * s.experts + first + expert), left);
    }
    wait_barrier(&shared.lists_empty[ring.stage], ring.phase ^ 1);
#pragma unroll
    for (int i = 0; i < kScansPerWarp; ++i) {
      uint32_t own = 0;  // of lane e: the list of expert e
#pragma unroll
      for (int e = 0; e < kScanExperts; ++e) {
        const uint32_t list = __ballot_sync(~0u, alphas[i].values[e] != 0);
        if (lane == e) own = list;
      }
      if (lane < kScanExperts) shared.lists[ring.stage][to[i]] = own;
    }
    arrive_warp(&shared.lists_full[ring.stage]);
  }
}

/// An expert's list, as a warp has it: lanes from `first_lane` on have a word each.
struct List {
  uint32_t bits;  // of the lane, which may be another expert's
  int first_lane;
  int rows;  // of the expert
};

/// Calls f(expert, list) for every expert that some token needs, in order; by a whole warp. Rows
/// are counted for all experts that 32 words have, at once.
template <class F>
__device__ void for_each_expert(const Work& work, Shared& shared, F f) {
  const Plan& plan = work.plan;
  const int lane = threadIdx.x % 32, words = plan.words();
  const uint32_t one_expert = (1u << words) - 1;
  Ring ring{kLists};
  for (int first = 0; first < work.args.shape.experts; first += plan.batch(), ring.advance()) {
    wait_barrier(&shared.lists_full[ring.stage], ring.phase);
    for (int part = 0; part < kListWords; part += 32) {
      const uint32_t bits = shared.lists[ring.stage][part + lane];
      int rows = __popc(bits);  // of the lane's expert
      for (int other = 1; other < words; other *= 2) rows += __shfl_xor_sync(~0u, rows, other);
      uint32_t left = __ballot_sync(~0u, bits != 0);
      while (left != 0) {
        const int from = (__ffs(static_cast<int>(left)) - 1) & -words;  // the expert's first lane
        f(first + ((part + from) >> plan.log_words),
          List{bits, from, __shfl_sync(~0u, rows, from)});
        left &= ~(one_expert << from);
      }
    }
    arrive_warp(&shared.lists_empty[ring.stage]);
  }
}

}  // namespace moegate::dense_fc2::sparse_rows
