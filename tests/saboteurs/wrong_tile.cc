// SPDX-License-Identifier: Apache-2.0
// A tile configuration that leaves its output unwritten: `moegate tune` must not pick it, though
// nothing is faster.
#include "kernels/moe_gemm/tiles/tile.h"

namespace moegate::test {
namespace {

using moe_gemm::MoeGemmArgs;
using moe_gemm::tiles::TileRegistration;

const TileRegistration wrong({.name = "unwritten",
                              .backend = Backend::host,
                              .launch = [](const MoeGemmArgs&, const Knobs&, void*, const Launch&) {
                              }});

}  // namespace
}  // namespace moegate::test
