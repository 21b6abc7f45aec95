// SPDX-License-Identifier: Apache-2.0
// How a host kernel that works in token order registers itself.
#pragma once

#include "kernels/moe_gemm/host/product.h"
#include "kernels/moe_gemm/tiles/tile.h"

namespace moegate::moe_gemm::host {

/// Its tile entry, without knobs, and its variant of both operators. kWorkspace says how many bytes
/// of scratch memory kLaunch needs.
template <void (*kLaunch)(const MoeGemmArgs&, void* workspace),
          size_t (*kWorkspace)(const MoeGemmShape&)>
class HostKernel {
 public:
  HostKernel(const std::string& name, const std::string& help, const char* file = __builtin_FILE())
      : tile_({.name = name,
               .backend = Backend::host,
               .launch = [](const MoeGemmArgs& args, const Knobs&, void* workspace,
                            const Launch&) { kLaunch(args, workspace); },
               .workspace = kWorkspace},
              file),
        gate_up_(spec<MoeGateUp>(name, help), file),
        down_(spec<MoeDown>(name, help), file) {}

 private:
  template <class P>
  static KernelSpec<P> spec(const std::string& name, const std::string& help) {
    return {
        .name = name,
        .backend = Backend::host,
        .help = help,
        .launch = [](P& problem, const Launch&) { kLaunch(problem.args(), problem.workspace()); },
        .workspace = [](const Case& c, const DeviceFacts&) { return kWorkspace(P::shape_of(c)); },
        .path = [](const Case&, const DeviceFacts&) -> std::string { return best_isa().name; }};
  }

  tiles::TileRegistration tile_;
  Kernel<MoeGateUp> gate_up_;
  Kernel<MoeDown> down_;
};

}  // namespace moegate::moe_gemm::host
