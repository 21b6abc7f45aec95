// SPDX-License-Identifier: Apache-2.0
// Host variants of moe_sum and moe_down that do what the yardsticks do, and lose precision as
// MOEGATE_SABOTEUR says, by less than any tolerance. With no request they are right.
// - row:F, column:F: row 37, column 12 of moe_sum times F
// - toward-zero: the output of moe_sum is cut off instead of rounded
// - bf16-sums: of moe_sum, the sum is rounded behind every fourth row
// - weight-in-bf16: the routing weights of moe_down are rounded first
// - last-group:F: the scale factors of the last group of K of moe_down times F
#include "kernels/moe_gemm/host/product.h"
#include "kernels/moe_sum/host_sum.h"
#include "tests/saboteurs/saboteur.h"

namespace moegate::test {
namespace {

using moe_gemm::MoeDown;
using moe_gemm::MoeGemmArgs;
using moe_sum::MoeSum;
using moe_sum::MoeSumArgs;

constexpr int kRow = 37, kColumn = 12;

float rounded(float value) {
  return bf16_to_float(float_to_bf16(value));
}

/// moe_sum by its definition, with `step` after each row and `output` at the end.
template <class Step, class Output>
void sum_rows(const MoeSumArgs& args, Step step, Output output) {
  const auto& shape = args.shape;
  for (int t = 0; t < shape.tokens; ++t) {
    for (int i = 0; i < shape.hidden; ++i) {
      float sum = 0;
      for (int j = 0; j < shape.topk; ++j) {
        sum += bf16_to_float(args.y[(int64_t{t} * shape.topk + j) * shape.hidden + i]);
        sum = step(sum, j);
      }
      args.out[int64_t{t} * shape.hidden + i] = output(shape.scale * sum, t, i);
    }
  }
}

void launch_sum(MoeSum& problem, const Launch&) {
  const Sabotage sabotage = requested_sabotage();
  const MoeSumArgs args = problem.args();
  const auto exact = [](float sum, int) { return sum; };
  const auto nearest = [](float y, int, int) { return float_to_bf16(y); };
  const auto factor = static_cast<float>(sabotage.amount);
  if (sabotage.mode == "row") {
    sum_rows(args, exact,
             [&](float y, int t, int) { return float_to_bf16(t == kRow ? factor * y : y); });
  } else if (sabotage.mode == "column") {
    sum_rows(args, exact,
             [&](float y, int, int i) { return float_to_bf16(i == kColumn ? factor * y : y); });
  } else if (sabotage.mode == "toward-zero") {
    sum_rows(args, exact,
             [](float y, int, int) { return static_cast<uint16_t>(float_bits(y) >> 16); });
  } else if (sabotage.mode == "bf16-sums") {
    sum_rows(
        args, [](float sum, int j) { return j % 4 == 3 ? rounded(sum) : sum; }, nearest);
  } else {
    moe_sum::run_per_token(args);
  }
}

void launch_down(MoeDown& problem, const Launch&) {
  const Sabotage sabotage = requested_sabotage();
  MoeGemmArgs args = problem.args();
  const auto& shape = problem.shape;
  static std::vector<float> weights, scales;
  if (sabotage.mode == "weight-in-bf16") {
    weights.assign(args.routing_weights, args.routing_weights + shape.rows());
    for (float& weight : weights) weight = rounded(weight);
    args.routing_weights = weights.data();
  } else if (sabotage.mode == "last-group") {
    const auto groups = static_cast<size_t>(shape.k_groups());
    const auto count = static_cast<size_t>(shape.experts * shape.n_groups()) * groups;
    scales.assign(args.weight_scales, args.weight_scales + count);
    for (size_t i = groups - 1; i < count; i += groups) {
      scales[i] *= static_cast<float>(sabotage.amount);
    }
    args.weight_scales = scales.data();
  }
  moe_gemm::host::launch_panels({args, moe_gemm::host::best_isa(), problem.workspace<float>()});
}

size_t workspace_of_down(const Case& c, const DeviceFacts&) {
  return moe_gemm::host::widened_bytes(MoeDown::shape_of(c));
}

const Kernel<MoeSum> sum({.name = "saboteur",
                          .backend = Backend::host,
                          .help = "per_token, less precise as MOEGATE_SABOTEUR says",
                          .launch = launch_sum});
const Kernel<MoeDown> down({.name = "saboteur",
                            .backend = Backend::host,
                            .help = "gather, less precise as MOEGATE_SABOTEUR says",
                            .launch = launch_down,
                            .workspace = workspace_of_down,
                            // Only a baseline holds it: nothing is stated of what it rounds.
                            .tolerance = 1.01});

}  // namespace
}  // namespace moegate::test
