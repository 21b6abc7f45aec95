// SPDX-License-Identifier: Apache-2.0
#include "harness/kernel/object_code.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <vector>

#include "harness/kernel/tuned.h"

namespace moegate {
namespace {

// A function-local static: tables register before main() in an unspecified order.
std::vector<ObjectCode>& registered() {
  static std::vector<ObjectCode> objects;
  return objects;
}

/// Kernels from elsewhere: behind how many of the objects theirs begin, and who tells their code.
struct Others {
  size_t first = SIZE_MAX;
  std::function<std::string()> code;
};
Others& others() {
  static Others one;
  return one;
}

/// `code`, and with it that of the others where one of these files is theirs.
std::string with_others(const std::string& code, const std::vector<std::string>& files) {
  const auto all = known_objects();
  const bool are_theirs = std::ranges::any_of(
      all.subspan(std::min(others().first, all.size())),
      [&](const ObjectCode& object) { return std::ranges::count(files, object.file) > 0; });
  return are_theirs ? joined_code(code, others().code()) : code;
}

/// The files that define a variant, its operator and that one's parts, and what else it launches.
std::vector<std::string> files_of(const Variant& variant) {
  const OpEntry& op = find_op(variant.op);
  std::vector<std::string> files = {op.file, variant.file};
  for (const std::string& part : op.parts) files.push_back(find_op(part).file);
  if (!launches_others(variant)) return files;
  for (const Variant& v : all_variants()) {
    if (v.op == op.name && v.backend == variant.backend) files.push_back(v.file);
  }
  return files;
}

/// Whether its operator is one of own_registry(): of another registry's there are no objects.
bool is_own(const Variant& variant) {
  return std::ranges::find(all_ops(), variant.op, &OpEntry::name) != all_ops().end();
}

}  // namespace

bool register_objects(std::initializer_list<ObjectCode> objects) {
  registered().insert(registered().end(), objects);
  return true;
}

std::span<const ObjectCode> known_objects() {
  return registered();
}

bool runs_on(std::string_view chip, int capability) {
  constexpr std::string_view kPrefix = "sm_";
  if (!chip.starts_with(kPrefix)) return true;
  int least = 0;
  const auto end = std::from_chars(chip.data() + kPrefix.size(), chip.data() + chip.size(), least);
  const bool alone = end.ptr != chip.data() + chip.size() && *end.ptr == 'a';
  return alone ? capability == least : capability >= least;
}

std::string why_unsupported(const Variant& variant, const Case& c, const DeviceFacts& device,
                            std::span<const ObjectCode> objects) {
  const auto object = std::ranges::find(objects, variant.file, &ObjectCode::file);
  if (variant.backend == Backend::cuda && object != objects.end() &&
      !runs_on(object->chip, device.capability)) {
    return fmt::format("needs {}; this is {} (sm_{})", object->chip, device.name,
                       device.capability);
  }
  return variant.unsupported ? variant.unsupported(c, device) : "";
}

void others_follow(std::function<std::string()> code) {
  others() = {.first = registered().size(), .code = std::move(code)};
}

std::string code_of_files(std::span<const ObjectCode> objects, std::span<const std::string> files) {
  const auto is_known = [&](const std::string& file) {
    return std::ranges::count(objects, file, &ObjectCode::file) > 0;
  };
  const auto counts = [&](const ObjectCode& object) {
    return std::ranges::any_of(files, [&](const std::string& file) {
      return std::string_view(object.file).starts_with(file.substr(0, file.rfind('/') + 1));
    });
  };
  if (files.empty() || !std::ranges::all_of(files, is_known)) return "";
  std::vector<std::string_view> hashes;
  for (const ObjectCode& object : objects) {
    if (counts(object)) hashes.push_back(object.hash);
  }
  std::ranges::sort(hashes);
  uint64_t hash = 0;
  for (const std::string_view one : hashes) hash = hash_bytes(one.data(), one.size(), hash);
  return fmt::format("{:016x}", hash);
}

std::string host_code(const Variant& variant, std::span<const ObjectCode> objects) {
  if (!is_own(variant)) return "";
  const OpEntry& op = find_op(variant.op);
  std::vector<std::string> files = files_of(variant);
  if (!op.yardstick.empty()) {
    files.push_back(find_variant(op.name, Backend::host, op.yardstick).file);
  }
  std::vector<ObjectCode> counted(objects.begin(), objects.end());
  std::erase_if(counted,
                [](const ObjectCode& o) { return std::string_view(o.file).ends_with(".cu"); });
  return with_others(code_of_files(counted, files), files);
}

std::string launch_code(const Variant& variant, std::span<const ObjectCode> objects) {
  if (!is_own(variant)) return "";
  const std::vector<std::string> files = files_of(variant);
  std::vector<ObjectCode> counted(objects.begin(), objects.end());
  for (const Variant& v : all_variants()) {
    if (v.backend != Backend::host || std::ranges::count(files, v.file) > 0) continue;
    std::erase_if(counted, [&](const ObjectCode& o) { return o.file == v.file; });
  }
  return with_others(code_of_files(counted, files), files);
}

std::string joined_code(const std::string& ran, const std::string& launched) {
  if (ran.empty() || launched.empty()) return "";
  const uint64_t hash = hash_bytes(ran.data(), ran.size());
  return fmt::format("{:016x}", hash_bytes(launched.data(), launched.size(), hash));
}

}  // namespace moegate
