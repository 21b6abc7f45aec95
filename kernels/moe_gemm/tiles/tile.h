// SPDX-License-Identifier: Apache-2.0
// The compiled tile configurations of the grouped GEMMs: one table, one entry per kernel, and the
// configuration that a shape gets from the tuned ones (harness/tile_file.h) or by default. Plain
// host code; variant `tuned` launches what is chosen here.
#pragma once

#include <span>
#include <type_traits>

#include "harness/kernel/tile_file.h"
#include "kernels/moe_gemm/moe_gemm.h"

namespace moegate::moe_gemm::tiles {

/// A kernel's entry. Only kernels that work in token order, so that any two of them make a layer,
/// and keep to the operators' own tolerance have one: tuning must not trade accuracy for time.
struct TileKernel {
  std::string name;  // that of its variant
  Backend backend;
  /// Every compiled combination of its knobs; one empty one where it has none.
  std::vector<Knobs> compiled = {{}};
  /// As KernelSpec::launch; with the scratch memory that `workspace` asks for.
  std::function<void(const MoeGemmArgs&, const Knobs&, void* workspace, const Launch&)> launch;
  /// Why it cannot run the shape, block included, in this configuration; empty when it can.
  std::function<std::string(const MoeGemmShape&, const Knobs&)> unsupported;
  std::function<size_t(const MoeGemmShape&)> workspace;
  /// The knobs that it takes for a shape where nothing is tuned; absent: the first compiled ones.
  std::function<Knobs(const MoeGemmShape&, const DeviceFacts&)> usual;
};

/// Registers a kernel's entry, and each of its configurations as a variant of both operators that
/// `moegate tune` measures (kTilePrefix). Defined at namespace scope beside the kernel.
class TileRegistration {
 public:
  explicit TileRegistration(TileKernel kernel, const char* file = __builtin_FILE());
};

/// Registers a kernel without knobs: its entry, and its variant of both operators. What it does not
/// need is nullptr, or left out.
/// - kLaunch(args, workspace, where): null `workspace` without kWorkspace
/// - kUnsupported(shape): why it cannot run the shape; empty when it can
/// - kWorkspace(shape): bytes of scratch memory
/// - kPath(case, device): as KernelSpec::path
template <Backend kBackend, void (*kLaunch)(const MoeGemmArgs&, void* workspace, const Launch&),
          auto kUnsupported = nullptr, auto kWorkspace = nullptr, auto kPath = nullptr>
class PlainKernel {
 public:
  PlainKernel(const std::string& name, const std::string& help, const char* file = __builtin_FILE())
      : tile_(entry(name), file),
        gate_up_(spec<MoeGateUp>(name, help), file),
        down_(spec<MoeDown>(name, help), file) {}

 private:
  template <class Function>
  static constexpr bool kGiven = !std::is_null_pointer_v<Function>;

  static TileKernel entry(const std::string& name) {
    TileKernel entry{.name = name,
                     .backend = kBackend,
                     .launch = [](const MoeGemmArgs& args, const Knobs&, void* workspace,
                                  const Launch& where) { kLaunch(args, workspace, where); },
                     .workspace = kWorkspace};
    if constexpr (kGiven<decltype(kUnsupported)>) {
      entry.unsupported = [](const MoeGemmShape& shape, const Knobs&) {
        return kUnsupported(shape);
      };
    }
    return entry;
  }

  template <class P>
  static KernelSpec<P> spec(const std::string& name, const std::string& help) {
    KernelSpec<P> spec{
        .name = name,
        .backend = kBackend,
        .help = help,
        .launch = [](P& problem,
                     const Launch& where) { kLaunch(problem.args(), problem.workspace(), where); },
        .path = kPath};
    if constexpr (kGiven<decltype(kWorkspace)>) {
      spec.workspace = [](const Case& c, const DeviceFacts&) { return kWorkspace(P::shape_of(c)); };
    }
    if constexpr (kGiven<decltype(kUnsupported)>) {
      spec.unsupported = [](const Case& c, const DeviceFacts&) {
        return kUnsupported(P::shape_of(c));
      };
    }
    return spec;
  }

  TileRegistration tile_;
  Kernel<MoeGateUp> gate_up_;
  Kernel<MoeDown> down_;
};

/// Why no CUDA kernel here takes the shape; empty when some do. Without `any_scales`: of those that
/// know scale factors of blocks only; without `any_bias`: of those that add none; without `int8`:
/// of those that do not multiply it.
std::string tile_unsupported(const MoeGemmShape& shape, bool any_scales = false,
                             bool any_bias = false, bool int8 = false);

/// A configuration for a shape, and how it came about.
struct TileChoice {
  const TileKernel* kernel = nullptr;  // null: none, for the reason `why`
  TileConfig config;
  std::string path;  // "tuned: resident_rows/block=16 for 8 tokens"
  std::string why;

  void launch(const MoeGemmArgs& args, void* workspace, const Launch& where) const {
    kernel->launch(args, config.knobs, workspace, where);
  }
};

/// The block of rows where nothing is tuned, from the rows [E] that the experts get: of 16, 32, 64
/// and 128 the one with the least sum over the experts of ceil(rows / block) * cost, the smallest
/// of equals. Every block of rows is another pass over its expert's weights. In fp8, a pass with up
/// to 128 rows costs hardly more than one with 16 (1.01, 1.03, 1.025; 1.08 for 128 rows of down
/// with K up to 128); in bf16 as much more as 1 + block / 600 says. shape.block is not read.
/// On H200s (2026-11-23, protocol 1, one process) default_tile() with it took at most 3.4 % more
/// than the fastest of all blocks and kernels, 0.35 % on average, in 103 products of nine shapes
/// with 1 to 512 rows per expert: reports/gallery/nvidia-h200-default-blocks.md.
int usual_block(const MoeGemmShape& shape, std::span<const double> rows_of_experts);
/// For a case's shape whose block is free (shape.block is not read): that of the nearest token
/// count in the shape's file, else default_tile() with usual_block() of what the case's routing
/// (harness/kernel/routing.h) gives the experts. Of a rank it is the file of its even_share().
/// Throws Error(usage) for a bad file.
TileChoice best_tile(const MoeGemmShape& shape, const Case& c, const DeviceFacts& device);
/// For a shape with its block: best_tile() where that has the same block, none where the file says
/// another, else default_tile(). Throws Error(usage) for a bad file.
TileChoice tile_of(const MoeGemmShape& shape, const Case& c, const DeviceFacts& device);
/// A kernel with its usual knobs for a shape with its block; no kernel, and why, where it cannot.
TileChoice usual_tile(const std::string& kernel, const MoeGemmShape& shape,
                      const DeviceFacts& device);
/// Without a file: resident_rows for down in fp8 with K up to 512, blocks up to 64 and at least as
/// many rows as experts (at usual_block() 1 to 6 % faster than the next, in one of nine products
/// 0.9 % slower; of one token 7 to 33 % slower than swap_ab); else swap_ab, cut by its own rule,
/// for blocks below 64; for blocks of 128 in fp8 prefill; else wide_tiles; gather where that does
/// not take the shape.
TileChoice default_tile(const MoeGemmShape& shape, const DeviceFacts& device);

/// An operator's parameter block = tuned or shipped. As OpSpec::resolve: in its place the block of
/// best_tile() for the shape that `shape_of` reads from a case with any other, or shipped_block().
void resolve_tuned_block(Case& c, const DeviceFacts& device, MoeGemmShape (*shape_of)(const Case&));
/// The case with block = 0 in its place, for what must read it where no device is known.
Case without_tuned_block(Case c);

/// Why an entry of a shape's file, which is that of both products, is no configuration of this
/// program on a backend, naming key and value; empty when it is one.
std::string fault_of(const TunedTile& tile, const MoeGemmShape& shape, Backend backend);

}  // namespace moegate::moe_gemm::tiles
