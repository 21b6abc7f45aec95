// SPDX-License-Identifier: Apache-2.0
// What the host variants of dense_fc2 share: the product as a sum over experts, with the inner
// loops of the grouped GEMMs (moe_gemm/host/product.h). The variants differ in which rows they
// multiply with an expert's weights, and in how often a sum meets its alpha.
#pragma once

#include "kernels/dense_fc2/dense_fc2.h"
#include "kernels/moe_gemm/host/product.h"

namespace moegate::dense_fc2::host {

/// The rows multiplied with an expert's weights: all, or those whose alpha is not 0.
enum class Rows { all, routed };

/// What is summed up before it is multiplied by alpha: 128 of K, or all of an expert's.
enum class AlphaPer { k_tile, expert };

struct Plan {
  Rows rows;
  AlphaPer alpha_per;
};

/// The inner loops that this processor has, best first: those of the grouped GEMMs, compiled here
/// once more, because what an operator's rows hang on stands in its own objects (object_code.h).
std::span<const moe_gemm::host::Isa* const> isas();
inline const moe_gemm::host::Isa& best_isa() {
  return *isas().front();
}
extern const moe_gemm::host::Isa kPortable, kAvx2, kAvx512;

size_t scratch_bytes(const DenseFc2Shape& shape, int threads);
/// Writes args.out; needs scratch_bytes() at `scratch`.
void run(const DenseFc2Args& args, const Plan& plan, const moe_gemm::host::Isa& isa, void* scratch,
         int threads);

/// A variant of one plan.
template <Rows kRows, AlphaPer kAlphaPer>
KernelSpec<DenseFc2> spec(const std::string& name, const std::string& help) {
  return {.name = name,
          .backend = Backend::host,
          .help = help,
          .launch =
              [](DenseFc2& problem, const Launch& where) {
                run(problem.args(), {kRows, kAlphaPer}, best_isa(), problem.workspace(),
                    where.device.processors);
              },
          .workspace =
              [](const Case& c, const DeviceFacts& device) {
                return scratch_bytes(DenseFc2Shape::of(c), device.processors);
              },
          .path = [](const Case&, const DeviceFacts&) -> std::string { return best_isa().name; }};
}

}  // namespace moegate::dense_fc2::host
