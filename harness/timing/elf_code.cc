// SPDX-License-Identifier: Apache-2.0
// Layout: <elf.h>; what is NVIDIA's own follows the section names that cuobjdump -elf prints. Every
// offset is checked, since a driver that changes the format must not bring the process down.
#include "harness/timing/elf_code.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "harness/kernel/kernel.h"

namespace moegate {
namespace {

constexpr Elf64_Half kCudaMachine = 190;       // EM_CUDA, which glibc's <elf.h> lacks
constexpr unsigned char kKernelSymbol = 0x10;  // STO_CUDA_ENTRY in st_other

/// Bytes that are read only where they exist; ok() says whether every read so far did.
class Image {
 public:
  explicit Image(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  bool ok() const { return ok_; }

  std::span<const uint8_t> range(uint64_t offset, uint64_t size) {
    if (offset <= bytes_.size() && size <= bytes_.size() - offset) {
      return bytes_.subspan(offset, size);
    }
    ok_ = false;
    return {};
  }

  template <class T>
  std::vector<T> table(uint64_t offset, uint64_t bytes) {
    const auto raw = range(offset, bytes);
    std::vector<T> entries(raw.size() / sizeof(T));
    if (!entries.empty()) std::memcpy(entries.data(), raw.data(), entries.size() * sizeof(T));
    return entries;
  }

  std::string_view text(std::span<const uint8_t> strings, uint64_t offset) {
    const auto* begin = reinterpret_cast<const char*>(strings.data());
    if (offset < strings.size()) {
      const void* end = std::memchr(begin + offset, 0, strings.size() - offset);
      if (end) return begin + offset;
    }
    ok_ = false;
    return {};
  }

 private:
  std::span<const uint8_t> bytes_;
  bool ok_ = true;
};

struct Section {
  Elf64_Shdr header;
  std::string_view kind;   // ".text", ".nv.constant0"
  std::string_view owner;  // what follows the kind: a function's name, as a rule
  std::span<const uint8_t> bytes;
  uint64_t hash = 0;  // of kind, size and contents
};

uint64_t hash_text(std::string_view text, uint64_t seed) {
  return hash_bytes(text.data(), text.size(), seed);
}

/// Order of sections, symbols and relocations may follow names, so what is a set is hashed as one.
uint64_t hash_set(std::vector<uint64_t> hashes) {
  std::ranges::sort(hashes);
  return hash_bytes(hashes.data(), hashes.size() * sizeof(uint64_t));
}

/// Splits ".text.f" and ".nv.constant0.f".
void name_section(std::string_view name, Section& section) {
  const size_t start = name.starts_with(".nv.") ? 4 : 1;
  const size_t dot = name.find('.', std::min(start, name.size()));
  section.kind = name.substr(0, dot);
  if (dot != std::string_view::npos) section.owner = name.substr(dot + 1);
}

class Cubin {
 public:
  explicit Cubin(std::span<const uint8_t> bytes) : image_(bytes) { read_file(); }

  std::map<std::string, uint64_t> kernel_codes() {
    std::map<std::string_view, std::vector<uint64_t>> parts;
    for (const Elf64_Sym& symbol : symbols_) {
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || !(symbol.st_other & kKernelSymbol)) continue;
      if (symbol.st_shndx == SHN_UNDEF) continue;
      parts.try_emplace(image_.text(symbol_names_, symbol.st_name));
    }
    std::vector<uint64_t> common;
    for (const Section& section : sections_) {
      uint64_t hash = section.hash;
      const Section* where = &section;
      if (is_relocation(section)) {
        where = section_at(section.header.sh_info);
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
    return image_.ok() ? codes : std::map<std::string, uint64_t>();
  }

 private:
  static bool is_loaded(const Section& s) { return (s.header.sh_flags & SHF_ALLOC) != 0; }
  static bool is_relocation(const Section& s) {
    return s.header.sh_type == SHT_RELA || s.header.sh_type == SHT_REL;
  }
  const Section* section_at(uint64_t index) const {
    return index < sections_.size() ? &sections_[index] : nullptr;
  }

  void read_file() {
    const auto file = image_.table<Elf64_Ehdr>(0, sizeof(Elf64_Ehdr));
    if (file.empty() || std::memcmp(file[0].e_ident, ELFMAG, SELFMAG) != 0 ||
        file[0].e_ident[EI_CLASS] != ELFCLASS64 || file[0].e_machine != kCudaMachine ||
        file[0].e_shentsize != sizeof(Elf64_Shdr)) {
      return;
    }
    // Unused, but a file that ends before them is not whole.
    image_.range(file[0].e_phoff, uint64_t{file[0].e_phnum} * file[0].e_phentsize);
    read_sections(image_.table<Elf64_Shdr>(file[0].e_shoff, file[0].e_shnum * sizeof(Elf64_Shdr)),
                  file[0].e_shstrndx);
    for (const Section& section : sections_) {
      if (section.header.sh_type == SHT_SYMTAB) read_symbols(section);
    }
  }

  void read_sections(const std::vector<Elf64_Shdr>& headers, size_t names_index) {
    for (const Elf64_Shdr& header : headers) {
      Section& section = sections_.emplace_back(Section{header, {}, {}, {}});
      if (header.sh_type == SHT_NOBITS || header.sh_type == SHT_NULL) continue;
      section.bytes = image_.range(header.sh_offset, header.sh_size);
    }
    const Section* names = section_at(names_index);
    for (Section& section : sections_) {
      if (names) name_section(image_.text(names->bytes, section.header.sh_name), section);
      section.hash = hash_text(section.kind, section.header.sh_size);
      section.hash = hash_bytes(section.bytes.data(), section.bytes.size(), section.hash);
    }
  }

  void read_symbols(const Section& section) {
    symbols_ = image_.table<Elf64_Sym>(section.header.sh_offset, section.header.sh_size);
    if (const Section* strings = section_at(section.header.sh_link)) symbol_names_ = strings->bytes;
  }

  uint64_t hash_relocations(const Section& section) {
    std::vector<Elf64_Rela> entries;
    const uint64_t offset = section.header.sh_offset, bytes = section.header.sh_size;
    if (section.header.sh_type == SHT_RELA) {
      entries = image_.table<Elf64_Rela>(offset, bytes);
    } else {
      for (const Elf64_Rel& r : image_.table<Elf64_Rel>(offset, bytes)) {
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
    if (index >= symbols_.size()) return 0;
    const Elf64_Sym& symbol = symbols_[index];
    const Section* defined = symbol.st_shndx == SHN_UNDEF ? nullptr : section_at(symbol.st_shndx);
    if (!defined) return hash_text(image_.text(symbol_names_, symbol.st_name), symbol.st_value);
    return hash_bytes(&symbol.st_value, sizeof symbol.st_value, defined->hash);
  }

  Image image_;
  std::vector<Section> sections_;
  std::vector<Elf64_Sym> symbols_;
  std::span<const uint8_t> symbol_names_;
};

}  // namespace

std::map<std::string, uint64_t> kernel_codes(std::span<const uint8_t> cubin) {
  return Cubin(cubin).kernel_codes();
}

}  // namespace moegate
