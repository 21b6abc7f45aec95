// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "harness/base/stats.h"
#include "harness/base/text.h"
#include "harness/judge/doubts.h"
#include "harness/judge/look.h"
#include "harness/judge/ratchet.h"
#include "harness/judge/replay_rule.h"

namespace moegate {
namespace {

/// A replay compared outputs on the same inputs; stored numbers need not have.
std::string worse_of(const Look& look, const CaseId& id, const Replayed& replayed) {
  if (replayed.compared.count(id) == 0) return worse_output(*look.base, look.head);
  const std::string* worse = find_or_null(replayed.worse, id);
  return worse ? *worse : "";
}

/// What a replay found; else what the sides at hand say.
std::string other_of(const Look& look, const CaseId& id, const Replayed& replayed) {
  const std::string* other = find_or_null(replayed.other_questions, id);
  return other ? *other : other_question(*look.base, look.head);
}

/// Outputs, and the questions, of which `others` has those that differ.
void hold_against_base(Look& look, const CaseId& id, const Replayed& replayed,
                       std::map<CaseId, std::string, CaseIdLess>& others) {
  if (!look.comparable() && !look.silent()) return;
  look.worse = worse_of(look, id, replayed);
  const std::string other = other_of(look, id, replayed);
  if (other.empty()) return;
  look.other = asks_otherwise(id.key, other);
  others[id] = other;
}

/// Leaves a row open that its stored level may pass.
void hint(CaseVerdict& v, const Look& look, const Replayed& replayed) {
  if (look.setting.paired || replayed.compared.count(v.id) > 0) return;
  const std::string why = only_a_replay_decides(*look.base, look.head, look.setting.limits);
  if (why.empty()) return;
  v.open = true;
  v.why += (v.why.empty() ? "" : "; ") + why;
}

void apply_latency(CaseVerdict& v, const Judgement& j, int stage) {
  v.latency = j;
  v.stage = stage;
  if (v.drift) {  // its outputs are worse, whatever its latency
    if (j.outcome == Outcome::regressed) v.why += "; and " + j.why;
  } else if (v.open && j.outcome != Outcome::regressed) {
    find(v, Rule::replay_decides, "only a replay decides: " + v.why + "; " + j.why);
  } else {
    find(v, rule_of(j), v.why.empty() ? j.why : j.why + "; " + v.why);
  }
}

/// A machine that timed nothing at all says nothing about the kernels.
void excuse_environment(const Sides& head, GateResult& result) {
  bool bad_timer = false;
  for (const auto& [id, side] : head) {
    if (side.measured()) return;
    bad_timer = bad_timer || side.status == Status::bad_timer;
  }
  if (!bad_timer) return;
  for (CaseVerdict& v : result.cases) {
    const Side* side = find_or_null(head, v.id);
    if (side && side->status == Status::bad_timer) find(v, Rule::nothing_timed, v.why);
  }
}

void judge_latency(GateResult& result, const std::vector<size_t>& rows,
                   const std::vector<Question>& family, const Limits& limits) {
  const auto judged = judge_family(family, limits);
  for (size_t i = 0; i < rows.size(); ++i) apply_latency(result.cases[rows[i]], judged[i], 1);
}

void summarise_latency(GateResult& result) {
  std::vector<double> changes;
  for (const CaseVerdict& v : result.cases) {
    if (!v.latency) continue;
    changes.push_back(v.latency->effect);
    result.blind += v.latency->blind;
  }
  result.judged = static_cast<int>(changes.size());
  if (!changes.empty()) result.median_change = median(changes);
}

/// A row on stored numbers. Of another device the base's level is moved by what the two differ by.
Question stored_question(const Look& look, const Expectation& e) {
  Question q{look.base->level, look.head.level, look.setting.host ? 0 : look.head.tick};
  if (!e.other_device || look.setting.host) return q;
  q.extra_sd = kBetweenDevicesSd;
  if (!e.between) return q;
  q.base.mean_log += e.between->shift;
  q.extra_sd = e.between->sd;
  q.extra_df = e.between->df;
  return q;
}

/// Equal hashes do not cover all that a kernel's time may come from: stored numbers that are off
/// leave the row to a replay.
void doubt_identical(CaseVerdict& v, const Look& look, const Expectation& e,
                     const Replayed& replayed) {
  const bool asked = v.outcome == Outcome::identical && !look.setting.paired &&
                     !look.are_yardsticks() && !look.by_time() && !look.disturbed();
  if (!asked || replayed.identical.count(v.id) > 0) return;
  const Question q = stored_question(look, e);
  const double slower = q.head.mean_log - q.base.mean_log;
  if (slower <= std::log1p(DoubtedFrom(look.setting.limits).stored) + 2 * q.extra_sd) return;
  v.open = true;
  find(v, Rule::identical_but_off,
       fmt::format("{}, and {} off: only a replay decides", kIdentical,
                   percent(std::expm1(slower))));
}

/// What rows can be compared with, asked for in their order.
class BaseRows {
 public:
  /// A base run's crashed case is none.
  const Side* measured(const Expectation& e, const CaseId& id) {
    if (of_ != &e) {
      of_ = &e;
      rows_.emplace(e.sides);
    }
    const Side* side = rows_->find_or_null(id);
    return side && side->measured() ? side : nullptr;
  }

 private:
  const Expectation* of_ = nullptr;
  std::optional<InOrder<Sides>> rows_;
};

/// What the head compares with, a suite each, and the rows of theirs that it has not.
void find_absent(GateResult& result, const Sides& head,
                 const std::map<std::string, Expectation>& expected, const Setting& setting,
                 const Replayed& replayed) {
  for (const auto& [suite, e] : expected) {
    result.suites[suite] = {.against = e.against, .note = e.note, .other_device = e.other_device};
    InOrder there(head);
    for (const auto& [id, base] : e.sides) {
      if (there.find_or_null(id) || !base.measured() || base.retired || replayed.cut_short(id))
        continue;
      result.not_run += setting.partial;
      if (setting.partial) continue;
      result.cases.push_back(unmeasured(
          id, e.against, Rule::absent,
          "in the baseline, not in the run; if it was removed on purpose, bless a run without it"));
      result.cases.back().base = base.level.level();
    }
  }
}

}  // namespace

CaseVerdict unmeasured(const CaseId& id, const std::string& against, Rule rule, std::string why) {
  CaseVerdict v;
  v.id = id;
  v.against = against;
  find(v, rule, std::move(why));
  return v;
}

bool same_code(const Side& base, const Side& head) {
  return !head.code.empty() && base.code == head.code;
}

Outcome latency_outcome(const CaseVerdict& v) {
  const bool left_open = v.found.test(static_cast<size_t>(Rule::left_open));
  return left_open || !v.latency ? Outcome::inconclusive : v.latency->outcome;
}

bool is_slower(const CaseVerdict& v) {
  return v.outcome == Outcome::regressed || latency_outcome(v) == Outcome::regressed;
}

Effect effect_of(const CaseVerdict& v) {
  const bool passed = v.latency && v.outcome == Outcome::pass;
  return {v.latency ? v.latency->effect : 0, passed || v.outcome == Outcome::identical};
}

std::vector<size_t> unsettled(const GateResult& result) {
  std::vector<size_t> places, judged;
  std::vector<Judgement> judgements;
  for (size_t i = 0; i < result.cases.size(); ++i) {
    const CaseVerdict& v = result.cases[i];
    if (v.open) places.push_back(i);
    if (v.open || !v.latency) continue;
    judged.push_back(i);
    judgements.push_back(*v.latency);
  }
  for (const size_t i : suspects(judgements)) places.push_back(judged[i]);
  return places;
}

std::vector<CaseId> worth_a_replay(const GateResult& result, const Sides& head,
                                   const Limits& limits) {
  std::vector<size_t> places = unsettled(result);
  const DoubtedFrom doubted(limits);
  for (size_t i = 0; i < result.cases.size(); ++i) {
    const CaseVerdict& v = result.cases[i];
    const Side* side = find_or_null(head, v.id);
    if (v.outcome != Outcome::identical || !side) continue;
    const double most = side->disturbed ? doubted.disturbed : doubted.stored;
    if (v.base > 0 && v.head > v.base * (1 + most)) places.push_back(i);
  }
  // What is changed comes before what is not, and of equally improbable rows the one that is
  // off most.
  const auto suspicion = [&](size_t i) {
    const CaseVerdict& v = result.cases[i];
    const bool same = v.outcome == Outcome::identical;
    return std::tuple(same, v.latency && !same ? v.latency->p : 0,
                      v.base > 0 ? -v.head / v.base : 0);
  };
  std::ranges::stable_sort(places, {}, suspicion);
  std::vector<CaseId> rows;
  for (const size_t i : places) rows.push_back(result.cases[i].id);
  return rows;
}

GateResult judge(const Sides& head, const std::map<std::string, Expectation>& expected,
                 const Setting& setting, const Replayed& replayed) {
  GateResult result;
  result.notes = replayed.notes;
  result.unable = replayed.unable;
  std::vector<size_t> rows;  // places in result.cases of the family
  std::vector<Question> family;
  const Expectation none;
  const bool trusted = trust_ceilings(head, expected, setting);
  BaseRows base_rows;
  std::map<CaseId, std::string, CaseIdLess> others;
  OtherOutputs other_outputs;
  result.cases.reserve(head.size());
  for (const auto& [id, side] : head) {
    const Expectation* suite = find_or_null(expected, id.suite);
    const Expectation& e = suite ? *suite : none;
    const Judgement* again = find_or_null(replayed.judged, id);
    Look look{base_rows.measured(e, id),    side, e.against, setting, trusted,
              setting.trust_code && !again, ""};
    hold_against_base(look, id, replayed, others);
    if (!look.base && look.head.status == Status::unsupported) {
      ++result.unsupported;  // so the variant states, and no baseline has the row either
      continue;
    }
    const bool cut_short = replayed.cut_short(id);
    if (cut_short && !look.base && look.head.measured()) continue;  // its base was to come
    CaseVerdict v = look_at(id, look);
    other_outputs.add(id, look);
    v.off = v.same_code && setting.trust_code && again;
    if (!look.silent()) doubt_identical(v, look, e, replayed);
    const bool silent = look.silent() && look.other.empty() && !look.identical();
    const bool judged = look.judged() || silent;
    if (judged && replayed.identical.count(id) > 0) {
      if (!v.drift) find(v, Rule::identical, kIdentical);
    } else if (judged && again) {
      apply_latency(v, *again, 2);
    } else if (judged && (v.by_time || silent)) {
      v.open = true;
    } else if (judged && !cut_short) {
      hint(v, look, replayed);
      rows.push_back(result.cases.size());
      family.push_back(stored_question(look, e));
    }
    result.cases.push_back(std::move(v));
  }
  judge_latency(result, rows, family, setting.limits);
  blame_device(result, expected, replayed);
  fail_noisier(result, head, expected, setting);
  fail_slow_to_enqueue(result, head, expected);
  summarise_latency(result);
  find_absent(result, head, expected, setting, replayed);
  excuse_environment(head, result);
  leave_open(result, head, expected, replayed, setting.limits);
  fail_far_slower(result, head, expected, setting);
  result.changed = changed_operators(others);
  other_outputs.say(result.notes);
  count_outcomes(result);
  return result;
}

std::string environment_sentence(const GateResult& result) {
  if (result.environment.empty()) return "";
  std::string text;
  for (const EnvironmentChange& change : result.environment)
    text += (text.empty() ? "environment: " : ", ") + change.text();
  const auto is_common = [](const CaseVerdict& v) { return v.base > 0 && v.head > 0; };
  const auto rows = std::ranges::count_if(result.cases, is_common);
  const auto others = std::ranges::count_if(
      result.cases, [&](const CaseVerdict& v) { return is_common(v) && !v.same_code; });
  if (rows == 0) return text;
  return fmt::format("{}; {} of {} ran other code", text, others,
                     count_of(static_cast<size_t>(rows), "row"));
}

void name_environment(GateResult& result) {
  if (result.environment.empty()) return;
  const std::string why =
      result.environment.size() == 1
          ? result.environment.front().text()
          : fmt::format("{} items differ: moegate report environment", result.environment.size());
  for (CaseVerdict& v : result.cases) {
    const bool differs = is_slower(v) || v.outcome == Outcome::improved ||
                         v.outcome == Outcome::wrong || v.outcome == Outcome::inconclusive;
    if (differs && !v.same_code) v.why += fmt::format("{}({})", v.why.empty() ? "" : " ", why);
  }
}

void add_lacking(GateResult& result, const std::vector<CaseId>& lacking) {
  for (const CaseId& id : lacking) {
    const Expectation* suite = find_or_null(result.suites, id.suite);
    result.cases.push_back(unmeasured(id, suite ? suite->against : "", Rule::lacking,
                                      "in the base's suite, not in the head's"));
  }
  count_outcomes(result);
}

void count_outcomes(GateResult& result) {
  result.counts.clear();
  result.not_judged = 0;
  for (const CaseVerdict& v : result.cases) {
    ++result.counts[v.outcome];
    result.not_judged += v.outcome == Outcome::fresh && !v.against.empty();
  }
}

void check_comparable(const BaselineHeader& base, const BaselineHeader& head,
                      const std::string& against) {
  const auto same = [&](Exit code, const char* what, const auto& a, const auto& b,
                        const char* remedy) {
    if (a == b) return;
    give_up(code, "{}: {} is '{}', the run's is '{}'; {}", against, what, a, b, remedy);
  };
  same(Exit::usage, "class", base.klass, head.klass,
       "judge it against a baseline of its own class");
  same(Exit::usage, "protocol", base.protocol, head.protocol, "bless a run of this protocol first");
  same(Exit::usage, "flush", base.flush, head.flush, "run with the same --flush");
  same(Exit::environment, "timer", base.timer, head.timer,
       "run with the same --timer, or see `moegate doctor` for why it is not there");
}

}  // namespace moegate
