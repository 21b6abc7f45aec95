// SPDX-License-Identifier: Apache-2.0
// The steps of explain(), each of which looks for one kind of cause. Used by cause.cc and its
// parts only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/cause/cause.h"
#include "harness/cause/counter_roles.h"

namespace moegate {

struct CauseQuestion {
  const RowProfile& base;
  const RowProfile& head;
  double effect = 0;  // share; 0 where the verdict takes the times for equal

  bool even() const;
  /// Whether `worse`, the head's extra share, can be a part of the effect and is at least `least`.
  bool explains(double worse, double least) const;
  /// Whether something of which more is slower went the effect's way at all.
  bool same_way(double worse) const;
};

/// What a step found, and the names of the numbers that it speaks of.
struct Finding {
  std::string sentence;
  std::vector<std::string> names;
  std::vector<std::string> texts = {};  // of which the sentence is made

  void add(const std::string& text, const std::string& name) {
    texts.push_back(text);
    names.push_back(name);
  }
};

/// A number that both sides have, finite: a counter, or one derived from several.
struct PairedMetric {
  std::string name, unit;
  int ordinal = Metric::kWholeLaunch;
  double base = 0, head = 0;

  double change() const { return head - base; }
};

/// A counter of the whole launch that both sides read.
struct PairedCounter : PairedMetric {
  CounterRole role;
};
using Counters = std::vector<PairedCounter>;
/// Those with a role. None where a side was not counted.
Counters paired_counters(const CauseQuestion& q);

/// A kernel of both sides: by its name where both have that, else by its place.
struct KernelPair {
  const KernelRow* base;
  const KernelRow* head;
  std::string label;                     // short, and its own in the launch
  int base_blocks = 0, head_blocks = 0;  // that fit on a multiprocessor; 0: unknown
};
/// None where the counts differ, or a side's are unknown.
std::vector<KernelPair> paired_kernels(const CauseQuestion& q);

std::optional<Finding> find_launches(const CauseQuestion& q);
/// Other names, or instances, for launches of the same shape: a cause only where there is no other.
std::optional<Finding> find_renamed(const CauseQuestion& q);
std::optional<Finding> find_resources(const CauseQuestion& q);
std::optional<Finding> find_work(const CauseQuestion& q);
std::optional<Finding> find_rate(const CauseQuestion& q);
std::optional<Finding> find_gaps(const CauseQuestion& q);
std::optional<Finding> find_clock(const CauseQuestion& q);

/// "+12 %", "-0.4 %"
std::string change_text(double base, double head);
/// "16.8 -> 18.8 MB": in one unit; bytes, ns and percent are scaled to what people read.
std::string both_text(double base, double head, const std::string& unit);

}  // namespace moegate
