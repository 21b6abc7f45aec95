// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/ab.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "harness/base/interrupt.h"
#include "harness/base/stats.h"
#include "harness/judge/ratchet.h"
#include "harness/judge/rounds.h"

namespace moegate {
namespace {

/// The same machine code that differs by so many times what fails a row is measured all the same: one
/// round differs by less by chance.
constexpr double kOff = 2;

/// Measures and judges; every method that measures says which cases.
class AbSession {
 public:
  AbSession(Store& store, PreparedAb prepared, const std::function<Limits(Backend)>& limits)
      : options_(std::move(prepared.options)),
        store_(store),
        base_(store, std::move(prepared.base)),
        head_(store, std::move(prepared.head)),
        backend_(head_.plan().hello.device.backend),
        limits_(limits(backend_)) {
    result_.changed = std::move(prepared.changes.told);
    result_.lacking = std::move(prepared.changes.lacking);
  }

  Comparison run();

 private:
  /// Measures these rounds and replaces wild ones; returns the number of the next.
  int measure(int first, int rounds, const std::set<RowName>& rows);
  void refresh();
  void one_round(Recording& side, int round, const std::set<RowName>& rows, Progress& progress);
  std::vector<CaseId> questions(const std::set<RowName>& rows);
  bool is_off(const Side& base, const Side& head) const;
  void compare_outputs();
  std::vector<PairedQuestion> pairs(const std::vector<CaseId>& ids, int first, int last) const;
  std::set<RowName> names(const std::vector<CaseId>& ids) const;
  std::vector<CaseId> screen(const std::vector<CaseId>& ids, int rounds);
  std::set<RowName> suspects_in_time();
  std::vector<CaseId> by_suspicion(std::vector<CaseId> ids) const;
  void replay(std::vector<CaseId> suspects, int first);
  void note();
  size_t affordable(size_t rows, int rounds) const;
  void leave_out_unmeasured(std::vector<CaseId>& suspects, int first, int last);
  CaseId id_of(const RowName& row) const;

  bool is_pair() const { return !options_.base.variant.empty(); }
  std::string shown(const std::string& variant) const {
    return is_pair() ? options_.base.variant + " → " + options_.head.variant : variant;
  }
  Sides sides_of(const Recording& side) const;
  std::set<RowName> everything() const;

  const AbOptions options_;
  Store& store_;
  Recording base_, head_;
  const Backend backend_;
  const Limits limits_;
  std::set<int> dropped_;  // rounds that were measured again
  std::set<RowName> left_out_;
  std::vector<WildProcess> repeated_;
  Comparison result_;
};

/// Without these rounds, where there are others.
void leave_out(const std::set<int>& rounds, Side& side) {
  for (const int round : rounds) {
    if (side.by_round.size() <= 1) break;
    for (auto* levels : {&side.by_round, &side.times, &side.means, &side.mean_times}) {
      levels->erase(round);
    }
  }
  std::vector<double> levels;
  for (const auto& [round, level] : side.by_round) levels.push_back(level);
  side.level = Evidence::of(levels);
}

Sides AbSession::sides_of(const Recording& side) const {
  Sides sides;
  for (auto& [id, s] : collect(store_.each_level(side.run()))) {
    leave_out(dropped_, s);
    sides[{id.suite, id.key, shown(id.variant)}] = s;
  }
  return sides;
}

void AbSession::refresh() {
  result_.base = sides_of(base_);
  result_.head = sides_of(head_);
}

/// Rows of either side, as they are shown. A pair of variants is compared where there are both:
/// operators that share a suite may share one of the names.
std::set<RowName> AbSession::everything() const {
  std::set<RowName> base, head, both;
  for (const auto& [key, variant] : base_.plan().rows()) base.insert({key, shown(variant)});
  for (const auto& [key, variant] : head_.plan().rows()) head.insert({key, shown(variant)});
  if (!is_pair()) {
    base.merge(head);
    return base;
  }
  std::set_intersection(base.begin(), base.end(), head.begin(), head.end(),
                        std::inserter(both, both.end()));
  if (both.empty()) {
    throw Error(Exit::coverage, fmt::format("no case has both {} and {}; see 'moegate list cases'",
                                            options_.base.variant, options_.head.variant));
  }
  return both;
}

std::set<RowName> AbSession::names(const std::vector<CaseId>& ids) const {
  std::set<RowName> rows;
  for (const CaseId& id : ids) rows.insert({id.key, id.variant});
  return rows;
}

void AbSession::one_round(Recording& side, int round, const std::set<RowName>& rows,
                          Progress& progress) {
  std::set<RowName> own;
  for (const RowName& row : side.plan().rows()) {
    if (rows.count({row.first, shown(row.second)}) > 0) own.insert(row);
  }
  side.round(round, own, progress);
}

/// Of so many rows, how many there is time for in so many rounds of both sides.
size_t AbSession::affordable(size_t rows, int rounds) const {
  const double taken = base_.tally().seconds_per_row + head_.tally().seconds_per_row;
  const double both = taken > 0 ? taken : 2 * options_.seconds_per_row;
  const double left = options_.run.deadline.left();
  if (!(both > 0) || std::isinf(left)) return rows;
  const double fit = std::max(left, 0.0) / (rounds * both);
  return fit < static_cast<double>(rows) ? static_cast<size_t>(fit) : rows;
}

/// Leaves out suspects that were not measured in two rounds: there is no time for the least
/// suspicious, and the time may have been up before a round was over.
void AbSession::leave_out_unmeasured(std::vector<CaseId>& suspects, int first, int last) {
  std::erase_if(suspects, [&](const CaseId& id) {
    const bool measured =
        pair_rounds(result_.base.at(id), result_.head.at(id), first, last).log_ratios.size() >= 2;
    if (!measured) left_out_.insert({id.key, id.variant});
    return !measured;
  });
}

/// With its suite.
CaseId AbSession::id_of(const RowName& row) const {
  for (const Recording* side : {&head_, &base_}) {
    for (const PlannedCase& c : side->plan().cases) {
      if (c.spec.key() == row.first) return {c.spec.suite, row.first, row.second};
    }
  }
  return {"", row.first, row.second};
}

int AbSession::measure(int first, int rounds, const std::set<RowName>& rows) {
  std::optional<Progress> progress(std::in_place, 2 * rows.size() * static_cast<size_t>(rounds));
  const auto both_sides = [&](int round, bool base_first) {
    if (round >= first + rounds) progress.emplace(2 * rows.size());  // once more
    one_round(base_first ? base_ : head_, round, rows, *progress);
    one_round(base_first ? head_ : base_, round, rows, *progress);
    return !InterruptGuard::interrupted() && !options_.run.deadline.passed();
  };
  const auto levels = [&] {
    refresh();
    std::vector<RoundsOfRow> all;
    for (const auto& [id, head] : result_.head) {
      const auto base = result_.base.find(id);
      if (rows.count({id.key, id.variant}) == 0 || base == result_.base.end()) continue;
      const Quantity quantity = compared(base->second, head);
      all.push_back(
          {base->second.rounds(quantity), head.rounds(quantity), base_.dealer().lane_of(id.key)});
    }
    return all;
  };
  const auto drop = [&](int round) { dropped_.insert(round); };
  const int next = measure_rounds({both_sides, levels, drop}, first, rounds,
                                  options_.run.order_seed, far_off(limits_), repeated_);
  refresh();
  return next;
}

/// Whether the quiet rounds at hand show the same machine code to differ: files that it reads, or
/// libraries, need not be the same.
bool AbSession::is_off(const Side& base, const Side& head) const {
  if (base.noisy + head.noisy > 0) return false;
  const auto ratios = pair_rounds(base, head, 0, std::numeric_limits<int>::max()).log_ratios;
  return !ratios.empty() && std::abs(mean(ratios)) > std::log1p(kOff * limits_.fail_at);
}

/// Both sides ran on the same inputs, so that their outputs compare seed by seed.
void AbSession::compare_outputs() {
  for (const auto& [id, head] : result_.head) {
    const auto base = result_.base.find(id);
    if (base == result_.base.end() || !accuracy_change_bits(base->second, head)) continue;
    result_.decided.compared.insert(id);
    const std::string worse = worse_output(base->second, head);
    if (!worse.empty()) result_.decided.worse[id] = worse;
  }
}

/// Cases that both sides measured and whose latency is a question; notes those where it is none.
std::vector<CaseId> AbSession::questions(const std::set<RowName>& rows) {
  std::vector<CaseId> ids;
  for (const auto& [id, head] : result_.head) {
    const auto base = result_.base.find(id);
    if (base == result_.base.end() || rows.count({id.key, id.variant}) == 0) continue;
    if (!head.measured() || !base->second.measured()) continue;
    if (options_.trust_code && same_code(base->second, head) && !is_off(base->second, head)) {
      result_.decided.identical.insert(id);
    } else {
      ids.push_back(id);
    }
  }
  return ids;
}

std::vector<PairedQuestion> AbSession::pairs(const std::vector<CaseId>& ids, int first,
                                             int last) const {
  std::vector<PairedQuestion> family;
  for (const CaseId& id : ids) {
    family.push_back(pair_rounds(result_.base.at(id), result_.head.at(id), first, last));
  }
  return family;
}

/// Judges the screening rounds and returns the suspects, which have no verdict yet.
std::vector<CaseId> AbSession::screen(const std::vector<CaseId>& ids, int rounds) {
  const auto judged = moegate::screen(pairs(ids, 0, rounds), limits_);
  for (size_t i = 0; i < ids.size(); ++i) result_.decided.judged[ids[i]] = judged[i];
  std::vector<size_t> sent_on = suspects(judged);
  std::ranges::stable_sort(sent_on, {}, [&](size_t i) { return judged[i].p; });
  std::vector<CaseId> found;
  for (const size_t i : sent_on) found.push_back(ids[i]);
  for (const CaseId& suspect : found) result_.decided.judged.erase(suspect);
  result_.suspects.insert(found.begin(), found.end());
  return found;
}

/// New rounds of the suspects, the most suspicious first, which decide.
void AbSession::replay(std::vector<CaseId> suspects, int first) {
  const ReplayPlan& plan = options_.plan;
  std::vector<CaseId> in_time = suspects;
  const int there = first == 0 ? 1 : 0;  // round 0 was measured to see what is launched
  in_time.resize(affordable(suspects.size(), plan.rounds - there));
  const int last = in_time.empty() ? first : measure(first, plan.rounds, names(in_time));
  if (options_.run.deadline.is_set()) leave_out_unmeasured(suspects, first, last);
  Confirmed confirmed = confirm(pairs(suspects, first, last), limits_, plan);
  std::ranges::stable_sort(confirmed.undecided, {},
                           [&](size_t i) { return confirmed.judgements[i].p; });
  // Without their extension they stay what they are: inconclusive.
  confirmed.undecided.resize(affordable(confirmed.undecided.size(), plan.extra_rounds));
  std::vector<CaseId> undecided;
  for (const size_t i : confirmed.undecided) undecided.push_back(suspects[i]);
  int end = last;
  if (!undecided.empty()) end = measure(last, plan.extra_rounds, names(undecided));
  const auto judged = extend(std::move(confirmed), pairs(undecided, last, end), limits_);
  for (size_t i = 0; i < suspects.size(); ++i) result_.decided.judged[suspects[i]] = judged[i];
}

void AbSession::note() {
  std::vector<std::string>& notes = result_.decided.notes;
  for (const WildProcess& wild : repeated_) notes.push_back("Measured again: " + wild.text() + ".");
  for (const Recording* side : {&base_, &head_}) {
    std::ranges::copy(side->tally().notes, std::back_inserter(notes));
  }
}

/// The suspects that came with the options, as many as there is time for.
std::set<RowName> AbSession::suspects_in_time() {
  const std::vector<RowName>& all = *options_.suspects;
  size_t fit = affordable(all.size(), options_.plan.rounds);
  if (fit == 0 && !all.empty() && !options_.run.deadline.passed()) fit = 1;
  const auto end = all.begin() + static_cast<std::ptrdiff_t>(fit);
  left_out_.insert(end, all.end());
  return {all.begin(), end};
}

/// In the order of the suspects that came with the options.
std::vector<CaseId> AbSession::by_suspicion(std::vector<CaseId> ids) const {
  if (!options_.suspects) return ids;
  std::map<RowName, size_t> places;
  for (size_t i = 0; i < options_.suspects->size(); ++i) places[(*options_.suspects)[i]] = i;
  std::ranges::stable_sort(ids, {}, [&](const CaseId& id) { return places[{id.key, id.variant}]; });
  return ids;
}

Comparison AbSession::run() {
  base_.begin(0);
  head_.begin(0);
  result_.base_run = base_.run();
  result_.head_run = head_.run();
  if (is_pair()) result_.pair = VariantPair{options_.base.variant, options_.head.variant};
  result_.trust_code = options_.trust_code;
  const int screening = options_.suspects ? 0 : options_.plan.screen_rounds;
  const std::set<RowName> rows = options_.suspects ? suspects_in_time() : everything();
  result_.least_rounds = std::max(options_.least_rounds, screening);
  result_.order_seed = options_.run.order_seed;
  measure(0, std::max(1, options_.least_rounds), rows);
  std::vector<CaseId> suspects = by_suspicion(questions(rows));
  int next = 0;
  if (screening > 0) {
    next = measure(0, screening, names(suspects));
    suspects = screen(questions(names(suspects)), next);
  }
  if (!suspects.empty() && !InterruptGuard::interrupted()) replay(suspects, next);
  note();
  for (const RowName& row : left_out_) result_.decided.left_out.insert(id_of(row));
  compare_outputs();
  result_.interrupted = InterruptGuard::interrupted();
  base_.finish(result_.interrupted);
  head_.finish(result_.interrupted);
  return std::move(result_);
}

}  // namespace

Comparison run_ab(Store& store, PreparedAb prepared, const std::function<Limits(Backend)>& limits) {
  const InterruptGuard guard;
  return AbSession(store, std::move(prepared), limits).run();
}

}  // namespace moegate
