// SPDX-License-Identifier: Apache-2.0
// A program's section .nv_fatbin holds a container per compiled file: a header, then entries, each a
// header and a payload, which is machine code (a cubin) or PTX. The headers' layout is as nvcc 13.0
// writes it; nvcc compresses PTX, and cubins only when it is told to.
#include "harness/timing/gpu_code.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <tuple>

#include "harness/base/error.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/kernel/object_code.h"
#include "harness/timing/elf_file.h"

namespace moegate {
namespace {

constexpr size_t kMostBytes = size_t{4} << 30;
constexpr uint32_t kContainerMagic = 0xba55ed50;
constexpr uint64_t kAlignment = 8;
constexpr uint16_t kMachineCode = 2;  // 1: PTX

struct ContainerHeader {
  uint32_t magic;
  uint16_t version, header_bytes;
  uint64_t bytes;  // of the entries
};
static_assert(sizeof(ContainerHeader) == 16);

struct EntryHeader {
  uint16_t kind, version;
  uint32_t header_bytes;
  uint64_t bytes;       // of the payload
  uint32_t unknown[3];  // compressed size, options, version of the format
  uint32_t arch;        // 90
};
static_assert(sizeof(EntryHeader) == 32);

struct Entry {
  EntryHeader header;
  std::span<const uint8_t> payload;
};

struct Container {
  std::span<const uint8_t> bytes;  // whole, as in the object file
  std::vector<Entry> entries;
};

template <class T>
std::optional<T> read_at(std::span<const uint8_t> bytes, uint64_t at) {
  const std::vector<T> one = Image(bytes).table<T>(at, sizeof(T));
  return one.empty() ? std::nullopt : std::optional(one[0]);
}

[[noreturn]] void fail_damaged(const std::string& name) {
  usage_error("{}: its GPU code is damaged, or of a format that this program does not know", name);
}

std::vector<Entry> entries_of(std::span<const uint8_t> bytes, const std::string& name) {
  std::vector<Entry> entries;
  for (uint64_t at = 0; at < bytes.size();) {
    const auto header = read_at<EntryHeader>(bytes, at);
    if (!header || header->header_bytes < sizeof(EntryHeader)) fail_damaged(name);
    Image image(bytes.subspan(at));
    image.range(0, header->header_bytes);
    const auto payload = image.range(header->header_bytes, header->bytes);
    if (!image.ok()) fail_damaged(name);
    entries.push_back({*header, payload});
    at += header->header_bytes + header->bytes;
  }
  return entries;
}

std::vector<Container> containers_of(std::span<const uint8_t> section, const std::string& name) {
  std::vector<Container> containers;
  for (uint64_t at = 0; at + sizeof(ContainerHeader) <= section.size();) {
    const auto header = read_at<ContainerHeader>(section, at);
    if (header->magic != kContainerMagic) {  // what fills the section up
      at += kAlignment;
      continue;
    }
    Image image(section.subspan(at));
    image.range(0, header->header_bytes);
    const auto entries = image.range(header->header_bytes, header->bytes);
    if (!image.ok() || header->header_bytes < sizeof(ContainerHeader)) fail_damaged(name);
    const uint64_t bytes = header->header_bytes + header->bytes;
    containers.push_back({section.subspan(at, bytes), entries_of(entries, name)});
    at += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  return containers;
}

/// Of cmake/object_code.cmake's tables: file by the SHA-256 of its container.
std::map<std::string, std::string> files_in(const std::string& program) {
  constexpr size_t kHash = 64;
  const std::string mark = MOEGATE_GPU_CODE_MARK;
  std::map<std::string, std::string> files;
  for (size_t at = program.find(mark); at != std::string::npos; at = program.find(mark, at)) {
    at += mark.size();
    // A 0 ends the lines. This program's own code has the mark, too, with no lines behind it.
    std::istringstream lines(program.substr(at, program.find('\0', at) - at));
    for (std::string line; std::getline(lines, line);) {
      if (line.size() < kHash + 2 || line[kHash] != ' ') break;
      files.emplace(line.substr(0, kHash), line.substr(kHash + 1));
    }
  }
  return files;
}

bool is_elf(std::span<const uint8_t> bytes) {
  return bytes.size() >= SELFMAG && std::memcmp(bytes.data(), ELFMAG, SELFMAG) == 0;
}

/// The cubin of an entry that is not packed.
std::span<const uint8_t> unpacked(const Entry& entry, const std::string& name) {
  if (is_elf(entry.payload)) return entry.payload;
  usage_error(
      "{}: its GPU code is compressed; build it without -Xfatbin -compress-all or --compress-mode",
      name);
}

void add_cubin(const Entry& entry, const std::string& file, const std::string& name,
               GpuCode& code) {
  GpuCode one = read_cubin(unpacked(entry, name));
  for (KernelResources& kernel : one.kernels) {
    if (kernel.registers == 0) fail_damaged(name);
    kernel.file = file;
    code.kernels.push_back(std::move(kernel));
  }
  if (!one.kernels.empty()) code.compiler = one.compiler;
}

}  // namespace

GpuCode read_gpu_code(const std::string& program, const std::string& name, int arch) {
  const std::span bytes(reinterpret_cast<const uint8_t*>(program.data()), program.size());
  ElfFile elf(bytes);
  if (!is_elf(bytes) || !elf.ok()) usage_error("{}: is no program, or not a whole one", name);
  const auto section = std::ranges::find(elf.sections(), ".nv_fatbin", &ElfSection::name);
  if (section == elf.sections().end()) {
    throw Error(Exit::environment,
                fmt::format("{}: holds no GPU code; it was built without CUDA", name));
  }
  const std::map<std::string, std::string> files = files_in(program);
  GpuCode code;
  std::set<uint32_t> others;
  bool found = false;
  for (const Container& container : containers_of(section->bytes, name)) {
    std::string file = name;
    if (!files.empty()) {
      const auto known = files.find(
          sha256({reinterpret_cast<const char*>(container.bytes.data()), container.bytes.size()}));
      if (known == files.end()) continue;  // the harness's own
      file = known->second;
    }
    for (const Entry& entry : container.entries) {
      if (entry.header.kind != kMachineCode) continue;
      if (entry.header.arch == static_cast<uint32_t>(arch)) {
        found = true;
        add_cubin(entry, file, name, code);
      } else {
        others.insert(entry.header.arch);
      }
    }
  }
  if (!found) {
    throw Error(
        Exit::environment,
        fmt::format("{}: holds no machine code of kernels for sm_{}{}", name, arch,
                    others.empty() ? "" : fmt::format(" (for sm_{})", fmt::join(others, ", sm_"))));
  }
  std::ranges::sort(code.kernels, {},
                    [](const KernelResources& k) { return std::tie(k.file, k.kernel); });
  return code;
}

GpuCode read_gpu_code(const std::filesystem::path& file, int arch) {
  return read_gpu_code(read_file(file, kMostBytes), file.filename().string(), arch);
}

}  // namespace moegate
