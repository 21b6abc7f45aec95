// SPDX-License-Identifier: Apache-2.0
#include "harness/night/ab_runs.h"

#include <algorithm>
#include <iterator>

#include "harness/base/subprocess.h"

namespace moegate {
namespace {

/// Without these rounds, where there are others.
void leave_out(const std::set<int>& rounds, Side& side) {
  for (const int round : rounds) {
    if (side.by_round.size() <= 1) break;
    for (auto* levels : {&side.by_round, &side.times, &side.means, &side.mean_times}) {
      levels->erase(round);
    }
  }
  side.level = evidence_of(side.by_round);
}

}  // namespace

Sides AbRuns::sides_of(const Recording& side) const {
  Sides sides;
  for (auto& [id, s] : collect(store_.each_level(side.run()))) {
    leave_out(dropped_, s);
    sides[{id.suite, id.key, shown(id.variant)}] = s;
  }
  return sides;
}

void AbRuns::refresh() {
  base_sides_ = sides_of(base_);
  head_sides_ = sides_of(head_);
}

std::set<RowName> AbRuns::rows() const {
  std::set<RowName> base, head;
  for (const auto& [key, variant] : base_.plan().rows()) base.insert({key, shown(variant)});
  for (const auto& [key, variant] : head_.plan().rows()) head.insert({key, shown(variant)});
  if (!is_pair()) {
    base.merge(head);
    return base;
  }
  std::erase_if(base, [&](const RowName& row) { return !head.contains(row); });
  if (base.empty()) {
    throw Error(Exit::coverage, fmt::format("no case has both {} and {}; `moegate list kernels` "
                                            "shows the variants of each operator",
                                            options_.base.variant, options_.head.variant));
  }
  return base;
}

CaseId AbRuns::id_of(const RowName& row) const {
  for (const Recording* side : {&head_, &base_}) {
    for (const PlannedCase& c : side->plan().cases) {
      if (c.spec.key() == row.first) return {c.spec.suite, row.first, row.second};
    }
  }
  return {"", row.first, row.second};
}

void AbRuns::one_round(Recording& side, int round, const std::set<RowName>& rows,
                       Progress& progress) {
  std::set<RowName> own;
  for (const RowName& row : side.plan().rows()) {
    if (rows.count({row.first, shown(row.second)}) > 0) own.insert(row);
  }
  side.round(round, own, progress);
}

std::vector<RoundsOfRow> AbRuns::rounds_of(const std::set<RowName>& rows) const {
  std::vector<RoundsOfRow> all;
  for (const auto& [id, head] : head_sides_) {
    const auto base = base_sides_.find(id);
    if (rows.count({id.key, id.variant}) == 0 || base == base_sides_.end()) continue;
    const Quantity quantity = compared(base->second, head);
    all.push_back(
        {base->second.rounds(quantity), head.rounds(quantity), base_.dealer().lane_of(id.key)});
  }
  return all;
}

int AbRuns::measure(int first, int rounds, const std::set<RowName>& rows) {
  std::optional<Progress> progress(std::in_place, 2 * rows.size() * static_cast<size_t>(rounds));
  const auto both_sides = [&](int round, bool base_first) {
    if (round >= first + rounds) progress.emplace(2 * rows.size());  // once more
    one_round(base_first ? base_ : head_, round, rows, *progress);
    one_round(base_first ? head_ : base_, round, rows, *progress);
    return !InterruptGuard::interrupted() && !options_.run.deadline.passed();
  };
  const auto levels = [&] {
    refresh();
    return rounds_of(rows);
  };
  const auto drop = [&](int round) { dropped_.insert(round); };
  const int next = measure_rounds({both_sides, levels, drop}, first, rounds,
                                  options_.run.order_seed, far_, repeated_);
  refresh();
  return std::max(next, first + rounds);
}

std::set<RowName> AbRuns::lacking(const std::set<RowName>& rows, int first, int last) const {
  std::set<RowName> found;
  for (const Recording* side : {&base_, &head_}) {
    for (const RowName& own : side->plan().rows()) {
      const RowName row{own.first, shown(own.second)};
      if (!rows.contains(row)) continue;
      for (int round = first; round < last; ++round) {
        if (!dropped_.contains(round) && !side->has_run(round, own)) found.insert(row);
      }
    }
  }
  return found;
}

double AbRuns::seconds_per_row() const {
  const double taken = base_.tally().seconds_per_row + head_.tally().seconds_per_row;
  return taken > 0 ? taken : 2 * options_.seconds_per_row;
}

void AbRuns::hand_over(Comparison& result) {
  result.base_run = base_.run();
  result.head_run = head_.run();
  result.base = std::move(base_sides_);
  result.head = std::move(head_sides_);
  std::vector<std::string>& notes = result.decided.notes;
  for (const WildProcess& wild : repeated_) notes.push_back("Measured again: " + wild.text() + ".");
  for (const Recording* side : {&base_, &head_}) {
    std::ranges::copy(side->tally().notes, std::back_inserter(notes));
  }
}

}  // namespace moegate
