// SPDX-License-Identifier: Apache-2.0
// CUDA variants of moe_sum and moe_down, by their definitions, that lose precision as
// MOEGATE_SABOTEUR says, by less than any tolerance. With no request they are right.
// - row:F, column:F: row 37, column 12 of the output times F
// - expert:F: of moe_down, the rows of expert 3 times F
// - all:F: everything times F
// - weight-in-bf16, last-group:F: of moe_down, the routing weights are rounded first, the last
//   group of K times F
// - bf16-sums, fp16-sums: sums are rounded behind every fourth row, behind every group of K
// - toward-zero: the output is cut off instead of rounded
// - noise:F: up to F ulp of the output are added or taken
// - activation:F: off by a share of up to F that follows the value, as a fast approximation is
#include <cuda_fp16.h>

#include <algorithm>
#include <iterator>
#include <type_traits>

#include "harness/kernel/cuda_check.h"
#include "kernels/moe_gemm/moe_gemm.h"
#include "kernels/moe_sum/moe_sum.h"
#include "tests/saboteurs/saboteur.h"

namespace moegate::test {
namespace {

using moe_gemm::MoeDown;
using moe_gemm::MoeGemmArgs;
using moe_sum::MoeSum;
using moe_sum::MoeSumArgs;

constexpr int kRow = 37, kColumn = 12, kExpert = 3, kGroup = 128;

enum class Slip : int {
  none,
  row,
  column,
  expert,
  all,
  weight_in_bf16,
  last_group,
  bf16_sums,
  fp16_sums,
  toward_zero,
  noise,
  activation
};

Slip slip_of(const std::string& mode) {
  constexpr const char* kNames[] = {
      "none",       "row",       "column",    "expert",      "all",   "weight-in-bf16",
      "last-group", "bf16-sums", "fp16-sums", "toward-zero", "noise", "activation"};
  const auto* const at = std::ranges::find(kNames, mode);
  return at == std::end(kNames) ? Slip::none : static_cast<Slip>(at - kNames);
}

/// A sum as the slip keeps it.
__device__ float kept(float sum, Slip slip) {
  if (slip == Slip::bf16_sums) return bf16_to_float(float_to_bf16(sum));
  return slip == Slip::fp16_sums ? __half2float(__float2half_rn(sum)) : sum;
}

/// In [-1, 1), the same for the same element.
__device__ float noise_of(int64_t row, int column) {
  const uint64_t bits = mix64(mix64(static_cast<uint64_t>(row)) ^ static_cast<uint64_t>(column));
  return static_cast<float>(static_cast<int32_t>(bits >> 32)) * 0x1p-31F;
}

__device__ uint16_t written(float y, int64_t row, int column, Slip slip, float factor) {
  const bool all = slip == Slip::all || (slip == Slip::row && row == kRow) ||
                   (slip == Slip::column && column == kColumn);
  if (all) y *= factor;
  if (slip == Slip::noise) {
    const float ulp = bits_float(float_bits(y) & 0x7f800000u) * 0x1p-7F;
    y += factor * noise_of(row, column) * ulp;
  }
  if (slip == Slip::activation) y *= 1 + factor * sinf(3 * y);
  if (slip == Slip::toward_zero) return static_cast<uint16_t>(float_bits(y) >> 16);
  return float_to_bf16(y);
}

/// A block per token.
__global__ void sum_kernel(MoeSumArgs args, Slip slip, float factor) {
  const int64_t t = blockIdx.x;
  const auto& shape = args.shape;
  for (int i = static_cast<int>(threadIdx.x); i < shape.hidden; i += static_cast<int>(blockDim.x)) {
    float sum = 0;
    for (int j = 0; j < shape.topk; ++j) {
      sum += bf16_to_float(args.y[(t * shape.topk + j) * shape.hidden + i]);
      if (j % 4 == 3) sum = kept(sum, slip);
    }
    args.out[t * shape.hidden + i] = written(shape.scale * sum, t, i, slip, factor);
  }
}

/// A block per place of the sorted rows.
__global__ void down_kernel(MoeGemmArgs args, Slip slip, float factor) {
  const auto& shape = args.shape;
  const int place = static_cast<int>(blockIdx.x), groups = shape.k / kGroup;
  if (place >= args.padded_rows[0] || args.sorted_token_ids[place] >= shape.rows()) return;
  const int64_t row = args.sorted_token_ids[place], expert = args.expert_ids[place / shape.block];
  const auto* x = static_cast<const uint8_t*>(args.x) + row * shape.k;
  float weight = args.routing_weights[row];
  if (slip == Slip::weight_in_bf16) weight = bf16_to_float(float_to_bf16(weight));
  if (slip == Slip::expert && expert == kExpert) weight *= factor;
  for (int n = static_cast<int>(threadIdx.x); n < shape.n; n += static_cast<int>(blockDim.x)) {
    const int64_t of_tile = (expert * ((shape.n + kGroup - 1) / kGroup) + n / kGroup) * groups;
    const auto* w = static_cast<const uint8_t*>(args.weights) + (expert * shape.n + n) * shape.k;
    float sum = 0;
    for (int g = 0; g < groups; ++g) {
      float products = 0;
      for (int k = g * kGroup; k < (g + 1) * kGroup; ++k) {
        products += e4m3_to_float(x[k]) * e4m3_to_float(w[k]);
      }
      if (slip == Slip::last_group && g == groups - 1) products *= factor;
      sum += products * args.x_scales[row * groups + g] * args.weight_scales[of_tile + g];
      sum = kept(sum, slip);
    }
    args.out[row * shape.n + n] = written(weight * sum, row, n, slip, factor);
  }
}

template <class Args>
void start(void (*kernel)(Args, Slip, float), int64_t blocks,
           const std::type_identity_t<Args>& args, const Launch& where) {
  const Sabotage asked = requested_sabotage();
  kernel<<<static_cast<unsigned>(blocks), 256, 0, static_cast<cudaStream_t>(where.stream)>>>(
      args, slip_of(asked.mode), static_cast<float>(asked.amount));
  MOEGATE_CUDA_CHECK(cudaGetLastError());
}

const Kernel<MoeSum> sum({.name = "saboteur",
                          .backend = Backend::cuda,
                          .help = "a block per token, less precise as MOEGATE_SABOTEUR says",
                          .launch = [](MoeSum& problem, const Launch& where) {
                            start(sum_kernel, problem.shape.tokens, problem.args(), where);
                          }});
const Kernel<MoeDown> down({.name = "saboteur",
                            .backend = Backend::cuda,
                            .help = "a block per row, less precise as MOEGATE_SABOTEUR says",
                            .launch =
                                [](MoeDown& problem, const Launch& where) {
                                  start(down_kernel, problem.shape.capacity(), problem.args(),
                                        where);
                                },
                            // Only a baseline holds it: nothing is stated of what it rounds.
                            .tolerance = 1.01});

}  // namespace
}  // namespace moegate::test
