// SPDX-License-Identifier: Apache-2.0
// Cubins written by hand: what must change a kernel's hash, what must not, and broken files.
#include "harness/timing/elf_file.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "harness/timing/elf_fixture.h"

namespace moegate::test {
namespace {

/// A module with two kernels, one device function and initialised data. Sections, in order: null,
/// names, symbols, .text.<first>, .text.<second>, .nv.constant0.<first>, .nv.constant3,
/// .text.helper, .nv.shared.<first>, .rela.text.<first>.
struct Module {
  std::string first = "_Z1av", second = "_Z1bv", helper = "helper";
  std::string code = "first code", other = "second code", helped = "helper code";
  std::string constants = "constants", parameters = "\0\0\0\0";
  uint64_t shared = 64;
  Elf64_Rela relocation = {8, ELF64_R_INFO(3, 2), 5};

  std::vector<uint8_t> cubin() const;
};

std::vector<uint8_t> Module::cubin() const {
  std::string names(1, '\0');
  const auto add_name = [&](const std::string& name) {
    names += name + '\0';
    return static_cast<Elf64_Word>(names.size() - name.size() - 1);
  };
  const auto function = [&](const std::string& name, Elf64_Section section, unsigned char other) {
    Elf64_Sym symbol{};
    symbol.st_name = add_name(name);
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    symbol.st_other = other;
    symbol.st_shndx = section;
    return raw(symbol);
  };
  const std::string symbols = raw(Elf64_Sym{}) + function(first, 3, 0x10) +
                              function(second, 4, 0x10) + function(helper, 7, 0);
  std::vector<RawSection> sections = {
      {"", SHT_NULL, 0, ""},
      {".strtab", SHT_STRTAB, 0, ""},
      {".symtab", SHT_SYMTAB, 0, symbols, 1},
      {".text." + first, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, code},
      {".text." + second, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, other},
      {".nv.constant0." + first, SHT_PROGBITS, SHF_ALLOC, parameters},
      {".nv.constant3", SHT_PROGBITS, SHF_ALLOC, constants},
      {".text." + helper, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, helped},
      {".nv.shared." + first, SHT_NOBITS, SHF_ALLOC, ""},
      {".rela.text." + first, SHT_RELA, 0, raw(relocation), 2, 3}};
  sections[8].size = shared;
  return elf_file(190, std::move(sections), std::move(names));
}

uint64_t code_of_first(const Module& module) {
  return kernel_codes(module.cubin()).at(module.first);
}

TEST(ElfCode, EveryKernelHasItsHash) {
  const auto codes = kernel_codes(Module{}.cubin());
  ASSERT_EQ(codes.size(), 2u) << "device functions are no kernels";
  EXPECT_NE(codes.at("_Z1av"), codes.at("_Z1bv"));
}

TEST(ElfCode, NamesDoNotEnter) {
  Module renamed;
  renamed.first = "_ZN45_GLOBAL__N__0123abcd_1av";
  renamed.helper = "$another";
  EXPECT_EQ(code_of_first(renamed), code_of_first(Module{}));
}

TEST(ElfCode, AnotherKernelOfTheModuleDoesNotEnter) {
  Module changed;
  changed.other = "edited";
  EXPECT_EQ(code_of_first(changed), code_of_first(Module{}));
  EXPECT_NE(kernel_codes(changed.cubin()).at("_Z1bv"), kernel_codes(Module{}.cubin()).at("_Z1bv"));
}

TEST(ElfCode, WhateverTheKernelRunsEnters) {
  const uint64_t before = code_of_first(Module{});
  const auto changes = [&](auto&& edit) {
    Module module;
    edit(module);
    return code_of_first(module) != before;
  };
  EXPECT_TRUE(changes([](Module& m) { m.code[0] ^= 1; }));
  EXPECT_TRUE(changes([](Module& m) { m.constants[0] ^= 1; }));
  EXPECT_TRUE(changes([](Module& m) { m.helped[0] ^= 1; }));
  EXPECT_TRUE(changes([](Module& m) { m.parameters += "more"; }));
  EXPECT_TRUE(changes([](Module& m) { m.shared = 128; }));
  EXPECT_TRUE(changes([](Module& m) { m.relocation.r_offset = 16; }));
  EXPECT_TRUE(changes([](Module& m) { m.relocation.r_addend = 6; }));
  EXPECT_TRUE(changes([](Module& m) { m.relocation.r_info = ELF64_R_INFO(2, 2); })) << "the target";
}

TEST(ElfCode, TruncatedFilesHoldNothing) {
  const std::vector<uint8_t> whole = Module{}.cubin();
  for (size_t size = 0; size < whole.size(); ++size) {
    // A copy of that very size, so that the sanitizer sees a read beyond it.
    const std::vector<uint8_t> part(whole.begin(), whole.begin() + static_cast<long>(size));
    EXPECT_TRUE(kernel_codes(part).empty()) << size;
  }
}

TEST(ElfCode, DamagedFilesAreReadInsideTheirBounds) {
  const std::vector<uint8_t> whole = Module{}.cubin();
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const int value : {0x00, 0x7f, 0xff}) {
      std::vector<uint8_t> damaged = whole;
      damaged[at] = static_cast<uint8_t>(value);
      EXPECT_LE(kernel_codes(damaged).size(), 4u);
    }
  }
}

TEST(ElfCode, OtherFilesHoldNothing) {
  std::vector<uint8_t> cubin = Module{}.cubin();
  cubin[offsetof(Elf64_Ehdr, e_machine)] = EM_X86_64;
  EXPECT_TRUE(kernel_codes(cubin).empty());
  EXPECT_TRUE(kernel_codes({}).empty());
}

}  // namespace
}  // namespace moegate::test
