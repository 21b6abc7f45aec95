// SPDX-License-Identifier: Apache-2.0
// Layout: <elf.h>.
#include "harness/timing/elf_file.h"

#include <algorithm>

#include "harness/kernel/kernel.h"

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

// What is NVIDIA's own follows the section names that cuobjdump -elf prints.

namespace {

uint64_t hash_text(std::string_view text, uint64_t seed) {
  return hash_bytes(text.data(), text.size(), seed);
}

/// Order of sections, symbols and relocations may follow names, so what is a set is hashed as one.
uint64_t hash_set(std::vector<uint64_t> hashes) {
  std::ranges::sort(hashes);
  return hash_bytes(hashes.data(), hashes.size() * sizeof(uint64_t));
}

/// A section's name in two, and what it adds to a kernel's hash.
struct Section {
  const ElfSection* raw;
  std::string_view kind;   // ".text", ".nv.constant0"
  std::string_view owner;  // what follows the kind: a function's name, as a rule
  uint64_t hash = 0;       // of kind, size and contents
};

/// Splits ".text.f" and ".nv.constant0.f".
Section named(const ElfSection& raw) {
  Section section{&raw, {}, {}};
  const size_t start = raw.name.starts_with(".nv.") ? 4 : 1;
  const size_t dot = raw.name.find('.', std::min(start, raw.name.size()));
  section.kind = raw.name.substr(0, dot);
  if (dot != std::string_view::npos) section.owner = raw.name.substr(dot + 1);
  section.hash = hash_text(section.kind, raw.header.sh_size);
  section.hash = hash_bytes(raw.bytes.data(), raw.bytes.size(), section.hash);
  return section;
}

class KernelHashes {
 public:
  explicit KernelHashes(std::span<const uint8_t> bytes) : file_(bytes) {
    if (!file_.is_cubin()) return;
    for (const ElfSection& section : file_.sections()) sections_.push_back(named(section));
  }

  std::map<std::string, uint64_t> all() {
    std::map<std::string_view, std::vector<uint64_t>> parts;
    for (const Elf64_Sym& symbol : file_.symbols()) {
      if (is_kernel(symbol)) parts.try_emplace(file_.name_of(symbol));
    }
    std::vector<uint64_t> common;
    for (const Section& section : sections_) {
      uint64_t hash = section.hash;
      const Section* where = &section;
      if (is_relocation(section)) {
        where = section_at(section.raw->header.sh_info);
        if (!where || !is_loaded(*where)) continue;
        hash = hash_text(where->kind, hash_relocations(section));
      } else if (!is_loaded(section)) {
        continue;
      }
      const auto kernel = parts.find(where->owner);
      // .nv.global.init is initialised data, also where a kernel is called init.
      const bool owned = kernel != parts.end() && where->kind != ".nv.global";
      (owned ? kernel->second : common).push_back(hash);
    }
    std::map<std::string, uint64_t> codes;
    const uint64_t shared = hash_set(common);
    for (const auto& [name, hashes] : parts) {
      if (hashes.empty()) continue;
      codes[std::string(name)] = hash_bytes(&shared, sizeof shared, hash_set(hashes));
    }
    return file_.ok() ? codes : std::map<std::string, uint64_t>();
  }

 private:
  static bool is_loaded(const Section& s) { return (s.raw->header.sh_flags & SHF_ALLOC) != 0; }
  static bool is_relocation(const Section& s) {
    return s.raw->header.sh_type == SHT_RELA || s.raw->header.sh_type == SHT_REL;
  }
  const Section* section_at(uint64_t index) const {
    return index < sections_.size() ? &sections_[index] : nullptr;
  }

  uint64_t hash_relocations(const Section& section) {
    std::vector<Elf64_Rela> entries;
    if (section.raw->header.sh_type == SHT_RELA) {
      entries = file_.entries<Elf64_Rela>(*section.raw);
    } else {
      for (const Elf64_Rel& r : file_.entries<Elf64_Rel>(*section.raw)) {
        entries.push_back({r.r_offset, r.r_info, 0});
      }
    }
    std::vector<uint64_t> hashes;
    for (const Elf64_Rela& r : entries) {
      const uint64_t fixed[] = {r.r_offset, ELF64_R_TYPE(r.r_info),
                                static_cast<uint64_t>(r.r_addend)};
      hashes.push_back(hash_bytes(fixed, sizeof fixed, hash_target(ELF64_R_SYM(r.r_info))));
    }
    return hash_set(std::move(hashes));
  }

  /// What a relocation points to: contents where the module defines it, else its name.
  uint64_t hash_target(uint64_t index) {
    if (index >= file_.symbols().size()) return 0;
    const Elf64_Sym& symbol = file_.symbols()[index];
    const Section* defined = symbol.st_shndx == SHN_UNDEF ? nullptr : section_at(symbol.st_shndx);
    if (!defined) return hash_text(file_.name_of(symbol), symbol.st_value);
    return hash_bytes(&symbol.st_value, sizeof symbol.st_value, defined->hash);
  }

  ElfFile file_;
  std::vector<Section> sections_;
};

}  // namespace

std::map<std::string, uint64_t> kernel_codes(std::span<const uint8_t> cubin) {
  return KernelHashes(cubin).all();
}

}  // namespace moegate
