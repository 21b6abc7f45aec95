// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/ab.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/base/interrupt.h"
#include "harness/base/stats.h"
#include "harness/campaign/ab_runs.h"
#include "harness/judge/ratchet.h"

namespace moegate {
namespace {

/// The same machine code that differs by so many times what fails a row is measured all the same: one
/// round differs by less by chance.
constexpr double kOff = 2;

/// Says which rows are measured next, and judges.
class AbSession {
 public:
  AbSession(Store& store, PreparedAb prepared, const std::function<Limits(Backend)>& limits)
      : options_(std::move(prepared.options)),
        limits_(limits(prepared.head.plan.hello.device.backend)),
        runs_(store, std::move(prepared.base), std::move(prepared.head), options_,
              far_off(limits_)) {
    result_.changed = std::move(prepared.changes.told);
    result_.lacking = std::move(prepared.changes.lacking);
  }

  Comparison run();

 private:
  std::vector<CaseId> questions(const std::set<RowName>& rows);
  bool is_off(const Side& base, const Side& head) const;
  void compare_outputs();
  std::vector<PairedQuestion> pairs(const std::vector<CaseId>& ids, int first, int last) const;
  std::set<RowName> names(const std::vector<CaseId>& ids) const;
  std::vector<CaseId> screen(const std::vector<CaseId>& ids, int rounds);
  std::set<RowName> suspects_in_time();
  std::vector<CaseId> by_suspicion(std::vector<CaseId> ids) const;
  void replay(std::vector<CaseId> suspects, int first);
  void leave_out_unmeasured(std::vector<CaseId>& suspects, int first, int last);

  const AbOptions options_;
  const Limits limits_;
  AbRuns runs_;
  std::set<RowName> left_out_;
  Comparison result_;
};

std::set<RowName> AbSession::names(const std::vector<CaseId>& ids) const {
  std::set<RowName> rows;
  for (const CaseId& id : ids) rows.insert({id.key, id.variant});
  return rows;
}

/// Leaves out suspects that were not measured in two rounds: there is no time for the least
/// suspicious, and the time may have been up before a round was over.
void AbSession::leave_out_unmeasured(std::vector<CaseId>& suspects, int first, int last) {
  std::erase_if(suspects, [&](const CaseId& id) {
    const bool measured =
        pair_rounds(runs_.base().at(id), runs_.head().at(id), first, last).log_ratios.size() >= 2;
    if (!measured) left_out_.insert({id.key, id.variant});
    return !measured;
  });
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
  for (const auto& [id, head] : runs_.head()) {
    const auto base = runs_.base().find(id);
    if (base == runs_.base().end() || rows.count({id.key, id.variant}) == 0) continue;
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
    family.push_back(pair_rounds(runs_.base().at(id), runs_.head().at(id), first, last));
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
  in_time.resize(runs_.affordable(suspects.size(), plan.rounds - there));
  const int last = in_time.empty() ? first : runs_.measure(first, plan.rounds, names(in_time));
  if (options_.run.deadline.is_set()) leave_out_unmeasured(suspects, first, last);
  Confirmed confirmed = confirm(pairs(suspects, first, last), limits_, plan);
  std::ranges::stable_sort(confirmed.undecided, {},
                           [&](size_t i) { return confirmed.judgements[i].p; });
  // Without their extension they stay what they are: inconclusive.
  confirmed.undecided.resize(runs_.affordable(confirmed.undecided.size(), plan.extra_rounds));
  std::vector<CaseId> undecided;
  for (const size_t i : confirmed.undecided) undecided.push_back(suspects[i]);
  int end = last;
  if (!undecided.empty()) end = runs_.measure(last, plan.extra_rounds, names(undecided));
  const auto judged = extend(std::move(confirmed), pairs(undecided, last, end), limits_);
  for (size_t i = 0; i < suspects.size(); ++i) result_.decided.judged[suspects[i]] = judged[i];
}

/// The suspects that came with the options, as many as there is time for.
std::set<RowName> AbSession::suspects_in_time() {
  const std::vector<RowName>& all = *options_.suspects;
  size_t fit = runs_.affordable(all.size(), options_.plan.rounds);
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
  runs_.begin();
  if (runs_.is_pair()) result_.pair = VariantPair{options_.base.variant, options_.head.variant};
  result_.trust_code = options_.trust_code;
  const int screening = options_.suspects ? 0 : options_.plan.screen_rounds;
  const std::set<RowName> rows = options_.suspects ? suspects_in_time() : runs_.rows();
  result_.least_rounds = std::max(options_.least_rounds, screening);
  result_.order_seed = options_.run.order_seed;
  runs_.measure(0, std::max(1, options_.least_rounds), rows);
  std::vector<CaseId> suspects = by_suspicion(questions(rows));
  int next = 0;
  if (screening > 0) {
    next = runs_.measure(0, screening, names(suspects));
    suspects = screen(questions(names(suspects)), next);
  }
  if (!suspects.empty() && !InterruptGuard::interrupted()) replay(suspects, next);
  runs_.hand_over(result_);
  for (const RowName& row : left_out_) result_.decided.left_out.insert(runs_.id_of(row));
  compare_outputs();
  result_.interrupted = InterruptGuard::interrupted();
  runs_.finish(result_.interrupted);
  return std::move(result_);
}

}  // namespace

Comparison run_ab(Store& store, PreparedAb prepared, const std::function<Limits(Backend)>& limits) {
  const InterruptGuard guard;
  return AbSession(store, std::move(prepared), limits).run();
}

}  // namespace moegate
