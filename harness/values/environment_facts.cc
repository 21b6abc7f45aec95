// SPDX-License-Identifier: Apache-2.0
#include "harness/values/environment_facts.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "harness/base/hash.h"

namespace moegate {
namespace {

constexpr const char *kVariable = "variable", *kPackage = "package";

/// What counts, of one kind and name: a library may be mapped twice.
using ItemsByName = std::map<std::pair<std::string, std::string>, EnvironmentItems>;

ItemsByName items_by_name(const EnvironmentItems& environment) {
  ItemsByName all;
  for (const EnvironmentItem& item : environment) {
    if (item.counts) all[{item.kind, item.name}].push_back(item);
  }
  return all;
}

std::string text_of(const std::string& kind, const EnvironmentItems& items) {
  if (items.empty()) return kind == kVariable ? "unset" : "none";
  std::set<std::string> values;
  for (const EnvironmentItem& item : items)
    values.insert(item.value.empty() ? "unknown" : item.value);
  return fmt::format("{}", fmt::join(values, "/"));
}

/// What every process has alike that loads any of it: the digest of a package may be that of the
/// modules which one process has loaded.
std::set<std::pair<std::string, std::string>> fixed_part_of(const EnvironmentItems& items) {
  std::set<std::pair<std::string, std::string>> parts;
  for (const EnvironmentItem& item : items)
    parts.emplace(item.value, item.kind == kPackage ? "" : item.digest);
  return parts;
}

EnvironmentChange change_of(const std::pair<std::string, std::string>& name,
                            const EnvironmentItems& base, const EnvironmentItems& head) {
  return {name.first, name.second, text_of(name.first, base), text_of(name.first, head)};
}

}  // namespace

EnvironmentItems in_order(std::vector<EnvironmentItem> items) {
  std::ranges::sort(items);
  const auto is_again = [](const EnvironmentItem& a, const EnvironmentItem& b) {
    return std::tie(a.kind, a.name, a.value, a.digest) ==
           std::tie(b.kind, b.name, b.value, b.digest);
  };
  items.erase(std::unique(items.begin(), items.end(), is_again), items.end());
  return items;
}

std::string hash_of(const EnvironmentItems& environment) {
  if (std::ranges::none_of(environment, &EnvironmentItem::counts)) return "";
  uint64_t hash = 0;
  for (const EnvironmentItem& item : environment) {
    if (!item.counts) continue;
    for (const std::string* text : {&item.kind, &item.name, &item.value, &item.digest}) {
      hash = hash_bytes(text->c_str(), text->size() + 1, hash);
    }
  }
  return fmt::format("{:016x}", hash);
}

bool is_secret(const std::string& variable) {
  return std::ranges::any_of(std::to_array({"TOKEN", "KEY", "SECRET", "PASS"}),
                             [&](const char* w) { return variable.find(w) != std::string::npos; });
}

std::string EnvironmentChange::text() const {
  if (base != head) return fmt::format("{} {} -> {}", name, base, head);
  return kind == kVariable ? name + " (another value)"
                           : fmt::format("{} {} (other content)", name, base);
}

std::vector<EnvironmentChange> changes_between(const EnvironmentItems& base,
                                               const EnvironmentItems& head) {
  std::vector<EnvironmentChange> changes;
  if (base.empty() || head.empty()) return changes;
  const ItemsByName before = items_by_name(base);
  ItemsByName after = items_by_name(head);
  for (const auto& [name, items] : before) {
    const EnvironmentItems now = std::exchange(after[name], {});
    after.erase(name);
    if (items != now) changes.push_back(change_of(name, items, now));
  }
  for (const auto& [name, items] : after) changes.push_back(change_of(name, {}, items));
  return changes;
}

std::string contradiction(const EnvironmentItems& a, const EnvironmentItems& b) {
  const ItemsByName there = items_by_name(b);
  for (const auto& [name, items] : items_by_name(a)) {
    const auto other = there.find(name);
    if (other == there.end()) continue;
    const auto one = fixed_part_of(items), two = fixed_part_of(other->second);
    if (!std::ranges::includes(one, two) && !std::ranges::includes(two, one))
      return name.first + " " + change_of(name, items, other->second).text();
  }
  return "";
}

}  // namespace moegate
