// SPDX-License-Identifier: Apache-2.0
// Programs with GPU code, written by hand: what is read of a kernel, whose file it is said to be
// of, and files that hold nothing or are broken.
#include "harness/timing/gpu_code.h"

#include <gtest/gtest.h>

#include "harness/base/error.h"
#include "harness/base/hash.h"
#include "harness/base/test_fixture.h"
#include "harness/kernel/object_code.h"
#include "harness/timing/elf_fixture.h"

namespace moegate::test {
namespace {

constexpr uint32_t kFirst = 1;  // symbol of the first kernel; 2: of the second

std::string attribute(uint8_t number, const std::vector<uint32_t>& words) {
  std::string text = {4, static_cast<char>(number), static_cast<char>(4 * words.size()), 0};
  for (const uint32_t word : words) text += raw(word);
  return text;
}

std::string small_attribute(uint8_t number, uint8_t value) {
  return {2, static_cast<char>(number), static_cast<char>(value), 0};
}

/// Two kernels and a device function. The first states all that there is to state.
struct SpillingModule {
  uint32_t registers = 168, frame = 16, stack = 24;
  uint64_t shared = 1024 + 512;
  bool says_reserved = true;  // from sm_90 on

  std::string cubin() const {
    const std::string first = "_ZN12_GLOBAL__N_15firstEi", second = "second", helper = "helper";
    std::string names(1, '\0');
    const auto function = [&](const std::string& name, unsigned char other) {
      Elf64_Sym symbol{};
      symbol.st_name = static_cast<Elf64_Word>(names.size());
      names += name + '\0';
      symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
      symbol.st_other = other;
      symbol.st_shndx = 3;
      return raw(symbol);
    };
    const std::string symbols =
        raw(Elf64_Sym{}) + function(first, 0x10) + function(second, 0x10) + function(helper, 0);
    const std::string of_all = attribute(0x2f, {kFirst, registers}) +
                               attribute(0x2f, {kFirst + 1, 32}) + attribute(0x2f, {3, 200}) +
                               attribute(0x11, {kFirst, frame}) + attribute(0x12, {kFirst, stack}) +
                               attribute(0x2f, {77, 1});  // of no symbol
    const std::string of_first = attribute(0x05, {128, 2, 1}) + small_attribute(0x4c, 3) +
                                 attribute(0x3d, {2, 1, 1}) + attribute(0x7f, {1});
    const std::string note =
        std::string("Cuda compilation tools, release 13.0, V13.0.88\0more", 51);
    std::vector<RawSection> sections = {
        {"", SHT_NULL, 0, ""},
        {".strtab", SHT_STRTAB, 0, ""},
        {".symtab", SHT_SYMTAB, 0, symbols, 1},
        {".text." + first, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, "code"},
        {".nv.info", SHT_LOPROC, 0, of_all},
        {".nv.info." + first, SHT_LOPROC, 0, of_first},
        {".nv.shared." + first, SHT_NOBITS, SHF_ALLOC, ""},
        {".note.nv.tkinfo", SHT_NOTE, 0, note}};
    sections[6].size = shared;
    if (says_reserved) sections.push_back({".nv.shared.reserved.0", SHT_NOBITS, SHF_ALLOC, ""});
    const auto bytes = elf_file(190, sections, names);
    return {bytes.begin(), bytes.end()};
  }
};

struct FatEntry {
  uint16_t kind = 2, version = 0x101;
  uint32_t header_bytes = 64;
  uint64_t bytes = 0;
  uint32_t unknown[3] = {}, arch = 90;
  uint32_t rest[8] = {};
};
static_assert(sizeof(FatEntry) == 64);

std::string container(const std::string& payload, FatEntry entry = {}) {
  entry.bytes = payload.size();
  const uint64_t bytes = sizeof entry + payload.size();
  return raw(uint32_t{0xba55ed50}) + raw(uint16_t{1}) + raw(uint16_t{16}) + raw(bytes) +
         raw(entry) + payload;
}

/// A program whose .nv_fatbin has these containers; `table` is what its data say of files.
std::string program_of(std::vector<std::string> containers, const std::string& table = "") {
  std::string fatbin;
  for (const std::string& one : containers) {
    fatbin += one;
    fatbin.resize((fatbin.size() + 7) / 8 * 8);
  }
  const auto bytes = elf_file(EM_X86_64,
                              {{"", SHT_NULL, 0, ""},
                               {".strtab", SHT_STRTAB, 0, ""},
                               {".rodata", SHT_PROGBITS, SHF_ALLOC, table},
                               {".nv_fatbin", SHT_PROGBITS, SHF_ALLOC, fatbin}},
                              std::string(1, '\0'));
  return {bytes.begin(), bytes.end()};
}

std::string table_line(const std::string& one, const std::string& file) {
  return sha256(one) + " " + file + "\n";
}

GpuCode read(const std::string& program) {
  return read_gpu_code(program, "prog", 90);
}

TEST(GpuCode, AKernelsResources) {
  const GpuCode code = read(program_of({container(SpillingModule{}.cubin())}));
  EXPECT_EQ(code.compiler, "13.0.88");
  ASSERT_EQ(code.kernels.size(), 2u) << "device functions are no kernels";
  const KernelResources& k = code.kernels[0];
  EXPECT_EQ(k.file, "prog");
  EXPECT_EQ(k.kernel, "(anonymous namespace)::first(int)");
  EXPECT_EQ(k.registers, 168);
  EXPECT_EQ(k.local_bytes, 24) << "with what it calls";
  EXPECT_EQ(k.static_shared, 512) << "without what every block takes";
  EXPECT_EQ(k.max_threads, 256);
  EXPECT_EQ(k.barriers, 3);
  EXPECT_EQ(k.cluster, "2x1x1");
  EXPECT_EQ(code.kernels[1].kernel, "second");
  EXPECT_EQ(code.kernels[1].registers, 32);
  EXPECT_EQ(code.kernels[1].max_threads, 0);
}

TEST(GpuCode, SharedMemoryOfChipsBeforeHopperIsTheBlocksOwn) {
  const SpillingModule of_ampere{.shared = 512, .says_reserved = false};
  EXPECT_EQ(read(program_of({container(of_ampere.cubin())})).kernels.at(0).static_shared, 512);
}

TEST(GpuCode, FilesAreKnownByTheirContainers) {
  const std::string ours = container(SpillingModule{}.cubin());
  const std::string harness = container(SpillingModule{.registers = 8}.cubin());
  // The mark of the reading code itself, then two tables.
  const std::string mark = MOEGATE_GPU_CODE_MARK;
  const std::string table = mark + '\0' + mark + table_line("other", "kernels/b.cu") + '\0' + mark +
                            table_line(ours, "kernels/a.cu") + '\0';
  const GpuCode code = read(program_of({harness, ours}, table));
  ASSERT_EQ(code.kernels.size(), 2u) << "the harness's own kernels are left out";
  EXPECT_EQ(code.kernels[0].file, "kernels/a.cu");
  EXPECT_EQ(code.kernels[0].registers, 168);
}

TEST(GpuCode, WhatHoldsNoneSaysWhy) {
  const std::string cubin = SpillingModule{}.cubin();
  EXPECT_NE(refusal_of([] { read("#!/bin/sh\n"); }).find("not a whole program"), std::string::npos);
  const auto host = elf_file(EM_X86_64, {{"", SHT_NULL, 0, ""}, {".strtab", SHT_STRTAB, 0, ""}},
                             std::string(1, '\0'));
  EXPECT_NE(refusal_of(
                [&] {
                  read({host.begin(), host.end()});
                },
                Exit::environment)
                .find("without CUDA"),
            std::string::npos);
  FatEntry older;
  older.arch = 80;
  EXPECT_NE(refusal_of([&] { read(program_of({container(cubin, older)})); }, Exit::environment)
                .find("(for sm_80)"),
            std::string::npos);
  FatEntry ptx;
  ptx.kind = 1;
  EXPECT_NE(
      refusal_of([&] { read(program_of({container(".version 9", ptx)})); }, Exit::environment),
      "accepted");
  EXPECT_NE(
      refusal_of([&] { read(program_of({container("\x28\xb5\x2f\xfd")})); }).find("compressed"),
      std::string::npos);
}

TEST(GpuCode, BrokenFilesAreReadInsideTheirBounds) {
  const std::string whole = program_of({container(SpillingModule{}.cubin())});
  for (size_t size = 0; size < whole.size(); ++size) {
    // A copy of that very size, so that the sanitizer sees a read beyond it.
    const std::string part(whole.data(), size);
    EXPECT_THROW(read(part), Error) << size;
  }
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const int value : {0x00, 0x7f, 0xff}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(value);
      try {
        EXPECT_LE(read(damaged).kernels.size(), 4u);
      } catch (const Error& e) {
        EXPECT_NE(std::string(e.what()).find("prog"), std::string::npos) << e.what();
      }
    }
  }
}

}  // namespace
}  // namespace moegate::test
