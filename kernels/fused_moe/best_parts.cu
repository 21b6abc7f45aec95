// SPDX-License-Identifier: Apache-2.0
// chip: sm_90 (moe_align by clusters)
#include "kernels/fused_moe/best_parts.h"

#include "kernels/moe_align/launches.h"
#include "kernels/moe_gemm/gather/zero_output.h"
#include "kernels/moe_sum/launches.h"
#include "kernels/silu_mul_quant/launches.h"

namespace moegate::fused_moe {
namespace {

void multiply(moe_gemm::MoeGemmArgs args, const FusedMoe& problem, ChooseTile choose,
              const Launch& where) {
  args.shape.early = true;
  choose(args.shape, problem.spec, where.device).launch(args, nullptr, where);
}

}  // namespace

void launch_up_to_activation(FusedMoe& problem, const Buffers& buffers, ChooseTile choose,
                             const Launch& where) {
  const FusedMoeArgs args =
      quantise_input(problem, buffers, silu_mul_quant::launch_group_quant, where);
  moe_align::launch_redundant_count(align(args, buffers), where);
  multiply(gate_up(args, buffers), problem, choose, where);
  silu_mul_quant::launch_fused_early(quantise(args, buffers), where);
}

void launch_best_parts(FusedMoe& problem, ChooseTile choose, const Launch& where) {
  const FusedMoeArgs args = problem.args();
  const Buffers buffers = buffers_at(args.shape, problem.input, problem.workspace());
  if (const int64_t elements = elements_to_clear(problem); elements > 0)
    moe_gemm::gather::zero_output(buffers.y, elements, where.stream);
  launch_up_to_activation(problem, buffers, choose, where);
  multiply(down(args, buffers), problem, choose, where);
  moe_sum::launch_early(sum(args, buffers), where);
}

}  // namespace moegate::fused_moe
