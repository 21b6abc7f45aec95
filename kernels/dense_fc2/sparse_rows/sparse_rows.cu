// SPDX-License-Identifier: Apache-2.0
// chip: sm_90a (wgmma, TMA)
// dense_fc2 without what alpha says is useless: an expert's weights meet only the rows whose alpha
// for it is not 0, gathered from where they lie, and are not read at all where there is none.
//
// A block has a run of columns, 56 at H = 7168 and 132 SMs (128 blocks), and goes through all
// experts, whose weights a thread streams by TMA. Weights are the M of wgmma, 16 gathered rows its
// N. Sums of all tokens stay in shared memory in fp32 (115 KB for 512 tokens and 56 columns); three
// warpgroups take the chunks of 16 rows in turn and add their products, times alpha, in the order
// of experts, so that launches agree to the bit. There is no split of K and no second kernel. Four
// warps turn alpha into a bit per token and expert; one cuts these lists into chunks, which up to
// six gather by asynchronous copies, in turn.
//
// Sums are added after every 256 of K, or 128 where I is an odd multiple of it or there are block
// scale factors.
//
// Floor on an H200 at DeepSeek-R1's shape (H = 7168, K = 65536): the weights of the experts that
// are needed, 1.8 MB each, 470 MB of all 256, at 4.49 TB/s: 105 us. Operations are k / E of the
// dense form's: 4.9 us at M = 256. What blocks gather, each for itself, comes from L2: 134 MB at
// M = 512 beside the weights, and 67 MB of alphas.
//
// Measured on an H200, cold, us at M = 1, 16, 64, 128, 192, 256, 288, 384, 512 (commit 0bfbd21, 3
// processes): 10.1 52.0 108 119 120 128 131 137 172, at 1.92 GHz and more, 87 % of the floor at
// M = 128 to 192, 76 % at 384. At M = 512 six stages are left, and the warp that plans is busy for
// four fifths of the time. Gathering warps that each went through all lists for themselves took
// 144 at M = 128 and 198 at 384 (three of them, commit 67ad30e).
#include "kernels/dense_fc2/alpha/launch.cuh"
#include "kernels/dense_fc2/sparse_rows/kernel.cuh"

namespace moegate::dense_fc2::sparse_rows {
namespace {

template <bool kBlockScales, int kSpan>
void launch_form(const DenseFc2Args& args, const Plan& plan, void* stream) {
  const DenseFc2Shape& s = args.shape;
  const auto kernel = sparse_rows_kernel<kBlockScales, kSpan>;
  allow_shared(kernel, plan.shared_bytes);
  const auto grid = static_cast<unsigned>((s.hidden + plan.columns - 1) / plan.columns);
  const auto threads = static_cast<unsigned>(kFirstGatherWarp + plan.gather_warps) * 32;
  kernel<<<grid, threads, plan.shared_bytes, static_cast<cudaStream_t>(stream)>>>(
      matrix_map(args.b, s.hidden, s.k(), plan.columns), {args, plan});
  check_launch("sparse_rows_kernel");
}

void launch(DenseFc2& problem, const Launch& where) {
  const DenseFc2Args args = problem.args();
  const Plan plan = make_plan(args.shape, where.device);
  const auto form = args.shape.block_scales ? launch_form<true, 1>
                    : plan.span == 1        ? launch_form<false, 1>
                                            : launch_form<false, 2>;
  form(args, plan, where.stream);
}

std::string unsupported(const Case& c, const DeviceFacts& device) {
  const auto s = DenseFc2Shape::of(c);
  if (std::string why = alpha::unsupported(c, device); !why.empty()) return why;
  const int most = most_tokens(s, device);
  if (s.tokens <= most) return {};
  return fmt::format("M = {} is more than the {} tokens whose sums fit in shared memory", s.tokens,
                     most);
}

const Kernel<DenseFc2> kernel(
    {.name = "sparse_rows",
     .backend = Backend::cuda,
     .help = "only rows whose alpha is not 0, gathered expert by expert; sums in shared memory",
     .launch = launch,
     .unsupported = unsupported,
     .path = [](const Case& c, const DeviceFacts& device) {
       const Plan plan = make_plan(DenseFc2Shape::of(c), device);
       return fmt::format("{} columns, {} stages", plan.columns, plan.stages);
     }});

}  // namespace
}  // namespace moegate::dense_fc2::sparse_rows
