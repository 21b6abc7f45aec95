// SPDX-License-Identifier: Apache-2.0
// How many blocks of a kernel an SM holds at once, from what a block takes and what an SM has. Pure.
// Limits and the units of allocation are those of NVIDIA's CUDA C++ Programming Guide, table "Technical
// Specifications per Compute Capability", and of the toolkit's cuda_occupancy.h; a test compares with
// the latter.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "harness/values/sample.h"

namespace moegate {

/// What one SM has, and in which units it gives it away.
struct SmLimits {
  int blocks, warps;
  int registers, registers_unit;  // 32-bit ones; the unit is of a warp
  int quarters;                   // parts of an SM; each has its share of warps and registers
  int64_t shared, shared_unit;    // bytes
  int64_t shared_reserved;        // bytes that every block takes beside its own
  int64_t shared_per_block;       // bytes, the reserved ones not among them
  int barriers;                   // named barriers, of which a block has 16 at most
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
