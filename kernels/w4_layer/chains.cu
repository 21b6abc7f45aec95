// SPDX-License-Identifier: Apache-2.0
// chip: sm_90 (moe_align by clusters)
// The layer on a GPU as its parts, one after the other, both products by the same variant of
// w4_gate_up and w4_down: four launches, each set up while the one before runs; down has weights
// under way before its x is there. `chain_tile` is what engines chain with Marlin's kernels:
// moe_align in three launches, a block for each token's sum.
//
// On an H200 (83d3bd11), us of gpt-oss-20b at 1, 8, 32 (chain_stream), 128 and 512 tokens
// (chain_rs): 30.6, 87.9, 126, 186, 262; when each launch waited for the one before 32.5, 92.6,
// 129, 193, 277.
#include "kernels/moe_align/launches.h"
#include "kernels/moe_sum/launches.h"
#include "kernels/w4_layer/w4_layer.h"
#include "kernels/w4_moe/packed.cuh"

namespace moegate::w4_layer {
namespace {

using w4_moe::PackedKernel;

template <const PackedKernel& kKernel>
void multiply(W4Layer& problem, const W4Args& args, const char* weights, const Launch& where) {
  kKernel.launch(args, packed_weights(problem, args.shape, kKernel.group, weights), where);
}

template <const PackedKernel& kKernel>
void multiply_both(W4Layer& problem, const Steps& steps, const Launch& where) {
  multiply<kKernel>(problem, steps.gate_up, "w1", where);
  multiply<kKernel>(problem, steps.down, "w2", where);
}

template <const PackedKernel& kKernel>
void launch_best(W4Layer& problem, const Launch& where) {
  Steps steps = problem.steps(kKernel.scaling);
  steps.gate_up.shape.early = steps.down.shape.early = true;
  moe_align::launch_redundant_count(steps.align, where);
  multiply_both<kKernel>(problem, steps, where);
  moe_sum::launch_early(steps.sum, where);
}

void launch_public(W4Layer& problem, const Launch& where) {
  const Steps steps = problem.steps(w4_moe::kTileMma.scaling);
  moe_align::launch_count_scan_scatter(steps.align, steps.next, where);
  multiply_both<w4_moe::kTileMma>(problem, steps, where);
  moe_sum::launch_per_token(steps.sum, where);
}

template <const PackedKernel& kKernel>
std::string products_unsupported(const Case& c, const DeviceFacts& device) {
  const auto shape = W4LayerShape::of(c);
  for (const W4Shape& product : {shape.gate_up, shape.down}) {
    if (const std::string why = kKernel.unsupported(product, device); !why.empty()) return why;
  }
  return {};
}

template <const PackedKernel& kKernel>
std::string best_unsupported(const Case& c, const DeviceFacts& device) {
  if (std::string why = products_unsupported<kKernel>(c, device); !why.empty()) return why;
  const auto shape = W4LayerShape::of(c);
  if (shape.hidden() % 8 != 0) {
    return fmt::format("takes hidden that are a multiple of 8, not {}", shape.hidden());
  }
  return moe_align::redundant_count_unsupported(shape.rows());
}

template <const PackedKernel& kKernel>
KernelSpec<W4Layer> chain(const char* name, const char* help,
                          void (*launch)(W4Layer&, const Launch&),
                          std::string (*unsupported)(const Case&, const DeviceFacts&)) {
  return {
      .name = name,
      .backend = Backend::cuda,
      .help = help,
      .launch = launch,
      .prepare =
          [](W4Layer& problem, const Launch& where) {
            const Steps steps = problem.steps();
            pack_weights(problem, steps.gate_up, where, kKernel.group, "w1");
            pack_weights(problem, steps.down, where, kKernel.group, "w2");
          },
      .workspace = [](const Case& c,
                      const DeviceFacts&) { return W4Layer::workspace_bytes(W4LayerShape::of(c)); },
      .unsupported = unsupported};
}

template <const PackedKernel& kKernel>
KernelSpec<W4Layer> best(const char* name, const char* help) {
  return chain<kKernel>(name, help, launch_best<kKernel>, best_unsupported<kKernel>);
}

const Kernel<W4Layer> tile(
    chain<w4_moe::kTileMma>("chain_tile", "count_scan_scatter, tile_mma, tile_mma, sum per token",
                            launch_public, products_unsupported<w4_moe::kTileMma>));
const Kernel<W4Layer> stream(best<w4_moe::kStreamRows>(
    "chain_stream", "redundant_count, stream_rows, stream_rows, vectorised sum"));
const Kernel<W4Layer> rs(best<w4_moe::kPrefillRs>(
    "chain_rs", "redundant_count, prefill_rs, prefill_rs, vectorised sum"));

}  // namespace
}  // namespace moegate::w4_layer
