// SPDX-License-Identifier: Apache-2.0
// The kernels inside a program or a module of kernels, read from its file: nothing of it is run,
// and no GPU and no tool of CUDA is needed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "harness/values/resources.h"

namespace moegate {

struct GpuCode {
  std::vector<KernelResources> kernels;  // by file and name
  std::string compiler;                  // version of ptxas, "13.0.88"; empty: not stated
};

/// Every kernel that a cubin defines, without its file. No kernels where the bytes are no complete
/// cubin.
GpuCode read_cubin(std::span<const uint8_t> cubin);

/// The kernels that a program (an ELF file's bytes) has for a compute capability (90). Where it
/// says which files its kernels libraries are made of, only theirs; else all, of file `name`.
/// Throws Error(usage) naming `name` for what is no program, is compressed or damaged, and
/// Error(environment) where there is no machine code for the capability.
GpuCode read_gpu_code(const std::string& program, const std::string& name, int arch);

/// The same of a file.
GpuCode read_gpu_code(const std::filesystem::path& file, int arch);

}  // namespace moegate
