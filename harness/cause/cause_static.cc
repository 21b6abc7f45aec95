// SPDX-License-Identifier: Apache-2.0
// What is launched, and what each launch takes of a multiprocessor.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <span>

#include "harness/cause/cause_parts.h"
#include "harness/values/resources.h"

namespace moegate {
namespace {

using KernelRows = std::vector<KernelRow>;
using Texts = std::vector<std::string>;

const KernelRows* kernels_of(const RowProfile& profile) {
  if (profile.measured && !profile.measured->kernels.empty()) return &profile.measured->kernels;
  if (profile.counted && !profile.counted->kernels.empty()) return &profile.counted->kernels;
  return nullptr;
}

Texts sorted_names(const KernelRows& rows) {
  Texts names;
  for (const KernelRow& row : rows) names.push_back(kernel_name(row.name).name);
  std::ranges::sort(names);
  return names;
}

/// " -name +name": those of one list that the other lacks.
std::string differences(const Texts& base, const Texts& head) {
  Texts gone, come;
  std::ranges::set_difference(base, head, std::back_inserter(gone));
  std::ranges::set_difference(head, base, std::back_inserter(come));
  std::string text;
  if (!gone.empty()) text += fmt::format("without {}", fmt::join(gone, ", "));
  if (!come.empty())
    text += fmt::format("{}with {}", text.empty() ? "" : ", ", fmt::join(come, ", "));
  return text;
}

bool same_shape(const KernelRow& base, const KernelRow& head) {
  return base.grid == head.grid && base.block == head.block && base.cluster == head.cluster;
}

std::string changed_text(const std::string& what, const std::string& base,
                         const std::string& head) {
  const auto shown = [](const std::string& text) { return text.empty() ? "none" : text; };
  return fmt::format("{} {} -> {}", what, shown(base), shown(head));
}

/// How two launches of a name differ in shape. Another instance is named beside it, never alone.
void add_shape(const KernelRow& base, const KernelRow& head, Texts& texts) {
  if (same_shape(base, head)) return;
  const KernelName before = kernel_name(base.name), after = kernel_name(head.name);
  const auto add = [&](const char* what, const std::string& old, const std::string& now) {
    if (old != now) texts.push_back(changed_text(what + (" of " + before.name), old, now));
  };
  add("instance", before.instance, after.instance);
  add("grid", base.grid, head.grid);
  add("block", base.block, head.block);
  add("cluster", base.cluster, head.cluster);
}

/// The first few, and how many more.
std::string some_of(const Texts& texts) {
  constexpr size_t kSome = 3;
  const std::span shown = std::span(texts).first(std::min(kSome, texts.size()));
  std::string text = fmt::format("{}", fmt::join(shown, ", "));
  if (texts.size() > kSome) text += fmt::format(" and {} more", texts.size() - kSome);
  return text;
}

std::string in_kernel(const CauseQuestion& q, const KernelPair& pair) {
  return kernels_of(q.head)->size() > 1 ? " in " + pair.label : "";
}

/// More of it than before is spilled registers, or an array that is indexed at run time: both cost
/// loads and stores, and no number tells one from the other.
void find_local_memory(const CauseQuestion& q, const KernelPair& pair, Finding& found) {
  const int64_t base = pair.base->local_bytes, head = pair.head->local_bytes;
  if (base < 0 || head < 0 || base == head) return;
  if (!q.same_way(static_cast<double>(head - base))) return;
  found.add(fmt::format("local memory {} -> {} B/thread{}{}", base, head, in_kernel(q, pair),
                        head > base ? fmt::format(" ({})", kInLocalMemory) : ""),
            fmt::format("local memory [{}]", pair.label));
}

int64_t shared_bytes(const KernelRow& kernel) {
  return kernel.static_shared + kernel.dynamic_shared;
}

/// What a block takes that decides how many fit: as many as of the base would, or nearer to that,
/// were it alone as there. " (registers 128 -> 247/thread)"; empty where no one of them does.
std::string limited_by(const CauseQuestion& q, const KernelPair& pair, Finding& found) {
  Texts texts;
  const auto ask = [&](const char* what, const char* unit, const auto& take, int64_t before,
                       int64_t after) {
    KernelRow with = *pair.head;
    take(with);
    const int blocks = blocks_per_sm(with, q.head.device.klass).value_or(0);
    if (before == after || blocks == pair.head_blocks) return;
    if ((blocks > pair.head_blocks) != (pair.base_blocks > pair.head_blocks)) return;
    texts.push_back(fmt::format("{} {} -> {}{}", what, before, after, unit));
    found.names.push_back(fmt::format("{} [{}]", what, pair.label));
  };
  const KernelRow &base = *pair.base, &head = *pair.head;
  ask(
      "registers", "/thread", [&](KernelRow& k) { k.registers = base.registers; }, base.registers,
      head.registers);
  ask(
      "shared memory", " B/block",
      [&](KernelRow& k) {
        k.static_shared = base.static_shared;
        k.dynamic_shared = base.dynamic_shared;
      },
      shared_bytes(base), shared_bytes(head));
  ask(
      "threads", "/block", [&](KernelRow& k) { k.block = base.block; }, extent_size(base.block),
      extent_size(head.block));
  return texts.empty() ? "" : fmt::format(" ({})", fmt::join(texts, ", "));
}

void find_blocks(const CauseQuestion& q, const KernelPair& pair, Finding& found) {
  if (!q.same_way(pair.base_blocks - pair.head_blocks)) return;
  if (pair.base_blocks == pair.head_blocks) return;
  found.names.push_back(fmt::format("blocks per SM [{}]", pair.label));
  found.texts.push_back(fmt::format("blocks per SM {} -> {}{}{}", pair.base_blocks,
                                    pair.head_blocks, limited_by(q, pair, found),
                                    in_kernel(q, pair)));
}

/// Where it is not known how many blocks fit: so much more of what they share that fewer may.
void find_shares(const CauseQuestion& q, const KernelPair& pair, Finding& found) {
  constexpr double kMuch = 0.25;
  const auto add = [&](const char* what, const char* unit, double base, double head) {
    if (base <= 0 || head <= 0 || !q.same_way(head - base)) return;
    if (std::abs(head - base) < kMuch * std::min(base, head)) return;
    found.add(fmt::format("{} {:.0f} -> {:.0f}{}{}", what, base, head, unit, in_kernel(q, pair)),
              fmt::format("{} [{}]", what, pair.label));
  };
  const auto shared = [](const KernelRow& k) { return static_cast<double>(shared_bytes(k)); };
  add("registers", "/thread", pair.base->registers, pair.head->registers);
  add("shared memory", " B/block", shared(*pair.base), shared(*pair.head));
}

/// The place in `head` of what is at `place` in `base`, among those that are not taken yet.
size_t partner_of(const KernelRows& base, size_t place, const KernelRows& head,
                  std::vector<bool>& taken) {
  const std::string name = kernel_name(base[place].name).name;
  size_t partner = head.size();
  for (size_t i = 0; i < head.size() && partner == head.size(); ++i) {
    if (!taken[i] && kernel_name(head[i].name).name == name) partner = i;
  }
  return partner;
}

}  // namespace

std::vector<KernelPair> paired_kernels(const CauseQuestion& q) {
  const KernelRows *base = kernels_of(q.base), *head = kernels_of(q.head);
  std::vector<KernelPair> pairs;
  if (!base || !head || base->size() != head->size()) return pairs;
  const bool same_names = sorted_names(*base) == sorted_names(*head);
  std::vector<bool> taken(head->size());
  std::map<std::string, int> seen;
  for (size_t i = 0; i < base->size(); ++i) {
    const size_t partner = same_names ? partner_of(*base, i, *head, taken) : i;
    taken[partner] = true;
    std::string label = kernel_name((*head)[partner].name).name;
    const int nth = ++seen[label];
    if (nth > 1) label += fmt::format(" {}", nth);
    const KernelRow &before = (*base)[i], &after = (*head)[partner];
    pairs.push_back({&before, &after, label, blocks_per_sm(before, q.base.device.klass).value_or(0),
                     blocks_per_sm(after, q.head.device.klass).value_or(0)});
  }
  return pairs;
}

std::optional<Finding> find_launches(const CauseQuestion& q) {
  Texts texts;
  if (q.base.measured && q.head.measured && q.base.measured->path != q.head.measured->path) {
    texts.push_back(changed_text("path", q.base.measured->path, q.head.measured->path));
  }
  const KernelRows *base = kernels_of(q.base), *head = kernels_of(q.head);
  if (base && head) {
    const Texts before = sorted_names(*base), after = sorted_names(*head);
    const auto pairs = paired_kernels(q);
    if (base->size() != head->size()) {
      texts.push_back(fmt::format("launches {} -> {}: {}", base->size(), head->size(),
                                  differences(before, after)));
    } else if (before == after) {
      for (const KernelPair& pair : pairs) add_shape(*pair.base, *pair.head, texts);
    } else if (!std::ranges::all_of(
                   pairs, [](const KernelPair& p) { return same_shape(*p.base, *p.head); })) {
      texts.push_back("other kernels: " + differences(before, after));
    }
  }
  if (texts.empty()) return std::nullopt;
  return Finding{some_of(texts), {}};
}

std::optional<Finding> find_renamed(const CauseQuestion& q) {
  Texts texts;
  for (const KernelPair& pair : paired_kernels(q)) {
    const KernelName base = kernel_name(pair.base->name), head = kernel_name(pair.head->name);
    if (base.name != head.name) {
      texts.push_back(fmt::format("{} -> {}", base.name, head.name));
    } else if (base.instance != head.instance) {
      texts.push_back(changed_text("instance of " + base.name, base.instance, head.instance));
    }
  }
  if (texts.empty()) return std::nullopt;
  return Finding{"other kernels of the same shape: " + some_of(texts), {}};
}

std::optional<Finding> find_resources(const CauseQuestion& q) {
  Finding found;
  for (const KernelPair& pair : paired_kernels(q)) {
    find_local_memory(q, pair, found);
    const bool known = pair.base_blocks > 0 && pair.head_blocks > 0;
    (known ? find_blocks : find_shares)(q, pair, found);
  }
  if (found.texts.empty()) return std::nullopt;
  found.sentence = some_of(found.texts);
  return found;
}

}  // namespace moegate
