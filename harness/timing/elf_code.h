// SPDX-License-Identifier: Apache-2.0
// The machine code inside a cubin (a GPU program in ELF64), kernel by kernel, as hashes. Knows no
// CUDA, so it is tested without.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

namespace moegate {

/// Hash of every kernel's code, by mangled name; empty when the bytes are no complete cubin. A
/// kernel's hash covers its instructions, the sizes and contents of its constants and shared
/// memory, its relocations, and whatever of the module belongs to no one kernel: device functions,
/// __constant__ and __device__ data. Names do not enter: those of kernels in unnamed namespaces
/// hold a hash of the source file's path.
std::map<std::string, uint64_t> kernel_codes(std::span<const uint8_t> cubin);

}  // namespace moegate
