// SPDX-License-Identifier: Apache-2.0
// A program's section .nv_fatbin holds a container per compiled file: a header, then entries, each
// a header and a payload, which is machine code (a cubin) or PTX. The headers' layout is as nvcc
// 13.0 writes it; nvcc compresses PTX, and cubins only when it is told to.
#include "harness/timing/gpu_code.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <tuple>

#include "harness/base/dynlib.h"
#include "harness/base/error.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/kernel/object_code.h"
#include "harness/timing/elf_file.h"

namespace moegate {

// What a cubin states of its kernels stands in its sections .nv.info (of all) and .nv.info.KERNEL:
// a row of attributes, each with a form, a number, and a value of two bytes or of a given length.
// Their names are those that cuobjdump -elf prints, after EIATTR_.

namespace {

constexpr uint8_t kSized = 4;  // form: two bytes of length, then the value

enum Attribute : uint8_t {
  kMaxThreads = 0x05,
  kRequiredThreads = 0x10,
  kFrameSize = 0x11,
  kMinStackSize = 0x12,
  kRegisterCount = 0x2f,
  kBlocksPerCluster = 0x3d,
  kNumBarriers = 0x4c,
};

/// What every block takes beside its own. A section .nv.shared counts it where there is a section
/// .nv.shared.reserved.0, that is from sm_90 on.
constexpr int64_t kReservedShared = 1024;
constexpr std::string_view kReserved = ".nv.shared.reserved.0";

struct Value {
  uint8_t attribute;
  uint16_t small = 0;           // of the forms without a length
  std::vector<uint32_t> words;  // of the other
};

std::vector<Value> attributes_of(std::span<const uint8_t> bytes) {
  std::vector<Value> values;
  Image image(bytes);
  for (uint64_t at = 0; at + 4 <= bytes.size();) {
    Value value{bytes[at + 1], static_cast<uint16_t>(bytes[at + 2] | bytes[at + 3] << 8), {}};
    const bool sized = bytes[at] == kSized;
    at += 4;
    if (sized) {
      value.words = image.table<uint32_t>(at, value.small);
      at += value.small;
    }
    values.push_back(std::move(value));
  }
  return values;
}

/// Threads of a block of these extents; 0 for what cannot be one.
int threads_of(const std::vector<uint32_t>& words) {
  uint64_t threads = words.empty() ? 0 : 1;
  for (const uint32_t side : words) threads *= std::min<uint32_t>(side, 1u << 16);
  return threads <= 1024 ? static_cast<int>(threads) : 0;
}

/// "13.0.88" of "...release 13.0, V13.0.88".
std::string version_in(std::span<const uint8_t> note) {
  const std::string_view text(reinterpret_cast<const char*>(note.data()), note.size());
  static const RE2 behind_release("(?s)release .*?, V([0-9.]*)", RE2::Latin1);
  std::string version;
  RE2::PartialMatch(text, behind_release, &version);
  return version;
}

class CubinReader {
 public:
  explicit CubinReader(std::span<const uint8_t> bytes) : file_(bytes) {}

  GpuCode read() {
    if (!file_.is_cubin()) return {};
    for (const Elf64_Sym& symbol : file_.symbols()) {
      names_.push_back(file_.name_of(symbol));
      if (is_kernel(symbol)) kernels_.try_emplace(names_.back());
    }
    GpuCode code;
    const bool counts_reserved =
        std::ranges::find(file_.sections(), kReserved, &ElfSection::name) != file_.sections().end();
    for (const ElfSection& section : file_.sections()) {
      if (section.name == ".note.nv.tkinfo") code.compiler = version_in(section.bytes);
      if (section.name == ".nv.info") read_module(section);
      for_kernel(section, ".nv.info.", [&](KernelResources& k) { read_kernel(section, k); });
      const auto size = static_cast<int64_t>(section.header.sh_size);
      for_kernel(section, ".nv.shared.", [&](KernelResources& k) {
        k.static_shared = counts_reserved ? std::max<int64_t>(0, size - kReservedShared) : size;
      });
      for_kernel(section, ".nv.local.", [&](KernelResources& k) { k.local_bytes += size; });
    }
    if (!file_.ok()) return {};
    for (auto& [name, kernel] : kernels_) {
      kernel.kernel = demangle(std::string(name));
      code.kernels.push_back(std::move(kernel));
    }
    return code;
  }

 private:
  void for_kernel(const ElfSection& section, std::string_view kind,
                  const std::function<void(KernelResources&)>& then) {
    if (!section.name.starts_with(kind)) return;
    const auto kernel = kernels_.find(section.name.substr(kind.size()));
    if (kernel != kernels_.end()) then(kernel->second);
  }

  /// Pairs of a symbol and a number.
  void read_module(const ElfSection& section) {
    for (const Value& value : attributes_of(section.bytes)) {
      if (value.words.size() != 2 || value.words[0] >= names_.size()) continue;
      const auto kernel = kernels_.find(names_[value.words[0]]);
      if (kernel == kernels_.end()) continue;
      const auto number = static_cast<int>(std::min<uint32_t>(value.words[1], INT32_MAX));
      KernelResources& k = kernel->second;
      if (value.attribute == kRegisterCount) k.registers = number;
      // Of the kernel alone, and with what it calls.
      if (value.attribute == kFrameSize || value.attribute == kMinStackSize) {
        k.local_bytes = std::max<int64_t>(k.local_bytes, number);
      }
    }
  }

  static void read_kernel(const ElfSection& section, KernelResources& k) {
    for (const Value& value : attributes_of(section.bytes)) {
      if (value.attribute == kMaxThreads || value.attribute == kRequiredThreads) {
        k.max_threads = threads_of(value.words);
      }
      if (value.attribute == kBlocksPerCluster) {
        k.cluster = fmt::format("{}", fmt::join(value.words, "x"));
      }
      if (value.attribute == kNumBarriers) k.barriers = value.small & 0xff;
    }
  }

  ElfFile file_;
  std::vector<std::string_view> names_;  // of every symbol
  std::map<std::string_view, KernelResources> kernels_;
};

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

GpuCode read_cubin(std::span<const uint8_t> cubin) {
  return CubinReader(cubin).read();
}

GpuCode read_gpu_code(const std::string& program, const std::string& name, int arch) {
  const std::span bytes(reinterpret_cast<const uint8_t*>(program.data()), program.size());
  ElfFile elf(bytes);
  if (!is_elf(bytes) || !elf.ok())
    usage_error("{}: this is not a whole program; give the path of a program", name);
  const auto section = std::ranges::find(elf.sections(), ".nv_fatbin", &ElfSection::name);
  if (section == elf.sections().end()) {
    give_up(Exit::environment, "{}: holds no GPU code; it was built without CUDA", name);
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
    give_up(Exit::environment, "{}: holds no machine code of kernels for sm_{}{}", name, arch,
            others.empty() ? "" : fmt::format(" (for sm_{})", fmt::join(others, ", sm_")));
  }
  std::ranges::sort(code.kernels, {},
                    [](const KernelResources& k) { return std::tie(k.file, k.kernel); });
  return code;
}

GpuCode read_gpu_code(const std::filesystem::path& file, int arch) {
  return read_gpu_code(read_file(file, kMostBytes), file.filename().string(), arch);
}

}  // namespace moegate
