// SPDX-License-Identifier: Apache-2.0
// The file of a device class that says what its kernels take of an SM: baselines/CLASS/resources.tsv.
// Sorted text, a line per kernel and shape of its launches:
//
//   #moegate-resources 1
//   #class nvidia-h200  compiler 13.0.88
//   #file kernel registers local_bytes static_shared threads dynamic_shared blocks_per_sm
//   kernels/topk_sort/chain_sort.cu moegate::topk_sort::place_kernel(int) 32 0 0 1024 8320 2
//
// with a tab between fields. The shape is that of launches on a GPU, since no compiler knows it; "-" where no run launched the
// kernel. Threads are then those that __launch_bounds__ allows, and the blocks are an upper bound.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/values/resources.h"

namespace moegate {

/// How a kernel is launched, as far as it counts here.
struct LaunchShape {
  std::optional<int> threads;             // of a block
  std::optional<int64_t> dynamic_shared;  // bytes
  bool operator==(const LaunchShape&) const = default;
};

struct ResourceRow {
  KernelResources kernel;  // without what the file does not hold
  LaunchShape shape;
  std::optional<int> blocks_per_sm;
};

struct ResourceFile {
  std::string klass, compiler;    // device class; version of ptxas
  std::vector<ResourceRow> rows;  // by file, kernel, shape
};

/// Blocks per SM of a kernel in a shape, on devices of a compute capability; nothing where threads
/// are unknown.
std::optional<int> blocks_in(const KernelResources& kernel, const LaunchShape& shape, int arch);

/// Throws Error(usage) naming file and line for anything that it does not know.
ResourceFile read_resources(const std::filesystem::path& path);
std::string format_resources(const ResourceFile& file);

}  // namespace moegate
