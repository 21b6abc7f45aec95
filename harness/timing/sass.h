// SPDX-License-Identifier: Apache-2.0
// The instructions inside a cubin as text (SASS), by the toolkit's disassembler. Knows no CUDA;
// parsing is pure.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace moegate {

/// A function's instructions by their offset from its start, in bytes: "@!P0 LDG.E R2, [R4.64]".
using Sass = std::map<int64_t, std::string>;

/// Every function in what `nvdisasm --print-code` prints, by mangled name. Lines that are neither a
/// section's label nor an instruction are passed over.
std::map<std::string, Sass> parse_sass(std::string_view printed);

/// The disassembler: $CUDA_HOME/bin, then PATH, then /usr/local/cuda/bin; empty where none
/// is installed.
std::string find_nvdisasm();

/// One function of a cubin. `symbol` is its index in the cubin's symbol table. Empty where
/// `nvdisasm` (a path of find_nvdisasm()) cannot be run, fails, or prints no such function.
Sass disassemble(const std::string& nvdisasm, std::span<const uint8_t> cubin,
                 const std::string& function, uint32_t symbol);

}  // namespace moegate
