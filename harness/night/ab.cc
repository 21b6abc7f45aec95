// SPDX-License-Identifier: Apache-2.0
#include "harness/night/ab.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "harness/base/environment.h"
#include "harness/base/stats.h"
#include "harness/base/subprocess.h"
#include "harness/base/text.h"
#include "harness/campaign/runner.h"
#include "harness/judge/look.h"
#include "harness/judge/ratchet.h"
#include "harness/night/ab_runs.h"

namespace moegate {
namespace {

// What both sides of an A/B are to measure, before anything is measured or stored.

RunOptions options_of(const AbOptions& ab, const AbSide& side, const char* role) {
  RunOptions options = ab.run;
  options.worker.program = side.program;
  if (!side.kernels.empty()) options.worker.modules = side.kernels;
  if (!side.variant.empty()) options.variant = exactly(side.variant);
  options.worker.variables = side.variables;
  for (const AbSide* one : {&ab.base, &ab.head}) {  // what one states, the other may inherit
    for (const auto& [name, value] : one->stated) options.worker.stated.push_back(name);
  }
  options.label = side.label;
  options.rounds = 0;  // as many as it takes
  options.tags["ab"] = role;
  for (const auto& [name, value] : side.tags) options.tags[name] = value;
  options.canary_slow_by = side.canary_slow_by;
  return options;
}

/// The head's operators, and what only the base has: an operator, a parameter with a default.
std::vector<OpDescription> merged(std::vector<OpDescription> head,
                                  const std::vector<OpDescription>& base) {
  for (const OpDescription& op : base) {
    const auto at = std::ranges::find(head, op.name, &OpDescription::name);
    if (at == head.end()) {
      head.push_back(op);
      continue;
    }
    for (const Param& param : op.params) {
      const bool known =
          std::ranges::find(at->params, param.name, &Param::name) != at->params.end();
      if (!known && !param.default_value.empty()) at->params.push_back(param);
    }
  }
  return head;
}

/// Of two programs; suspects are rows of a plan that was compared when it was made.
Changes changes_of(const AbOptions& options, const Plan& base, const Plan& head) {
  const bool same = options.base.program.empty() && options.base.kernels.empty();
  if (same || !options.base.variant.empty() || options.suspects) return {};
  const auto home_of_side = [](const AbSide& side) {
    return home_of(side.program.empty() ? "/proc/self/exe" : side.program);
  };
  std::vector<RowName> planned = head.rows();
  std::ranges::move(base.rows(), std::back_inserter(planned));
  return changes_between({base.hello, home_of_side(options.base), options.base.suites},
                         {head.hello, home_of_side(options.head), options.run.suites}, options.run,
                         planned);
}

/// Files that the base imports and the head does not are a head that does not build.
Prepared open_head(const AbOptions& options, const Prepared& base, WorkerSource& source) {
  try {
    return open_program(options_of(options, options.head, "head"), source,
                        base.lanes.shared_dealer());
  } catch (const Error& e) {
    if (!options.environments || e.code() != Exit::usage) throw;
    give_up(Exit::environment, "--head, where --base can do it: {}", e.what());
  }
}

std::set<RowName> names(const std::vector<CaseId>& ids) {
  std::set<RowName> rows;
  for (const CaseId& id : ids) rows.insert({id.key, id.variant});
  return rows;
}

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
  std::vector<CaseId> screen(const std::vector<CaseId>& ids, int rounds);
  /// Suspects that were measured in the rounds [first, last).
  struct Batch {
    std::vector<CaseId> ids;
    int first = 0, last = 0;
  };
  std::vector<CaseId> by_suspicion(std::vector<CaseId> ids) const;
  std::vector<Batch> measure_given();
  std::vector<Batch> measure_screened(const std::vector<CaseId>& suspects, int first);
  void decide(std::vector<Batch> batches);
  std::set<RowName> whole(std::set<RowName> rows, int first, int last);
  void leave_out_unmeasured(Batch& batch);

  const AbOptions options_;
  const Limits limits_;
  AbRuns runs_;
  std::set<RowName> left_out_;
  Comparison result_;
};

/// Those of rows measured in the rounds [first, last) that an interruption did not cut short. It
/// leaves out the others: a rule decides on as many rounds as it asked for, not on fewer that were
/// there when somebody looked.
std::set<RowName> AbSession::whole(std::set<RowName> rows, int first, int last) {
  if (!InterruptGuard::interrupted()) return rows;
  for (const RowName& row : runs_.lacking(rows, first, last)) {
    left_out_.insert(row);
    rows.erase(row);
  }
  return rows;
}

/// Leaves out suspects without two rounds: the time may have been up before one was over.
void AbSession::leave_out_unmeasured(Batch& batch) {
  const std::set<RowName> kept = whole(names(batch.ids), batch.first, batch.last);
  std::erase_if(batch.ids, [&](const CaseId& id) {
    const RowName row{id.key, id.variant};
    if (!kept.contains(row)) return true;
    if (!options_.run.deadline.is_set()) return false;
    const bool measured =
        pair_rounds(runs_.base().at(id), runs_.head().at(id), batch.first, batch.last)
            .log_ratios.size() >= 2;
    if (!measured) left_out_.insert(row);
    return !measured;
  });
}

/// Whether the rounds at hand show the same machine code to differ: libraries of the system, or
/// variables of the environment, need not be the same. Of a busy host one wild round says little.
bool AbSession::is_off(const Side& base, const Side& head) const {
  const auto ratios = pair_rounds(base, head, 0, std::numeric_limits<int>::max()).log_ratios;
  if (ratios.empty()) return false;
  const double by = base.noisy + head.noisy > 0 ? median(ratios) : mean(ratios);
  return std::abs(by) > std::log1p(DoubtedFrom(limits_).rounds);
}

/// Both sides ran on the same inputs, so that their outputs compare seed by seed.
void AbSession::compare_outputs() {
  for (const auto& [id, head] : result_.head) {
    const auto base = result_.base.find(id);
    if (base == result_.base.end() || !accuracy_change_bits(base->second, head)) continue;
    if (result_.decided.other_questions.contains(id)) continue;
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
    if (std::string other = other_question(base->second, head); !other.empty()) {
      result_.decided.other_questions[id] = std::move(other);
      continue;
    }
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
  return mapped(ids, [&](const CaseId& id) {
    return pair_rounds(runs_.base().at(id), runs_.head().at(id), first, last);
  });
}

/// Judges the screening rounds and returns the suspects, which have no verdict yet.
std::vector<CaseId> AbSession::screen(const std::vector<CaseId>& ids, int rounds) {
  const auto judged = moegate::screen(pairs(ids, 0, rounds), limits_);
  for (size_t i = 0; i < ids.size(); ++i) result_.decided.judged[ids[i]] = judged[i];
  std::vector<size_t> sent_on = suspects(judged);
  std::ranges::stable_sort(sent_on, {}, [&](size_t i) { return judged[i].p; });
  const auto found = mapped(sent_on, [&](size_t i) { return ids[i]; });
  for (const CaseId& suspect : found) result_.decided.judged.erase(suspect);
  result_.suspects.insert(found.begin(), found.end());
  return found;
}

/// The suspects that came with the options, the most suspicious first, in batches: as many as there
/// is time for, then as many of the others as what these left over is enough for. A round shows
/// which of them launch the same code, and costs a twelfth of what decides the others.
std::vector<AbSession::Batch> AbSession::measure_given() {
  const int rounds = options_.plan.rounds;
  std::vector<RowName> waiting = *options_.suspects;
  std::vector<Batch> batches;
  for (int next = 0; !waiting.empty() && !InterruptGuard::interrupted();) {
    size_t fit = runs_.affordable(waiting.size(), rounds);
    if (fit == 0 && next == 0 && !options_.run.deadline.passed()) fit = 1;
    if (fit == 0) break;
    const auto end = waiting.begin() + static_cast<std::ptrdiff_t>(fit);
    const std::set<RowName> rows(waiting.begin(), end);
    const int first = next;
    next = runs_.measure(first, std::max(1, options_.least_rounds), rows);
    Batch batch{by_suspicion(questions(rows)), first, next};
    const size_t in_time = runs_.affordable(batch.ids.size(), rounds - 1);
    for (const CaseId& late : std::vector(batch.ids.begin() + in_time, batch.ids.end())) {
      left_out_.insert({late.key, late.variant});
    }
    batch.ids.resize(in_time);
    waiting.erase(waiting.begin(), end);
    if (batch.ids.empty()) continue;
    next = batch.last = runs_.measure(first, rounds, names(batch.ids));
    batches.push_back(std::move(batch));
  }
  left_out_.insert(waiting.begin(), waiting.end());
  return batches;
}

/// The same of the suspects of a screen, which has shown what they launch.
std::vector<AbSession::Batch> AbSession::measure_screened(const std::vector<CaseId>& suspects,
                                                          int first) {
  std::vector<Batch> batches;
  size_t done = 0;
  while (done < suspects.size() && !InterruptGuard::interrupted()) {
    const size_t fit = runs_.affordable(suspects.size() - done, options_.plan.rounds);
    if (fit == 0) break;
    Batch batch{{suspects.begin() + done, suspects.begin() + done + fit}, first, first};
    done += fit;
    first = batch.last = runs_.measure(first, options_.plan.rounds, names(batch.ids));
    batches.push_back(std::move(batch));
  }
  for (; done < suspects.size(); ++done) {
    left_out_.insert({suspects[done].key, suspects[done].variant});
  }
  return batches;
}

/// All batches are one family: how many there are the clock decided, and not what was measured.
void AbSession::decide(std::vector<Batch> batches) {
  std::vector<CaseId> suspects;
  std::vector<PairedQuestion> family;
  int last = 0;
  for (Batch& batch : batches) {
    leave_out_unmeasured(batch);
    std::ranges::move(pairs(batch.ids, batch.first, batch.last), std::back_inserter(family));
    std::ranges::copy(batch.ids, std::back_inserter(suspects));
    last = batch.last;
  }
  Confirmed confirmed = confirm(family, limits_, options_.plan);
  std::ranges::stable_sort(confirmed.undecided, {},
                           [&](size_t i) { return confirmed.judgements[i].p; });
  // Without their extension they stay what they are: inconclusive.
  const int extra = options_.plan.extra_rounds;
  confirmed.undecided.resize(runs_.affordable(confirmed.undecided.size(), extra));
  const auto undecided = [&] {
    return mapped(confirmed.undecided, [&](size_t i) { return suspects[i]; });
  };
  int end = last;
  if (!undecided().empty()) end = runs_.measure(last, extra, names(undecided()));
  const std::set<RowName> extended = whole(names(undecided()), last, end);
  std::erase_if(confirmed.undecided, [&](size_t i) {
    return !extended.contains({suspects[i].key, suspects[i].variant});
  });
  const auto again = pairs(undecided(), last, end);
  const auto judged = extend(std::move(confirmed), again, limits_);
  for (size_t i = 0; i < suspects.size(); ++i) result_.decided.judged[suspects[i]] = judged[i];
}

/// In the order of the suspects that came with the options.
std::vector<CaseId> AbSession::by_suspicion(std::vector<CaseId> ids) const {
  std::map<RowName, size_t> places;
  for (size_t i = 0; i < options_.suspects->size(); ++i) places[(*options_.suspects)[i]] = i;
  std::ranges::stable_sort(ids, {}, [&](const CaseId& id) { return places[{id.key, id.variant}]; });
  return ids;
}

Comparison AbSession::run() {
  runs_.begin();
  if (runs_.is_pair()) result_.pair = VariantPair{options_.base.variant, options_.head.variant};
  result_.trust_code = options_.trust_code;
  result_.only_environments = options_.only_environments;
  const int screening = options_.suspects ? 0 : options_.plan.screen_rounds;
  result_.least_rounds = std::max(options_.least_rounds, screening);
  result_.order_seed = options_.run.order_seed;
  if (options_.suspects) {
    decide(measure_given());
  } else {
    std::set<RowName> rows = runs_.rows();
    int next = runs_.measure(0, std::max(1, options_.least_rounds), rows);
    // What neither commit says is no comparison of the two. Asked once all kernels have run.
    const std::string foreign = runs_.foreign_file_loaded();
    if (!foreign.empty()) throw Error(Exit::environment, foreign);
    std::vector<CaseId> suspects = questions(whole(std::move(rows), 0, next));
    next = screening > 0 ? runs_.measure(0, screening, names(suspects)) : 0;
    if (screening > 0) suspects = screen(questions(whole(names(suspects), 0, next)), next);
    decide(measure_screened(suspects, next));
  }
  runs_.hand_over(result_);
  result_.decided.replaying_s = options_.plan.rounds * runs_.seconds_per_row();
  for (const RowName& row : left_out_) result_.decided.left_out.insert(runs_.id_of(row));
  compare_outputs();
  result_.decided.interrupted = InterruptGuard::interrupted();
  runs_.finish(result_.decided.interrupted);
  return std::move(result_);
}

}  // namespace

PreparedAb prepare_ab(AbOptions options, WorkerSource& source) {
  if (options.run.order_seed == 0) options.run.order_seed = draw_order_seed();
  const InterruptGuard guard;  // before a worker starts: one that dies at once must not kill us
  Prepared base = open_program(options_of(options, options.base, "base"), source);
  Prepared head = open_head(options, base, source);
  Worker &base_worker = base.lanes.seat(0).worker(), &head_worker = head.lanes.seat(0).worker();
  const std::vector<OpDescription>& heads_ops = head.plan.hello.operators;
  Hello both = head.plan.hello;
  both.operators = merged(heads_ops, base.plan.hello.operators);
  const std::vector<Case> cases = load_cases(options.run, both);
  const auto is_heads = [&](const Case& c) {
    return std::ranges::find(heads_ops, c.op, &OpDescription::name) != heads_ops.end();
  };
  std::vector<Case> heads, bases_only;
  std::ranges::partition_copy(cases, std::back_inserter(heads), std::back_inserter(bases_only),
                              is_heads);
  check_cases(heads, head_worker);
  check_cases(bases_only, base_worker);
  base.plan = select_rows(base.options, cases, base.plan.hello);
  head.plan = select_rows(head.options, cases, head.plan.hello);
  // Not the base's: what an older program cannot resolve is unsupported there.
  check_on_device(head.plan, head_worker);
  end_preparing(base.plan.hello);
  end_preparing(head.plan.hello);
  Changes changes = changes_of(options, base.plan, head.plan);
  return {std::move(options), std::move(base), std::move(head), std::move(changes)};
}

Comparison run_ab(Store& store, PreparedAb prepared, const std::function<Limits(Backend)>& limits) {
  const InterruptGuard guard;
  return AbSession(store, std::move(prepared), limits).run();
}

}  // namespace moegate
