// SPDX-License-Identifier: Apache-2.0
// What was done, how fast, and what lay between: counters, gaps and the clock.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "harness/cause/cause_parts.h"

namespace moegate {
namespace {

constexpr size_t kMostNamed = 3;  // in a sentence; the table has all

double relative(double base, double head) {
  if (base == head) return 0;
  return base != 0 ? head / base - 1 : std::numeric_limits<double>::infinity();
}

/// Of each group: what the base did in all.
std::map<RoleGroup, double> totals(const Counters& counters) {
  std::map<RoleGroup, double> all;
  for (const PairedCounter& c : counters) {
    if (c.role.in_total) all[c.role.group] += c.base;
  }
  return all;
}

std::string work_text(const PairedCounter& c) {
  const std::string both = both_text(c.base, c.head, c.unit);
  if (c.base == 0) return fmt::format("{} {}", c.role.label, both);
  return fmt::format("{} {} ({})", c.role.label, change_text(c.base, c.head), both);
}

/// Both sides' time under way and in all, where a timer saw it.
struct Times {
  double base_span = 0, head_span = 0, base_busy = 0, head_busy = 0;
};
std::optional<Times> times_of(const CauseQuestion& q) {
  if (!q.base.measured || !q.head.measured) return std::nullopt;
  const Result &base = *q.base.measured, &head = *q.head.measured;
  if (base.span_ns <= 0 || head.span_ns <= 0 || base.busy_ns <= 0 || head.busy_ns <= 0) {
    return std::nullopt;
  }
  return Times{base.span_ns, head.span_ns, base.busy_ns, head.busy_ns};
}

const PairedCounter* first_of(const Counters& counters, RoleKind kind) {
  const auto found =
      std::ranges::find_if(counters, [&](const PairedCounter& c) { return c.role.kind == kind; });
  return found == counters.end() ? nullptr : &*found;
}

/// Whether kernels took longer, as far as is known: no gaps between them, no longer cycles.
bool kernels_took_longer(const CauseQuestion& q, const Counters& counters) {
  if (q.even()) return false;
  if (const auto times = times_of(q)) {
    if (!q.explains((times->head_busy - times->base_busy) / times->base_span, 0)) return false;
  }
  const PairedCounter* cycles = first_of(counters, RoleKind::cycles);
  return !cycles || q.explains(relative(cycles->base, cycles->head), cycles->role.least);
}

/// Each access done again takes a cycle: compared with those of work, where both are known.
bool conflicts_matter(const CauseQuestion& q, const PairedCounter& c, const Counters& counters) {
  if (std::abs(c.change()) < c.role.floor) return false;
  if (!q.explains(relative(c.base, c.head), c.role.least)) return false;
  const PairedCounter* active = first_of(counters, RoleKind::active);
  if (!active || active->base <= 0 || q.base.device.processors <= 0) return true;
  const double cycles = active->base * q.base.device.processors;
  return q.explains(c.change() / cycles, 0);
}

void find_conflicts(const CauseQuestion& q, const Counters& counters, Finding& found) {
  const auto more = std::ranges::find_if(counters, [&](const PairedCounter& c) {
    return c.role.kind == RoleKind::conflict && conflicts_matter(q, c, counters);
  });
  if (more == counters.end()) return;
  found.add(fmt::format("{} {}", more->role.label, both_text(more->base, more->head, more->unit)),
            more->name);
}

/// The pipe that was the busiest of those that are less busy now, on the faster side.
void find_pipe(const CauseQuestion& q, const Counters& counters, Finding& found) {
  constexpr double kOverall = 0.75;  // one pipe says more than the busiest of all, unless it idles
  const PairedCounter* busiest = nullptr;
  const auto rank = [&](const PairedCounter& c) {
    return std::max(c.base, c.head) * (c.role.kind == RoleKind::overall ? kOverall : 1);
  };
  for (const PairedCounter& c : counters) {
    if (c.role.kind != RoleKind::pipe && c.role.kind != RoleKind::overall) continue;
    if (std::abs(c.change()) < c.role.floor || c.base <= 0) continue;
    if (!q.explains(-relative(c.base, c.head), c.role.least)) continue;
    if (!busiest || rank(c) > rank(*busiest)) busiest = &c;
  }
  if (!busiest) return;
  found.add(fmt::format("{} {}", busiest->role.label, both_text(busiest->base, busiest->head, "%")),
            busiest->name);
}

/// Where the head's warps waited for this reason most; empty where nobody looked.
std::string hottest_place(const CauseQuestion& q, const std::string& reason) {
  if (!q.head.stalled) return "";
  const StallRow* hottest = nullptr;
  for (const StallRow& row : q.head.stalled->stalls) {
    std::string label = row.reason;
    std::ranges::replace(label, '_', ' ');
    if (label == reason && (!hottest || row.samples > hottest->samples)) hottest = &row;
  }
  if (!hottest) return "";
  const std::string where =
      !hottest->line.empty() ? hottest->line : fmt::format("offset {:#x}", hottest->offset);
  const std::string what = hottest->instruction.empty() ? "" : hottest->instruction + ", ";
  return fmt::format(" (most at {}{})", what, where);
}

/// Of which there is most more where the head is slower; null where that explains nothing.
const PairedCounter* most_stalled(const CauseQuestion& q, const Counters& counters) {
  const PairedCounter* most = nullptr;
  double total = 0;
  for (const PairedCounter& c : counters) {
    if (c.role.kind != RoleKind::stall) continue;
    total += c.base;
    if (!q.same_way(c.change()) || std::abs(c.change()) < c.role.floor) continue;
    if (!most || std::abs(c.change()) > std::abs(most->change())) most = &c;
  }
  const bool explains =
      most && (total <= 0 || q.explains(most->change() / total, most->role.least));
  return explains ? most : nullptr;
}

std::string stall_text(const CauseQuestion& q, const PairedCounter& stall) {
  return fmt::format("stalls on {} {:+.2g}{}", stall.role.label, stall.change(),
                     hottest_place(q, stall.role.label));
}

using Shares = std::vector<std::pair<double, const PairedCounter*>>;

/// The largest first; but before them what reaches memory, where it grew at least half as much, and
/// instructions behind all that grew at least half as much: reading twice is twice the
/// instructions, too, and not because of them slow.
void put_in_order(Shares& more) {
  double largest = 0;
  for (const auto& [share, c] : more) largest = std::max(largest, std::abs(share));
  std::ranges::stable_sort(more, std::greater<>(), [&](const auto& m) {
    const RoleGroup group = m.second->role.group;
    const double size = std::abs(m.first) * (group == RoleGroup::instructions ? 0.5 : 1);
    return std::pair(group == RoleGroup::dram && std::abs(m.first) >= largest / 2, size);
  });
}

/// What instructions that were added wait for says what they are: barriers, or loads.
void find_added(const CauseQuestion& q, const Counters& counters, Finding& found) {
  const PairedCounter* stall = most_stalled(q, counters);
  if (!stall) return;
  const std::string& reason = stall->role.label;
  constexpr std::array kLoads = {"long scoreboard", "lg throttle", "short scoreboard",
                                 "mio throttle"};
  const bool barrier = reason == "barrier";
  if (!barrier && std::ranges::find(kLoads, reason) == kLoads.end()) return;
  found.add((barrier ? "barriers: " : "") + stall_text(q, *stall), stall->name);
}

}  // namespace

std::optional<Finding> find_work(const CauseQuestion& q) {
  const auto counters = paired_counters(q);
  const auto total = totals(counters);
  Shares more;  // as a share of all such work
  for (const PairedCounter& c : counters) {
    if (c.role.kind != RoleKind::work || std::abs(c.change()) < c.role.floor) continue;
    const auto group = total.find(c.role.group);
    const double all = group == total.end() ? c.base : group->second;
    const double share = relative(all, all + c.change());
    if (q.explains(share, c.role.least)) more.emplace_back(share, &c);
  }
  if (more.empty()) return std::nullopt;
  put_in_order(more);
  Finding found;
  // What makes conflicts is instructions, too; and they are what takes the time.
  find_conflicts(q, counters, found);
  const bool instructions = more[0].second->role.group == RoleGroup::instructions;
  if (found.texts.empty() && instructions && !q.even()) find_added(q, counters, found);
  for (const auto& [share, c] : more) {
    if (found.texts.size() < kMostNamed) found.texts.push_back(work_text(*c));
    found.names.push_back(c->name);
  }
  found.sentence = fmt::format("{}", fmt::join(found.texts, ", "));
  return found;
}

std::optional<Finding> find_rate(const CauseQuestion& q) {
  const auto counters = paired_counters(q);
  const bool counted_work = first_of(counters, RoleKind::work) != nullptr;
  if (!counted_work || !kernels_took_longer(q, counters)) return std::nullopt;
  Finding found;
  find_conflicts(q, counters, found);
  find_pipe(q, counters, found);
  if (const PairedCounter* stall = most_stalled(q, counters))
    found.add(stall_text(q, *stall), stall->name);
  const PairedCounter* cycles = first_of(counters, RoleKind::cycles);
  if (found.texts.empty() && cycles) {  // they differ, or the kernels would not have taken longer
    found.add(fmt::format("cycles {}", change_text(cycles->base, cycles->head)), cycles->name);
  }
  if (found.texts.empty()) return std::nullopt;
  found.sentence =
      fmt::format("{}{}", find_work(q) ? "" : "same counted work, ", fmt::join(found.texts, ", "));
  return found;
}

std::optional<Finding> find_gaps(const CauseQuestion& q) {
  constexpr double kLeast = 0.005;
  const auto times = times_of(q);
  if (!times || q.even()) return std::nullopt;
  const double base = times->base_span - times->base_busy;
  const double head = times->head_span - times->head_busy;
  if (!q.explains((head - base) / times->base_span, kLeast)) return std::nullopt;
  Finding found{fmt::format("gaps between launches {}", both_text(base, head, "ns")),
                {"between launches"}};
  const KernelPair* widest = nullptr;
  const auto pairs = paired_kernels(q);
  const auto wider = [](const KernelPair& p) { return std::abs(p.head->gap_ns - p.base->gap_ns); };
  for (const KernelPair& pair : pairs) {
    if (!widest || wider(pair) > wider(*widest)) widest = &pair;
  }
  if (widest && pairs.size() > 1) found.sentence += ", most before " + widest->label;
  return found;
}

std::optional<Finding> find_clock(const CauseQuestion& q) {
  constexpr double kLeast = 0.01;
  if (!q.base.measured || !q.head.measured) return std::nullopt;
  const double base = q.base.measured->sm_mhz, head = q.head.measured->sm_mhz;
  if (base <= 0 || head <= 0 || !q.explains(base / head - 1, kLeast)) return std::nullopt;
  const bool counted = !paired_counters(q).empty();
  return Finding{fmt::format("clock{}: {:.0f} -> {:.0f} MHz{}", counted ? " only" : "", base, head,
                             counted ? "" : " (counters were not looked at)"),
                 {"SM clock"}};
}

}  // namespace moegate
