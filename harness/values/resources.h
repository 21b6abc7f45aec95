// SPDX-License-Identifier: Apache-2.0
// What a kernel takes of an SM, as its compiler states it: known without a GPU.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "harness/values/result.h"

namespace moegate {

/// What the local memory of a thread is taken by. The compiler states how much of it there is,
/// not which.
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

// The name of a kernel, shortened for people.

/// Of "void moegate::moe::(anonymous namespace)::gather<128, (moegate::DType)2>(int)":
struct KernelName {
  std::string name;      // "gather"; all of a name that has no such part
  std::string instance;  // "<128, (DType)2>"; empty: no template

  std::string whole() const { return name + instance; }
};

/// The parts of a demangled name. Unnamed namespaces and moegate's are dropped everywhere, other
/// namespaces from the kernel itself only; what it returns and its parameters go.
KernelName kernel_name(const std::string& demangled);

// How many blocks of a kernel an SM holds at once, from what a block takes and what an SM has.
// Pure. Limits and the units of allocation are those of NVIDIA's CUDA C++ Programming Guide, table
// "Technical Specifications per Compute Capability", and of the toolkit's cuda_occupancy.h; a test
// compares with the latter.

/// What one SM has, and in which units it gives it away.
struct SmLimits {
  int blocks, warps;
  int registers, registers_unit;  // 32-bit ones; the unit is of a warp
  int quarters;                   // parts of an SM; each has its share of warps and registers
  int64_t shared, shared_unit;    // bytes
  int64_t shared_reserved;        // bytes that every block takes beside its own
  int64_t shared_per_block;       // bytes, the reserved ones not among them
  int barriers;  // named barriers, of which a block has 16 at most; 0: they are no limit
};

/// By compute capability, 90 for 9.0; nothing for one that is not known here.
std::optional<SmLimits> sm_limits(int arch);
/// The compute capability of a device class ("nvidia-h200": 90); 0 where it is not known here.
int arch_of_class(const std::string& klass);

/// What one block takes.
struct BlockNeeds {
  int64_t threads = 0;
  int registers = 0;   // per thread, at launch
  int64_t shared = 0;  // bytes, static and dynamic
  int barriers = 0;    // 0: unknown, or none
};

/// Blocks that an SM holds at once; 0 for a block that it cannot hold.
int blocks_per_sm(const BlockNeeds& block, const SmLimits& sm);

/// Threads of a block, blocks of a grid: 128 for "128x1x1"; 0 for what is no extent.
int64_t extent_size(const std::string& extent);

/// blocks_per_sm() of a stored launch; nothing for memory operations and for a class that is not
/// known here. Clusters are not looked at: their blocks have to find room side by side.
std::optional<int> blocks_per_sm(const KernelRow& kernel, const std::string& klass);

}  // namespace moegate
