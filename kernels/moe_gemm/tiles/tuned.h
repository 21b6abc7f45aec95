// SPDX-License-Identifier: Apache-2.0
// Variant `tuned` of the grouped GEMMs: the kernel and knobs that `moegate tune` found fastest for
// the shape and the nearest token count on this class of device, else the default that tile.h
// states. The stored row's path says which. The choice is made in prepare(), as an engine makes it
// when it loads a model.
#pragma once

#include "kernels/moe_gemm/tiles/tile.h"

namespace moegate::moe_gemm::tiles {

template <class P>
KernelSpec<P> tuned_spec(Backend backend) {
  return {
      .name = "tuned",
      .backend = backend,
      .help = "the fastest tile configuration known for the shape (moegate tune, suites/tiles)",
      .launch =
          [](P& problem, const Launch& where) {
            problem.tile->launch(problem.args(), problem.workspace(), where);
          },
      .prepare =
          [](P& problem, const Launch& where) {
            problem.tile = std::make_shared<const TileChoice>(
                tile_of(problem.shape, problem.spec, where.device));
          },
      .workspace = [](const Case& c, const DeviceFacts& device) -> size_t {
        const MoeGemmShape shape = P::shape_of(c);
        const TileChoice choice = tile_of(shape, c, device);
        return choice.kernel->workspace ? choice.kernel->workspace(shape) : 0;
      },
      .unsupported =
          [](const Case& c, const DeviceFacts& device) {
            return tile_of(P::shape_of(c), c, device).why;
          },
      .path = [](const Case& c,
                 const DeviceFacts& device) { return tile_of(P::shape_of(c), c, device).path; }};
}

}  // namespace moegate::moe_gemm::tiles
