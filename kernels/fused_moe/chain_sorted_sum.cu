// SPDX-License-Identifier: Apache-2.0
// chip: sm_90a (its products)
// As chain_sorted, with moe_sum in the down product (fp8/token_sums.h). Its tiles go down the rows
// first: what all rows add to in 256 columns is 4 MB at 8192 tokens and stays in L2, where the rows
// themselves, k times as many, would pass through memory twice.
//
// Figures beside chain_sorted's. At 8192 tokens of R1 TP8 a draw with chain_fused_sum (1140, 1127
// us), whose rows are gathered and whose activation is a launch of its own; why it is no more than
// that was not taken apart. Zeroing the output takes 26 us there, before align, which could run
// beside it.
#include "kernels/fused_moe/sorted_parts.h"
#include "kernels/moe_gemm/gather/zero_output.h"

namespace moegate::fused_moe {
namespace {

void launch(FusedMoe& problem, const Launch& where) {
  const FusedMoeShape& shape = problem.shape;
  moe_gemm::gather::zero_output(problem.args().out, int64_t{shape.tokens} * shape.hidden,
                                where.stream);
  const SortedLayer layer = launch_up_to_codes(problem, where);
  moe_gemm::MoeGemmArgs down = layer.down();
  down.out = layer.args.out;
  moe_gemm::prefill::launch_sorted_token_sums(down, layer.down_cluster(), where);
}

const Kernel<FusedMoe> kernel(
    sorted_chain("chain_sorted_sum",
                 "as chain_sorted, with rows added to their tokens by the down product", launch));

}  // namespace
}  // namespace moegate::fused_moe
