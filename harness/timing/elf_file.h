// SPDX-License-Identifier: Apache-2.0
// Sections and symbols of a file in ELF64, a program's or a cubin's. Every offset is checked, since
// what comes from elsewhere must not bring the process down. Knows no CUDA.
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace moegate {

/// e_machine of a cubin, which glibc's <elf.h> lacks.
inline constexpr Elf64_Half kCudaMachine = 190;

/// Bytes that are read only where they exist; ok() says whether every read so far did.
class Image {
 public:
  explicit Image(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  bool ok() const { return ok_; }

  std::span<const uint8_t> range(uint64_t offset, uint64_t size);
  /// What ends in a 0.
  std::string_view text(std::span<const uint8_t> strings, uint64_t offset);

  template <class T>
  std::vector<T> table(uint64_t offset, uint64_t bytes) {
    const auto raw = range(offset, bytes);
    std::vector<T> entries(raw.size() / sizeof(T));
    if (!entries.empty()) std::memcpy(entries.data(), raw.data(), entries.size() * sizeof(T));
    return entries;
  }

 private:
  std::span<const uint8_t> bytes_;
  bool ok_ = true;
};

struct ElfSection {
  Elf64_Shdr header;
  std::string_view name;
  std::span<const uint8_t> bytes;  // empty where the file has none
};

/// Views of the bytes that it was made of.
class ElfFile {
 public:
  /// Without sections where the bytes are no ELF64 file.
  explicit ElfFile(std::span<const uint8_t> bytes);

  /// False once anything was not where the file says.
  bool ok() const { return image_.ok(); }
  bool is_cubin() const { return machine_ == kCudaMachine; }
  const std::vector<ElfSection>& sections() const { return sections_; }
  const std::vector<Elf64_Sym>& symbols() const { return symbols_; }
  /// Null: there is none.
  const ElfSection* section_at(uint64_t index) const {
    return index < sections_.size() ? &sections_[index] : nullptr;
  }
  std::string_view name_of(const Elf64_Sym& symbol) {
    return image_.text(symbol_names_, symbol.st_name);
  }
  template <class T>
  std::vector<T> entries(const ElfSection& section) {
    return image_.table<T>(section.header.sh_offset, section.header.sh_size);
  }

 private:
  void read_sections(const std::vector<Elf64_Shdr>& headers, size_t names_index);

  Image image_;
  Elf64_Half machine_ = EM_NONE;
  std::vector<ElfSection> sections_;
  std::vector<Elf64_Sym> symbols_;
  std::span<const uint8_t> symbol_names_;
};

/// Whether a symbol is that of a kernel which the cubin defines.
bool is_kernel(const Elf64_Sym& symbol);

// The machine code inside a cubin (a GPU program in ELF64), kernel by kernel, as hashes. Knows no
// CUDA, so it is tested without.

/// Hash of every kernel's code, by mangled name; empty when the bytes are no complete cubin. A
/// kernel's hash covers its instructions, the sizes and contents of its constants and shared
/// memory, its relocations, and whatever of the module belongs to no one kernel: device functions,
/// __constant__ and __device__ data. Names do not enter: those of kernels in unnamed namespaces
/// hold a hash of the source file's path.
std::map<std::string, uint64_t> kernel_codes(std::span<const uint8_t> cubin);

}  // namespace moegate
