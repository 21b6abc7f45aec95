// SPDX-License-Identifier: Apache-2.0
// What a cubin states of its kernels stands in its sections .nv.info (of all) and .nv.info.KERNEL: a
// row of attributes, each with a form, a number, and a value of two bytes or of a given length. Their
// names are those that cuobjdump -elf prints, after EIATTR_.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "harness/base/dynlib.h"
#include "harness/timing/elf_file.h"
#include "harness/timing/gpu_code.h"

namespace moegate {
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

/// What every block of compute capability 9.0 and later takes; a section .nv.shared counts it.
constexpr int64_t kReservedShared = 1024;

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

std::string extent_of(const std::vector<uint32_t>& words) {
  return fmt::format("{}", fmt::join(words, "x"));
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
  const size_t release = text.find("release ");
  const size_t at = text.find(", V", release == std::string_view::npos ? text.size() : release);
  if (at == std::string_view::npos) return "";
  const std::string_view rest = text.substr(at + 3);
  return std::string(rest.substr(0, rest.find_first_not_of("0123456789.")));
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
    for (const ElfSection& section : file_.sections()) {
      if (section.name == ".note.nv.tkinfo") code.compiler = version_in(section.bytes);
      if (section.name == ".nv.info") read_module(section);
      for_kernel(section, ".nv.info.", [&](KernelResources& k) { read_kernel(section, k); });
      const auto size = static_cast<int64_t>(section.header.sh_size);
      for_kernel(section, ".nv.shared.", [&](KernelResources& k) {
        k.static_shared = std::max<int64_t>(0, size - kReservedShared);
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
      if (value.attribute == kBlocksPerCluster) k.cluster = extent_of(value.words);
      if (value.attribute == kNumBarriers) k.barriers = value.small & 0xff;
    }
  }

  ElfFile file_;
  std::vector<std::string_view> names_;  // of every symbol
  std::map<std::string_view, KernelResources> kernels_;
};

}  // namespace

GpuCode read_cubin(std::span<const uint8_t> cubin) {
  return CubinReader(cubin).read();
}

}  // namespace moegate
