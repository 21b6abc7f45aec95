// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/gate.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/error.h"
#include "harness/base/stats.h"
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

void say_identical(CaseVerdict& v) {
  if (v.drift) return;  // its outputs differ all the same
  v.outcome = Outcome::identical;
  v.why = "the same machine code, launched alike";
}

/// What is known about a case before latency is judged; `judged` when it goes into the family.
struct Triage {
  CaseVerdict verdict;
  bool counted = true;  // false: not a verdict (unsupported, expected by nobody)
  bool judged = false;
};

Triage triage(const CaseId& id, const Side* base, const Side& head, const std::string& against,
              const Setting& setting) {
  Triage t;
  CaseVerdict& v = t.verdict;
  v.id = id;
  v.against = against;
  v.base = base ? base->level.level() : 0;
  v.head = head.level.level();
  v.status = head.status;
  const auto say = [&](Outcome outcome, std::string why) {
    v.outcome = outcome;
    v.why = std::move(why);
  };
  if (head.status == Status::wrong) {
    say(Outcome::wrong, what_happened(head));
  } else if (is_broken(head.status)) {
    say(Outcome::missing, what_happened(head));
  } else if (!head.measured()) {
    if (base) {
      say(Outcome::missing, "has no latency any more: " + what_happened(head));
    } else {
      t.counted = false;
    }
  } else if (!base) {
    say(Outcome::fresh, against.empty() ? "no baseline" : "nothing to compare with there");
  } else if (head.timer != base->timer) {
    say(Outcome::environment, fmt::format("timed by '{}', the baseline by '{}': not comparable",
                                          head.timer, base->timer));
  } else {
    const std::string worse = worse_output(*base, head);
    if (!worse.empty()) say(Outcome::wrong, worse);
    v.drift = !worse.empty();
    if (worse.empty() && bit_identical(*base, head)) v.why = "output bit-identical";
    const bool identical = setting.trust_code && same_code(*base, head);
    const bool yardstick = head.judged == Judged::is_yardstick && !setting.pair;
    const bool disturbed = head.disturbed || base->disturbed;
    t.judged = !yardstick && !disturbed && !identical;
    if (!worse.empty()) return t;
    if (identical) {
      say_identical(v);
    } else if (yardstick) {
      say(Outcome::pass, "yardstick: judged for accuracy only");
    } else if (disturbed) {
      say(Outcome::inconclusive, what_happened(head.disturbed ? head : *base));
    }
  }
  return t;
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
  for (const size_t i : needs_replay(judgements)) ids.push_back(judged[i]);
  return ids;
}

GateResult judge(const Sides& head, const std::map<std::string, Expectation>& expected,
                 const Setting& setting, const Replayed& replayed) {
  GateResult result;
  std::vector<size_t> rows;  // places in result.cases of the family
  std::vector<Question> family;
  const Expectation none;
  for (const auto& [id, side] : head) {
    const auto it = expected.find(id.suite);
    const Expectation& e = it == expected.end() ? none : it->second;
    const Side* base = find_measured(e.sides, id);
    Triage t = triage(id, base, side, e.against, setting);
    if (!t.counted) {
      ++result.unsupported;
      continue;
    }
    const auto again = replayed.judged.find(id);
    if (t.judged && replayed.identical.count(id) > 0) {
      say_identical(t.verdict);
    } else if (t.judged && again != replayed.judged.end()) {
      apply_latency(t.verdict, again->second, 2);
    } else if (t.judged) {
      rows.push_back(result.cases.size());
      family.push_back({base->level, side.level, setting.host ? 0 : side.tick,
                        e.other_device && !setting.host ? kBetweenDevicesSd : 0});
    }
    result.cases.push_back(std::move(t.verdict));
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
