// SPDX-License-Identifier: Apache-2.0
#include "harness/cause/cause.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "harness/cause/cause_parts.h"
#include "harness/cause/counter_roles.h"

namespace moegate {
namespace {

/// The largest unit in which the larger number is 1 at least.
struct ReadUnit {
  double factor;
  const char* name;
};

ReadUnit read_unit(double largest, const std::string& unit) {
  const auto scaled = [&](const std::array<const char*, 4>& names) {
    constexpr std::array kFactors = {1.0, 1e3, 1e6, 1e9};
    size_t i = kFactors.size() - 1;
    while (i > 0 && !(largest >= kFactors[i])) --i;
    return ReadUnit{kFactors[i], names[i]};
  };
  if (unit == "bytes" || unit == "byte") return scaled({" B", " KB", " MB", " GB"});
  if (unit == "ns") return scaled({" ns", " us", " ms", " s"});
  if (unit == "%" || unit == "pct") return {1, " %"};
  return scaled({"", " k", " M", " G"});
}

std::string number_text(double value) {
  const double size = std::abs(value);
  constexpr double kThreeDigits = 100;
  return size >= kThreeDigits ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

using Step = std::optional<Finding> (*)(const CauseQuestion&);
struct Ordered {
  CauseKind kind;
  Step find;
};
/// The order is the policy: what is launched explains what it does, what it does explains its rate.
constexpr Ordered kSteps[] = {
    {CauseKind::launches, find_launches}, {CauseKind::resources, find_resources},
    {CauseKind::work, find_work},         {CauseKind::rate, find_rate},
    {CauseKind::gaps, find_gaps},         {CauseKind::clock, find_clock},
};

class Numbers {
 public:
  void add(const std::string& name, const std::string& unit, double base, double head) {
    if (!std::isfinite(base) || !std::isfinite(head)) return;
    const auto there = std::ranges::find(all_, name, &CauseNumber::name);
    if (there == all_.end()) all_.push_back({name, unit, base, head});
  }
  /// Those with these names first, in their order.
  std::vector<CauseNumber> take(const std::vector<std::string>& first) && {
    const auto place = [&](const CauseNumber& n) {
      return std::ranges::find(first, n.name) - first.begin();
    };
    std::ranges::stable_sort(all_, {}, place);
    return std::move(all_);
  }

 private:
  std::vector<CauseNumber> all_;
};

void add_timed(const CauseQuestion& q, Numbers& numbers) {
  if (!q.base.measured || !q.head.measured) return;
  const Result &base = *q.base.measured, &head = *q.head.measured;
  const auto add = [&](const char* name, const char* unit, double before, double after) {
    if (before > 0 && after > 0) numbers.add(name, unit, before, after);
  };
  add("span", "ns", base.span_ns, head.span_ns);
  add("busy", "ns", base.busy_ns, head.busy_ns);
  if (base.busy_ns > 0 && head.busy_ns > 0) {
    numbers.add("between launches", "ns", base.span_ns - base.busy_ns, head.span_ns - head.busy_ns);
  }
  add("SM clock", "MHz", base.sm_mhz, head.sm_mhz);
}

void add_kernels(const CauseQuestion& q, Numbers& numbers) {
  for (const KernelPair& pair : paired_kernels(q)) {
    const KernelRow &base = *pair.base, &head = *pair.head;
    const auto add = [&](const char* name, const char* unit, auto before, auto after) {
      if (before < 0 || after < 0 || (before == 0 && after == 0)) return;
      numbers.add(fmt::format("{} [{}]", name, pair.label), unit, static_cast<double>(before),
                  static_cast<double>(after));
    };
    add("time", "ns", base.ns, head.ns);
    add("gap before", "ns", base.gap_ns, head.gap_ns);
    add("registers", "", base.registers, head.registers);
    add("local memory", "bytes", base.local_bytes, head.local_bytes);
    add("shared memory", "bytes", base.static_shared + base.dynamic_shared,
        head.static_shared + head.dynamic_shared);
    add("blocks per SM", "", pair.base_blocks, pair.head_blocks);
  }
}

std::vector<PairedMetric> paired_metrics(const std::optional<Result>& base,
                                         const std::optional<Result>& head) {
  std::vector<PairedMetric> all;
  if (!base || !head) return all;
  const auto with_derived = [](const Result& result) {
    std::vector<Metric> metrics = derived_counters(result.metrics);
    metrics.insert(metrics.begin(), result.metrics.begin(), result.metrics.end());
    return metrics;
  };
  std::map<std::pair<std::string, int>, double> heads;
  for (const Metric& m : with_derived(*head)) heads[{m.name, m.ordinal}] = m.value;
  for (const Metric& m : with_derived(*base)) {
    const auto other = heads.find({m.name, m.ordinal});
    if (other == heads.end() || !std::isfinite(m.value) || !std::isfinite(other->second)) continue;
    all.push_back({m.name, m.unit, m.ordinal, m.value, other->second});
  }
  return all;
}

void add_metrics(const std::optional<Result>& base, const std::optional<Result>& head,
                 const std::map<int, std::string>& kernels, Numbers& numbers) {
  for (const PairedMetric& m : paired_metrics(base, head)) {
    const auto label = kernels.find(m.ordinal);
    const bool whole = m.ordinal == Metric::kWholeLaunch;
    const std::string kernel =
        label != kernels.end() ? label->second : fmt::format("kernel {}", m.ordinal + 1);
    numbers.add(whole ? m.name : fmt::format("{} [{}]", m.name, kernel), m.unit, m.base, m.head);
  }
}

void add_stalls(const CauseQuestion& q, Numbers& numbers) {
  if (!q.base.stalled || !q.head.stalled) return;
  const auto shares = [](const Result& r) {
    std::map<std::string, double> by_reason;
    double all = 0;
    for (const StallRow& row : r.stalls) {
      by_reason[row.reason] += static_cast<double>(row.samples);
      all += static_cast<double>(row.samples);
    }
    for (auto& [reason, samples] : by_reason) samples *= 100 / std::max(all, 1.0);
    return by_reason;
  };
  auto base = shares(*q.base.stalled);
  const auto head = shares(*q.head.stalled);
  for (const auto& [reason, share] : head) base.try_emplace(reason, 0);
  for (const auto& [reason, share] : base) {
    const auto other = head.find(reason);
    numbers.add("samples waiting: " + reason, "%", share, other == head.end() ? 0 : other->second);
  }
}

std::vector<CauseNumber> numbers_of(const CauseQuestion& q, const std::vector<std::string>& first) {
  Numbers numbers;
  std::map<int, std::string> kernels;
  const auto pairs = paired_kernels(q);
  for (size_t i = 0; i < pairs.size(); ++i) kernels[static_cast<int>(i)] = pairs[i].label;
  add_timed(q, numbers);
  add_kernels(q, numbers);
  add_metrics(q.base.counted, q.head.counted, kernels, numbers);
  add_metrics(q.base.metered, q.head.metered, kernels, numbers);
  add_metrics(q.base.measured, q.head.measured, kernels, numbers);
  add_stalls(q, numbers);
  return std::move(numbers).take(first);
}

/// Whether two readings of a counter are as near as those of one program are.
bool is_alike(const PairedCounter& c) {
  const double change = std::abs(c.change());
  return change <= c.role.floor || change <= c.role.least * std::max(c.base, c.head);
}

std::string why_uncounted(const RowProfile& profile) {
  if (profile.counted) return "";
  return profile.device.backend == Backend::host ? "a host's counters are not read" : "no counters";
}

std::string unseen(const CauseQuestion& q) {
  const std::string base = why_uncounted(q.base), head = why_uncounted(q.head);
  if (base == head) return base.empty() ? "" : fmt::format("of both sides {}", base);
  return base.empty() ? fmt::format("of the head {}", head) : fmt::format("of the base {}", base);
}

std::string alike_text(const CauseQuestion& q) {
  std::vector<std::string> same;
  const bool timed = q.base.measured && q.head.measured;
  const bool code =
      timed && !q.base.measured->code.empty() && q.base.measured->code == q.head.measured->code;
  if (code) same.push_back("code");
  if (!paired_kernels(q).empty()) same.insert(same.end(), {"launches", "resources"});
  if (timed && q.base.measured->sm_mhz > 0 && q.head.measured->sm_mhz > 0) same.push_back("clock");
  return same.empty() ? "" : fmt::format("the same {}", fmt::join(same, ", "));
}

/// Nothing was counted on both sides. Times that are equal need no counters to be so.
void settle_uncounted(const CauseQuestion& q, bool equal, Cause& cause) {
  const std::string alike = alike_text(q), looked = unseen(q);
  cause.kind = equal ? CauseKind::nothing : CauseKind::unknown;
  cause.sentence = fmt::format("{} {}{}", equal ? "nothing differs: judged equal;" : "unknown:",
                               looked.empty() ? "the sides have no counter in common" : looked,
                               alike.empty() ? "" : "; " + alike);
}

/// No step applied: because all is alike, or because too little is known.
void settle(const CauseQuestion& q, bool equal, Cause& cause) {
  const auto counters = paired_counters(q);
  if (counters.empty()) return settle_uncounted(q, equal, cause);
  const std::string alike = alike_text(q);
  double widest = 0;
  const PairedCounter* other = nullptr;
  for (const PairedCounter& c : counters) {
    const bool follows = c.role.kind == RoleKind::cycles || c.role.kind == RoleKind::active;
    if (!follows && !is_alike(c) && !other) other = &c;
    if (std::abs(c.change()) > c.role.floor) {
      widest = std::max(widest, std::abs(c.change()) / std::max(c.base, c.head));
    }
  }
  if (other && !q.even()) {
    cause.sentence = fmt::format("unknown: {} {}, which does not explain it{}", other->role.label,
                                 both_text(other->base, other->head, other->unit),
                                 alike.empty() ? "" : "; " + alike);
    return;
  }
  cause.kind = CauseKind::nothing;
  cause.sentence = fmt::format("nothing differs: {} counters within {:.1f} %{}", counters.size(),
                               100 * widest, alike.empty() ? "" : ", " + alike);
}

/// No step applied. Other names explain other times; equally fast twins need no cause.
void settle_renamed(const CauseQuestion& q, bool equal, Cause& cause) {
  const auto renamed = find_renamed(q);
  const bool twins = q.even() && (equal || !paired_counters(q).empty());
  if (renamed && !twins) {
    cause.kind = CauseKind::launches;
    cause.sentence = renamed->sentence;
    return;
  }
  settle(q, equal, cause);
  if (renamed) cause.also.push_back(renamed->sentence);
}

}  // namespace

bool CauseQuestion::even() const {
  return std::abs(effect) < kEvenEffect;
}

bool CauseQuestion::same_way(double worse) const {
  return even() || worse * effect > 0;
}

bool CauseQuestion::explains(double worse, double least) const {
  return same_way(worse) && std::abs(worse) >= std::max(least, kShareOfEffect * std::abs(effect));
}

Counters paired_counters(const CauseQuestion& q) {
  Counters all;
  for (const PairedMetric& m : paired_metrics(q.base.counted, q.head.counted)) {
    if (m.ordinal != Metric::kWholeLaunch) continue;
    if (const auto role = role_of(m.name)) all.push_back({m, *role});
  }
  return all;
}

std::string change_text(double base, double head) {
  const double percent = 100 * (head / base - 1);
  constexpr double kWhole = 9.95;  // from ten on, a tenth says nothing
  return std::abs(percent) >= kWhole ? fmt::format("{:+.0f} %", percent)
                                     : fmt::format("{:+.1f} %", percent);
}

std::string both_text(double base, double head, const std::string& unit) {
  const ReadUnit read = read_unit(std::max(std::abs(base), std::abs(head)), unit);
  std::string before = number_text(base / read.factor), after = number_text(head / read.factor);
  if (before == after && base != head) {  // three digits do not tell them apart
    before = fmt::format("{:.6g}", base / read.factor);
    after = fmt::format("{:.6g}", head / read.factor);
  }
  return fmt::format("{} -> {}{}", before, after, read.name);
}

const char* name_of(CauseKind kind) {
  constexpr std::array kNames = {"launches", "resources", "work",    "rate",
                                 "gaps",     "clock",     "nothing", "unknown"};
  static_assert(kNames.size() == static_cast<size_t>(CauseKind::unknown) + 1);
  return kNames.at(static_cast<size_t>(kind));
}

Cause explain(const RowProfile& given_base, const RowProfile& given_head, const Effect& effect) {
  const RowProfile base = with_local_memory(given_base), head = with_local_memory(given_head);
  const CauseQuestion q{base, head, effect.equal ? 0 : effect.share};
  Cause cause;
  std::vector<std::string> first;
  for (const Ordered& step : kSteps) {
    const auto found = step.find(q);
    if (!found) continue;
    first.insert(first.end(), found->names.begin(), found->names.end());
    if (cause.sentence.empty()) {
      cause.kind = step.kind;
      cause.sentence = found->sentence;
    } else {
      cause.also.push_back(found->sentence);
    }
  }
  if (cause.sentence.empty()) settle_renamed(q, effect.equal, cause);
  cause.numbers = numbers_of(q, first);
  return cause;
}

}  // namespace moegate
