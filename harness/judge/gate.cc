// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "harness/base/error.h"
#include "harness/base/stats.h"
#include "harness/judge/left_out.h"
#include "harness/judge/ratchet.h"
#include "harness/judge/replay_rule.h"

namespace moegate {
namespace {

bool is_broken(Status s) {
  return s == Status::crashed || s == Status::timeout || s == Status::bad_timer;
}

std::string what_happened(const Side& side) {
  std::string text =
      fmt::format("{} in {} of {} processes", name_of(side.status), side.affected, side.processes);
  return side.why.empty() ? text : text + ": " + side.why;
}

constexpr const char* kIdentical = "the same machine code, launched alike";

/// A case of the run beside what it is judged against.
struct Look {
  const Side* base;  // measured; null: there is none
  const Side& head;
  const std::string& against;
  const Setting& setting;
  std::string worse;  // how its outputs are worse than the base's; empty: they are not

  bool comparable() const { return base && head.measured() && head.timer == base->timer; }
  bool identical() const { return setting.trust_code && same_code(*base, head); }
  bool is_yardstick() const { return head.judged == Judged::is_yardstick && !setting.pair; }
  bool disturbed() const { return head.disturbed || base->disturbed; }
};

/// A case that no line of the triage is about has Outcome::pass until its latency is judged.
struct Line {
  bool (*holds)(const Look&);
  Outcome outcome;
  std::string (*why)(const Look&);
};

/// What a case comes to before, or without, its latency: the first line that holds. The order is
/// the policy.
constexpr Line kTriage[] = {
    {[](const Look& l) { return l.head.status == Status::wrong; }, Outcome::wrong,
     [](const Look& l) { return what_happened(l.head); }},
    {[](const Look& l) { return is_broken(l.head.status); }, Outcome::missing,
     [](const Look& l) { return what_happened(l.head); }},
    {[](const Look& l) { return !l.head.measured(); }, Outcome::missing,
     [](const Look& l) { return "has no latency any more: " + what_happened(l.head); }},
    {[](const Look& l) { return l.base == nullptr; }, Outcome::fresh,
     [](const Look& l) {
       return std::string(l.against.empty() ? "no baseline" : "nothing to compare with there");
     }},
    {[](const Look& l) { return !l.comparable(); }, Outcome::environment,
     [](const Look& l) {
       return fmt::format("timed by '{}', the baseline by '{}': not comparable", l.head.timer,
                          l.base->timer);
     }},
    {[](const Look& l) { return !l.worse.empty(); }, Outcome::wrong,
     [](const Look& l) { return l.worse; }},
    {[](const Look& l) { return l.identical(); }, Outcome::identical,
     [](const Look&) { return std::string(kIdentical); }},
    {[](const Look& l) { return l.is_yardstick(); }, Outcome::pass,
     [](const Look&) { return std::string("yardstick: judged for accuracy only"); }},
    {[](const Look& l) { return l.disturbed(); }, Outcome::inconclusive,
     [](const Look& l) { return what_happened(l.head.disturbed ? l.head : *l.base); }},
    {[](const Look& l) { return bit_identical(*l.base, l.head); }, Outcome::pass,
     [](const Look&) { return std::string("output bit-identical"); }},
};

/// A variant that states that it does not support a case which no baseline has either.
bool expected_by_nobody(const Look& l) {
  return !l.base && !l.head.measured() && l.head.status != Status::wrong &&
         !is_broken(l.head.status);
}

/// Whether the case's latency is a question; that of a case with worse outputs is one too.
bool is_judged(const Look& l) {
  return l.comparable() && !l.identical() && !l.is_yardstick() && !l.disturbed();
}

CaseVerdict triage(const CaseId& id, const Look& look) {
  CaseVerdict v;
  v.id = id;
  v.against = look.against;
  v.base = look.base ? look.base->level.level() : 0;
  v.head = look.head.level.level();
  v.status = look.head.status;
  v.drift = !look.worse.empty();
  const auto line = std::find_if(std::begin(kTriage), std::end(kTriage),
                                 [&](const Line& l) { return l.holds(look); });
  if (line == std::end(kTriage)) return v;
  v.outcome = line->outcome;
  v.why = line->why(look);
  return v;
}

CaseVerdict absent(const CaseId& id, const Side& base, const std::string& against) {
  CaseVerdict v;
  v.id = id;
  v.against = against;
  v.outcome = Outcome::missing;
  v.why = "in the baseline, not in the run; if it was removed on purpose, bless a run without it";
  v.base = base.level.level();
  return v;
}

/// After a replay in which both sides launched the same code.
void say_identical(CaseVerdict& v) {
  if (v.drift) return;  // its outputs differ all the same
  v.outcome = Outcome::identical;
  v.why = kIdentical;
}

void apply_latency(CaseVerdict& v, const Judgement& j, int stage) {
  v.latency = j;
  v.stage = stage;
  if (!v.drift) {
    v.outcome = j.outcome;
    v.why = v.why.empty() ? j.why : j.why + "; " + v.why;
  } else if (j.outcome == Outcome::regressed) {
    v.why += "; and " + j.why;
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
    const auto it = head.find(v.id);
    if (it != head.end() && it->second.status == Status::bad_timer)
      v.outcome = Outcome::environment;
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

/// A case on stored numbers. Of another device the base's level is moved by what the two differ by.
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

/// What can be compared with: a base run's crashed case is none.
const Side* find_measured(const Sides& sides, const CaseId& id) {
  const auto it = sides.find(id);
  return it == sides.end() || !it->second.measured() ? nullptr : &it->second;
}

}  // namespace

bool same_code(const Side& base, const Side& head) {
  return !head.code.empty() && base.code == head.code;
}

std::vector<CaseId> suspects(const GateResult& result) {
  std::vector<CaseId> ids, judged;
  std::vector<Judgement> judgements;
  for (const CaseVerdict& v : result.cases) {
    if (!v.latency) continue;
    judged.push_back(v.id);
    judgements.push_back(*v.latency);
  }
  for (const size_t i : suspects(judgements)) ids.push_back(judged[i]);
  return ids;
}

GateResult judge(const Sides& head, const std::map<std::string, Expectation>& expected,
                 const Setting& setting, const Replayed& replayed) {
  GateResult result;
  result.notes = replayed.notes;
  result.unable = replayed.unable;
  std::vector<size_t> rows;  // places in result.cases of the family
  std::vector<Question> family;
  const Expectation none;
  for (const auto& [id, side] : head) {
    const auto it = expected.find(id.suite);
    const Expectation& e = it == expected.end() ? none : it->second;
    Look look{find_measured(e.sides, id), side, e.against, setting, ""};
    if (look.comparable()) look.worse = worse_output(*look.base, side);
    if (expected_by_nobody(look)) {
      ++result.unsupported;
      continue;
    }
    CaseVerdict v = triage(id, look);
    const bool judged = is_judged(look);
    const auto again = replayed.judged.find(id);
    if (judged && replayed.identical.count(id) > 0) {
      say_identical(v);
    } else if (judged && again != replayed.judged.end()) {
      apply_latency(v, again->second, 2);
    } else if (judged) {
      rows.push_back(result.cases.size());
      family.push_back(stored_question(look, e));
    }
    result.cases.push_back(std::move(v));
  }
  judge_latency(result, rows, family, setting.limits);
  summarise_latency(result);
  for (const auto& [suite, e] : expected) {
    result.suites[suite] = {e.against, e.note, e.other_device, {}};
    for (const auto& [id, base] : e.sides) {
      if (head.count(id) > 0 || !base.measured()) continue;
      if (setting.partial) {
        ++result.not_run;
      } else {
        result.cases.push_back(absent(id, base, e.against));
      }
    }
  }
  excuse_environment(head, result);
  leave_open(result, replayed.left_out);
  count_outcomes(result);
  return result;
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
    throw Error(code,
                fmt::format("{}: {} is '{}', the run's is '{}'; {}", against, what, a, b, remedy));
  };
  same(Exit::usage, "class", base.klass, head.klass,
       "judge it against a baseline of its own class");
  same(Exit::usage, "protocol", base.protocol, head.protocol, "bless a run of this protocol first");
  same(Exit::usage, "flush", base.flush, head.flush, "run with the same --flush");
  same(Exit::environment, "timer", base.timer, head.timer,
       "run with the same --timer, or see `moegate doctor` for why it is not there");
}

}  // namespace moegate
