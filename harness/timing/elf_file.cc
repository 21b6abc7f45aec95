// SPDX-License-Identifier: Apache-2.0
// Layout: <elf.h>.
#include "harness/timing/elf_file.h"

namespace moegate {
namespace {

constexpr unsigned char kKernelSymbol = 0x10;  // STO_CUDA_ENTRY in st_other

}  // namespace

std::span<const uint8_t> Image::range(uint64_t offset, uint64_t size) {
  if (offset <= bytes_.size() && size <= bytes_.size() - offset) {
    return bytes_.subspan(offset, size);
  }
  ok_ = false;
  return {};
}

std::string_view Image::text(std::span<const uint8_t> strings, uint64_t offset) {
  const auto* begin = reinterpret_cast<const char*>(strings.data());
  if (offset < strings.size()) {
    const void* end = std::memchr(begin + offset, 0, strings.size() - offset);
    if (end) return begin + offset;
  }
  ok_ = false;
  return {};
}

ElfFile::ElfFile(std::span<const uint8_t> bytes) : image_(bytes) {
  const auto file = image_.table<Elf64_Ehdr>(0, sizeof(Elf64_Ehdr));
  if (file.empty() || std::memcmp(file[0].e_ident, ELFMAG, SELFMAG) != 0 ||
      file[0].e_ident[EI_CLASS] != ELFCLASS64 || file[0].e_shentsize != sizeof(Elf64_Shdr)) {
    return;
  }
  machine_ = file[0].e_machine;
  // Unused, but a file that ends before them is not whole.
  image_.range(file[0].e_phoff, uint64_t{file[0].e_phnum} * file[0].e_phentsize);
  read_sections(image_.table<Elf64_Shdr>(file[0].e_shoff, file[0].e_shnum * sizeof(Elf64_Shdr)),
                file[0].e_shstrndx);
  for (const ElfSection& section : sections_) {
    if (section.header.sh_type != SHT_SYMTAB) continue;
    symbols_ = entries<Elf64_Sym>(section);
    if (const ElfSection* names = section_at(section.header.sh_link)) symbol_names_ = names->bytes;
  }
}

void ElfFile::read_sections(const std::vector<Elf64_Shdr>& headers, size_t names_index) {
  for (const Elf64_Shdr& header : headers) {
    ElfSection& section = sections_.emplace_back(ElfSection{header, {}, {}});
    if (header.sh_type == SHT_NOBITS || header.sh_type == SHT_NULL) continue;
    section.bytes = image_.range(header.sh_offset, header.sh_size);
  }
  const ElfSection* names = section_at(names_index);
  for (ElfSection& section : sections_) {
    if (names) section.name = image_.text(names->bytes, section.header.sh_name);
  }
}

bool is_kernel(const Elf64_Sym& symbol) {
  return ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && (symbol.st_other & kKernelSymbol) != 0 &&
         symbol.st_shndx != SHN_UNDEF;
}

}  // namespace moegate
