// SPDX-License-Identifier: Apache-2.0
// What a kernel takes of an SM, as its compiler states it: known without a GPU.
#pragma once

#include <cstdint>
#include <string>

namespace moegate {

/// What the local memory of a thread is taken by. The compiler states how much of it there is, not which.
constexpr const char* kInLocalMemory = "spills, indexed arrays or calls";

struct KernelResources {
  std::string file;           // that defines it, "kernels/topk_sort/chain_sort.cu"
  std::string kernel;         // demangled, whole
  int registers = 0;          // per thread, at launch
  int64_t local_bytes = 0;    // of a thread: kInLocalMemory
  int64_t static_shared = 0;  // bytes, without those that every block takes
  int max_threads = 0;        // of a block, by __launch_bounds__; 0: not stated
  int barriers = 0;
  std::string cluster;  // by __cluster_dims__, "2x1x1"; empty: not stated
};

}  // namespace moegate
