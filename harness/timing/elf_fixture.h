// SPDX-License-Identifier: Apache-2.0
// ELF files written by hand, for the tests of what reads them.
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace moegate::test {

template <class T>
std::string raw(const T& value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

struct RawSection {
  std::string name;
  Elf64_Word type;
  Elf64_Xword flags;
  std::string bytes;
  Elf64_Word link = 0, info = 0;
  uint64_t size = 0;  // of SHT_NOBITS
};

/// Sections begin with the null one and .strtab, whose names these are the first of.
inline std::vector<uint8_t> elf_file(Elf64_Half machine, std::vector<RawSection> sections,
                                     std::string names) {
  std::vector<Elf64_Shdr> headers;
  for (const RawSection& section : sections) {
    Elf64_Shdr header{};
    header.sh_name = static_cast<Elf64_Word>(names.size());
    names += section.name + '\0';
    header.sh_type = section.type;
    header.sh_flags = section.flags;
    header.sh_link = section.link;
    header.sh_info = section.info;
    headers.push_back(header);
  }
  sections[1].bytes = names;
  Elf64_Ehdr file{};
  std::memcpy(file.e_ident, ELFMAG, SELFMAG);
  file.e_ident[EI_CLASS] = ELFCLASS64;
  file.e_machine = machine;
  file.e_shentsize = sizeof(Elf64_Shdr);
  file.e_shnum = static_cast<Elf64_Half>(headers.size());
  file.e_shstrndx = 1;
  std::string body;
  for (size_t i = 0; i < headers.size(); ++i) {
    headers[i].sh_offset = sizeof file + body.size();
    headers[i].sh_size =
        sections[i].type == SHT_NOBITS ? sections[i].size : sections[i].bytes.size();
    body += sections[i].bytes;
  }
  file.e_shoff = sizeof file + body.size();
  std::string all = raw(file) + body;
  for (const Elf64_Shdr& header : headers) all += raw(header);
  return {all.begin(), all.end()};
}

}  // namespace moegate::test
