// SPDX-License-Identifier: Apache-2.0
#include "harness/values/resources.h"

#include <algorithm>
#include <array>
#include <boost/algorithm/string/erase.hpp>

#include "harness/base/text.h"

namespace moegate {
KernelName kernel_name(const std::string& demangled) {
  std::string text = demangled;
  // Compilers and drivers do not agree on how an unnamed namespace is written.
  for (const char* part : {"(anonymous namespace)::", "<unnamed>::", "moegate::"})
    boost::erase_all(text, part);
  // The kernel begins after the last "::" or blank outside of brackets, and ends where the
  // arguments begin.
  size_t begin = 0, end = text.size();
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(' && depth == 0) {
      end = i;
      break;
    }
    if (c == '<' || c == '(') ++depth;
    if ((c == '>' || c == ')') && depth > 0) --depth;
    if (depth == 0 && (c == ':' || c == ' ')) begin = i + 1;
  }
  const size_t bracket = std::min(text.find('<', begin), end);
  if (begin >= bracket) return {demangled, ""};
  return {text.substr(begin, bracket - begin), text.substr(bracket, end - bracket)};
}

namespace {

constexpr int kWarp = 32;
constexpr int64_t kMostThreads = 1024;
constexpr int kMostRegisters = 255;

constexpr int64_t kKiB = 1024;

/// All that chips differ in: blocks, warps, KiB of shared memory of an SM and of a block, barriers.
constexpr SmLimits sm_of(int blocks, int warps, int shared, int shared_per_block, int barriers) {
  return {.blocks = blocks,
          .warps = warps,
          .registers = 65536,
          .registers_unit = 256,
          .quarters = 4,
          .shared = shared * kKiB,
          .shared_unit = 128,
          .shared_reserved = (shared - shared_per_block) * kKiB,
          .shared_per_block = shared_per_block * kKiB,
          .barriers = barriers};
}

struct Chip {
  int arch;
  SmLimits sm;
  std::string_view classes;  // of devices with it, between blanks
};

constexpr auto kChips = std::to_array<Chip>({
    {75, sm_of(16, 32, 64, 64, 0), " tesla-t4 nvidia-t4 nvidia-geforce-rtx-2080 "},
    {80, sm_of(32, 64, 164, 163, 0), " nvidia-a100 nvidia-a800 nvidia-a30 "},
    {86, sm_of(16, 48, 100, 99, 0),
     " nvidia-a10 nvidia-a10g nvidia-a16 nvidia-a2 nvidia-a40 nvidia-rtx-a6000 "
     "nvidia-geforce-rtx-3080 nvidia-geforce-rtx-3090 "},
    {89, sm_of(24, 48, 100, 99, 0),
     " nvidia-l4 nvidia-l20 nvidia-l40 nvidia-l40s nvidia-rtx-6000-ada "
     "nvidia-geforce-rtx-4080 nvidia-geforce-rtx-4090 "},
    {90, sm_of(32, 64, 228, 227, 64),
     " nvidia-h100 nvidia-h200 nvidia-h800 nvidia-h20 nvidia-gh200 "},
    {100, sm_of(32, 64, 228, 227, 64), " nvidia-b200 nvidia-gb200 "},
    {103, sm_of(32, 64, 228, 227, 64), " nvidia-b300 nvidia-gb300 "},
    {120, sm_of(24, 48, 100, 99, 24),
     " nvidia-geforce-rtx-5080 nvidia-geforce-rtx-5090 nvidia-rtx-pro-6000 "},
    {121, sm_of(24, 48, 100, 99, 24), " nvidia-gb10 "},
});

int64_t rounded_up(int64_t value, int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

/// Warps that find registers, in whole quarters.
int64_t warps_by_registers(int registers, const SmLimits& sm) {
  const int64_t warp = rounded_up(int64_t{registers} * kWarp, sm.registers_unit);
  return sm.registers / sm.quarters / warp * sm.quarters;
}

}  // namespace

std::optional<SmLimits> sm_limits(int arch) {
  const auto chip = std::ranges::find(kChips, arch, &Chip::arch);
  return chip == kChips.end() ? std::nullopt : std::optional(chip->sm);
}

int arch_of_class(const std::string& klass) {
  // "nvidia-h100-80gb-hbm3" is of nvidia-h100, "nvidia-h1000" would not be.
  for (size_t end = klass.size(); end != std::string::npos && end > 0;
       end = klass.rfind('-', end - 1)) {
    const std::string name = " " + klass.substr(0, end) + " ";
    for (const Chip& chip : kChips) {
      if (chip.classes.find(name) != std::string_view::npos) return chip.arch;
    }
  }
  return 0;
}

int blocks_per_sm(const BlockNeeds& block, const SmLimits& sm) {
  if (block.threads < 1 || block.threads > kMostThreads || block.registers > kMostRegisters ||
      block.registers < 0 || block.shared < 0 || block.shared > sm.shared_per_block) {
    return 0;
  }
  const int64_t warps = (block.threads + kWarp - 1) / kWarp;
  int64_t blocks = std::min<int64_t>(sm.blocks, sm.warps / warps);
  if (block.registers > 0) {
    // A block needs room for whole rounds over the quarters, though it may leave some of it unused.
    const int64_t found = warps_by_registers(block.registers, sm);
    if (rounded_up(warps, sm.quarters) > found) return 0;
    blocks = std::min(blocks, found / warps);
  }
  const int64_t shared = rounded_up(block.shared + sm.shared_reserved, sm.shared_unit);
  if (shared > 0) blocks = std::min(blocks, sm.shared / shared);
  if (block.barriers > 0 && sm.barriers > 0)
    blocks = std::min<int64_t>(blocks, sm.barriers / block.barriers);
  return static_cast<int>(blocks);
}

int64_t extent_size(const std::string& extent) {
  int64_t size = 1;
  for (size_t at = 0; at <= extent.size();) {
    const size_t end = std::min(extent.find('x', at), extent.size());
    const auto side = parse_number<uint32_t>(extent.substr(at, end - at));
    if (!side || __builtin_mul_overflow(size, int64_t{*side}, &size)) return 0;
    at = end + 1;
  }
  return size;
}

std::optional<int> blocks_per_sm(const KernelRow& kernel, const std::string& klass) {
  const auto sm = sm_limits(arch_of_class(klass));
  const int64_t threads = extent_size(kernel.block);
  if (!sm || threads == 0) return std::nullopt;
  return blocks_per_sm({.threads = threads,
                        .registers = kernel.registers,
                        .shared = kernel.static_shared + kernel.dynamic_shared},
                       *sm);
}

}  // namespace moegate
