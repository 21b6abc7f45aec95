// SPDX-License-Identifier: Apache-2.0
#include "harness/report/row_effects.h"

#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "harness/judge/comparison.h"

namespace moegate {
namespace {

/// By what the two are compared by; 0 where a side has no level.
double share_of_levels(const Side& base, const Side& head) {
  const Quantity quantity = compared(base, head);
  const double before = evidence_of(base.rounds(quantity)).level();
  const double after = evidence_of(head.rounds(quantity)).level();
  return before > 0 && after > 0 ? after / before - 1 : 0;
}

/// What the store has of a verdict of two runs.
class StoredVerdict {
 public:
  StoredVerdict(Store& store, const RunInfo& base, const RunInfo& head)
      : q_(store.database(),
           "SELECT outcome, effect FROM verdict WHERE run_id = ?1 AND against = ?2 AND suite = ?3 "
           "AND key = ?4 AND variant = ?5"),
        head_(head.id) {
    Statement any(store.database(), "SELECT 1 FROM verdict WHERE run_id = ?1 AND against = ?2");
    for (const std::string& against : {against_commit(base), describe(base)}) {
      any.again();
      if (any.bind(head_, against).step()) against_.push_back(against);
    }
  }

  /// Nothing where the row's latency was not judged.
  std::optional<Effect> of(const CaseId& row, double share_of_levels) {
    for (const std::string& against : against_) {
      q_.again();
      q_.bind(head_, against, row.suite, row.key, row.variant);
      if (!q_.step()) continue;
      if (q_.view(0) == name_of(Outcome::identical)) return Effect{share_of_levels, true};
      if (!q_.is_null(1)) return Effect{q_.real(1), q_.view(0) == name_of(Outcome::pass)};
    }
    return std::nullopt;
  }

 private:
  Statement q_;
  const int64_t head_;
  std::vector<std::string> against_;  // in the order in which they are believed
};

/// As compare would.
void judge_now(const RunInfo& base_run, const RunInfo& head_run, Sides base, const Sides& head,
               Effects& effects) {
  GateResult result =
      judge_runs(base_run, head_run, std::move(base), head, Limits::of(head_run.device.backend));
  for (const CaseVerdict& v : result.cases) {
    Effect& effect = effects.at(v.id);
    effect.equal = effect_of(v).equal;
    if (v.latency) effect.share = v.latency->effect;
  }
  for (const size_t open : suspects(result)) effects.at(result.cases[open].id).equal = false;
}

}  // namespace

Effects row_effects(Store& store, const RunInfo& base_run, const RunInfo& head_run, Sides base,
                    Sides head) {
  Effects effects;
  Transaction reading(store.database(), "BEGIN");  // one lock, not one for each row
  StoredVerdict stored(store, base_run, head_run);
  for (auto before = base.begin(), row = head.begin(); row != head.end();) {
    const double share = share_of_levels(before->second, row->second);
    const std::optional<Effect> known = stored.of(row->first, share);
    effects.emplace_hint(effects.end(), row->first, known.value_or(Effect{share, false}));
    before = known ? base.erase(before) : std::next(before);
    row = known ? head.erase(row) : std::next(row);
  }
  if (!head.empty()) judge_now(base_run, head_run, std::move(base), head, effects);
  return effects;
}

}  // namespace moegate
