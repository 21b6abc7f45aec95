// SPDX-License-Identifier: Apache-2.0
#include "harness/object_code.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace moegate {
namespace {

// A function-local static: tables register before main() in an unspecified order.
std::vector<ObjectCode>& known_objects() {
  static std::vector<ObjectCode> objects;
  return objects;
}

/// With its final slash.
std::string folder_of(const std::string& file) {
  return file.substr(0, file.rfind('/') + 1);
}

}  // namespace

bool register_objects(std::initializer_list<ObjectCode> objects) {
  known_objects().insert(known_objects().end(), objects);
  return true;
}

std::string code_of_files(std::span<const ObjectCode> objects, std::span<const std::string> files) {
  const auto is_known = [&](const std::string& file) {
    return std::ranges::any_of(objects, [&](const ObjectCode& o) { return o.file == file; });
  };
  const auto counts = [&](const ObjectCode& object) {
    return std::ranges::any_of(files, [&](const std::string& file) {
      return std::string_view(object.file).starts_with(folder_of(file));
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

std::string host_code(const Variant& variant) {
  const OpEntry& op = find_op(variant.op);
  std::vector<std::string> files = {variant.file, op.file};
  for (const Variant& v : all_variants()) {
    if (v.op == op.name && v.backend == Backend::host && v.name == op.yardstick) {
      files.push_back(v.file);
    }
  }
  return code_of_files(known_objects(), files);
}

}  // namespace moegate
