// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/ab.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "harness/base/home.h"
#include "harness/base/interrupt.h"
#include "harness/base/pattern.h"
#include "harness/base/stats.h"
#include "harness/judge/ratchet.h"

namespace moegate {
namespace {

/// The same machine code that differs by so many times what fails a row is measured all the same: one
/// round differs by less by chance.
constexpr double kOff = 2;

RunOptions options_of(const AbOptions& ab, const AbSide& side, const char* role) {
  RunOptions options = ab.run;
  options.worker.program = side.program;
  if (!side.variant.empty()) options.kernel = exactly(side.variant);
  options.label = side.label;
  options.rounds = 0;  // as many as it takes
  options.tags["ab"] = role;
  options.canary_slow_by = side.canary_slow_by;
  return options;
}

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
  void measure(int first, int rounds, const std::set<RowName>& rows);
  void one_round(Recording& side, int round, const std::set<RowName>& rows, Progress& progress);
  std::vector<CaseId> questions(const std::set<RowName>& rows);
  bool is_off(const Side& base, const Side& head) const;
  void compare_outputs();
  std::vector<PairedQuestion> pairs(const std::vector<CaseId>& ids, int first, int last) const;
  std::set<RowName> names(const std::vector<CaseId>& ids) const;
  std::vector<CaseId> screen(const std::vector<CaseId>& ids, int rounds);
  void replay(const std::vector<CaseId>& suspects, int first);

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
  Comparison result_;
};

Sides AbSession::sides_of(const Recording& side) const {
  Sides sides;
  for (auto& [id, s] : collect(store_.levels(side.run()))) {
    sides[{id.suite, id.key, shown(id.variant)}] = s;
  }
  return sides;
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

void AbSession::measure(int first, int rounds, const std::set<RowName>& rows) {
  Progress progress(2 * rows.size() * static_cast<size_t>(std::max(rounds, 0)));
  for (int round = first; round < first + rounds && !InterruptGuard::interrupted(); ++round) {
    // ABBA: a drift of the machine falls on both sides alike.
    Recording& one = round % 2 == 0 ? base_ : head_;
    Recording& other = round % 2 == 0 ? head_ : base_;
    one_round(one, round, rows, progress);
    one_round(other, round, rows, progress);
  }
  result_.base = sides_of(base_);
  result_.head = sides_of(head_);
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
  std::vector<CaseId> found;
  for (const size_t i : suspects(judged)) found.push_back(ids[i]);
  for (const CaseId& suspect : found) result_.decided.judged.erase(suspect);
  result_.suspects.insert(found.begin(), found.end());
  return found;
}

/// New rounds of the suspects, which decide.
void AbSession::replay(const std::vector<CaseId>& suspects, int first) {
  const ReplayPlan& plan = options_.plan;
  measure(first, plan.rounds, names(suspects));
  const int last = first + plan.rounds;
  Confirmed confirmed = confirm(pairs(suspects, first, last), limits_, plan);
  std::vector<CaseId> undecided;
  for (const size_t i : confirmed.undecided) undecided.push_back(suspects[i]);
  if (!undecided.empty()) measure(last, plan.extra_rounds, names(undecided));
  const auto judged =
      extend(std::move(confirmed), pairs(undecided, last, last + plan.extra_rounds), limits_);
  for (size_t i = 0; i < suspects.size(); ++i) result_.decided.judged[suspects[i]] = judged[i];
}

Comparison AbSession::run() {
  base_.begin(0);
  head_.begin(0);
  result_.base_run = base_.run();
  result_.head_run = head_.run();
  if (is_pair()) result_.pair = VariantPair{options_.base.variant, options_.head.variant};
  result_.trust_code = options_.trust_code;
  const int screening = options_.suspects ? 0 : options_.plan.screen_rounds;
  const std::set<RowName> rows = options_.suspects ? *options_.suspects : everything();
  result_.least_rounds = std::max(options_.least_rounds, screening);
  measure(0, std::max(1, options_.least_rounds), rows);
  std::vector<CaseId> suspects = questions(rows);
  if (screening > 0) {
    measure(0, screening, names(suspects));
    suspects = screen(questions(names(suspects)), screening);
  }
  if (!suspects.empty() && !InterruptGuard::interrupted()) replay(suspects, screening);
  compare_outputs();
  result_.interrupted = InterruptGuard::interrupted();
  base_.finish(result_.interrupted);
  head_.finish(result_.interrupted);
  return std::move(result_);
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
Changes changes_of(const AbOptions& options, const std::pair<const Hello&, const Plan&>& base,
                   const std::pair<const Hello&, const Plan&>& head) {
  if (options.base.program.empty() || !options.base.variant.empty() || options.suspects) return {};
  const auto home_of_side = [](const AbSide& side) {
    const std::string program = side.program.empty() ? "/proc/self/exe" : side.program;
    std::error_code ignored;  // what cannot be followed has no home
    const auto as_named = home_of(std::filesystem::absolute(program));
    return as_named.empty() ? home_of(std::filesystem::canonical(program, ignored)) : as_named;
  };
  std::vector<RowName> planned = head.second.rows();
  const std::vector<RowName> also = base.second.rows();
  planned.insert(planned.end(), also.begin(), also.end());
  return changes_between({base.first, home_of_side(options.base)},
                         {head.first, home_of_side(options.head)}, options.run, planned);
}

}  // namespace

PreparedAb prepare_ab(const AbOptions& options, WorkerSource& source) {
  const InterruptGuard guard;  // before a worker starts: one that dies at once must not kill us
  RunOptions base = options_of(options, options.base, "base");
  RunOptions head = options_of(options, options.head, "head");
  WorkerSeat base_seat(source, base.worker), head_seat(source, head.worker);
  const Hello base_hello = base_seat.worker().hello();
  const Hello head_hello = head_seat.worker().hello();
  Hello both = head_hello;
  both.operators = merged(head_hello.operators, base_hello.operators);
  const std::vector<Case> cases = load_cases(options.run, both);
  const auto known_to = [](const Hello& hello) {
    return [&hello](const Case& c) {
      return std::ranges::find(hello.operators, c.op, &OpDescription::name) !=
             hello.operators.end();
    };
  };
  std::vector<Case> heads, bases_only;
  std::ranges::partition_copy(cases, std::back_inserter(heads), std::back_inserter(bases_only),
                              known_to(head_hello));
  check_cases(heads, head_seat.worker());
  check_cases(bases_only, base_seat.worker());
  Plan base_plan = select_rows(base, cases, base_hello);
  Plan head_plan = select_rows(head, cases, head_hello);
  // Not the base's: what an older program cannot resolve is unsupported there.
  check_on_device(head_plan, head_seat.worker());
  note_timer(base_hello);
  note_timer(head_hello);
  if (InterruptGuard::interrupted()) {
    throw Error(Exit::interrupted, "interrupted before anything was measured");
  }
  Changes changes = changes_of(options, {base_hello, base_plan}, {head_hello, head_plan});
  return {options,
          {std::move(base), std::move(base_seat), std::move(base_plan)},
          {std::move(head), std::move(head_seat), std::move(head_plan)},
          std::move(changes)};
}

Comparison run_ab(Store& store, PreparedAb prepared, const std::function<Limits(Backend)>& limits) {
  const InterruptGuard guard;
  return AbSession(store, std::move(prepared), limits).run();
}

}  // namespace moegate
