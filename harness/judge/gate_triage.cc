// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/gate_triage.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "harness/base/stats.h"
#include "harness/judge/ratchet.h"

namespace moegate {
namespace {

/// A status that this policy does not know fails like a crash.
bool is_broken(Status s) {
  return s != Status::ok && s != Status::noisy && s != Status::wrong && s != Status::unsupported;
}

std::string what_happened(const Side& side) {
  std::string text =
      fmt::format("{} in {} of {} processes", name_of(side.status), side.affected, side.processes);
  return side.why.empty() ? text : text + ": " + side.why;
}

std::string why_by_time(const Look& l) {
  if (l.are_yardsticks()) return "a yardstick, judged by its own time";
  const auto known = [](const std::string& yardstick) {
    return yardstick.empty() ? "of unknown code" : yardstick;
  };
  return fmt::format("judged by its own time: its yardstick is {}, the base's {}",
                     known(l.head.yardstick), known(l.base->yardstick));
}

std::string why_other(const Look& l) {
  return fmt::format("not comparable: its operator has other {} than the base's", l.other);
}

/// A row that no line of the triage is about has Outcome::pass until its latency is judged.
struct Line {
  bool (*holds)(const Look&);
  Outcome outcome;
  std::string (*why)(const Look&);
};

/// What a row comes to before, or without, its latency: the first line that holds. The order is
/// the policy.
constexpr Line kTriage[] = {
    {[](const Look& l) { return l.head.status == Status::wrong; }, Outcome::wrong,
     [](const Look& l) { return what_happened(l.head); }},
    {[](const Look& l) { return is_broken(l.head.status); }, Outcome::missing,
     [](const Look& l) { return what_happened(l.head); }},
    {[](const Look& l) { return l.silent() && !l.other.empty(); }, Outcome::environment, why_other},
    {[](const Look& l) { return l.silent() && !l.worse.empty(); }, Outcome::wrong,
     [](const Look& l) { return l.worse; }},
    {[](const Look& l) { return l.silent() && l.identical(); }, Outcome::identical,
     [](const Look&) { return std::string(kIdentical); }},
    {[](const Look& l) { return l.head.never_quiet(); }, Outcome::inconclusive,
     [](const Look& l) { return what_happened(l.head); }},
    {[](const Look& l) { return !l.head.measured(); }, Outcome::missing,
     [](const Look& l) { return "has no latency any more: " + what_happened(l.head); }},
    {[](const Look& l) { return l.impossible(); }, Outcome::wrong,
     [](const Look& l) {
       return fmt::format(
           "faster than the device's ceilings allow in {} of {} processes: is its work done, and "
           "cold? If the ceilings are wrong, run `moegate doctor --db` on the idle device",
           l.head.impossible, l.head.level.n);
     }},
    {[](const Look& l) { return l.base == nullptr; }, Outcome::fresh,
     [](const Look& l) {
       return std::string(l.against.empty() ? "no baseline" : "nothing to compare with there");
     }},
    {[](const Look& l) { return !l.comparable(); }, Outcome::environment,
     [](const Look& l) {
       return fmt::format("timed by '{}', the baseline by '{}': not comparable", l.head.timer,
                          l.base->timer);
     }},
    {[](const Look& l) { return !l.other.empty(); }, Outcome::environment, why_other},
    {[](const Look& l) { return !l.worse.empty(); }, Outcome::wrong,
     [](const Look& l) { return l.worse; }},
    {[](const Look& l) { return l.warm(); }, Outcome::environment,
     [](const Look&) { return std::string("as fast cold as warm, which the base is not"); }},
    {[](const Look& l) { return l.identical(); }, Outcome::identical,
     [](const Look&) { return std::string(kIdentical); }},
    {[](const Look& l) { return l.disturbed(); }, Outcome::inconclusive,
     [](const Look& l) { return what_happened(l.head.disturbed ? l.head : *l.base); }},
    {[](const Look& l) { return l.same_yardsticks(); }, Outcome::identical,
     [](const Look&) { return std::string(kIdentical); }},
    {[](const Look& l) { return l.by_time(); }, Outcome::inconclusive, why_by_time},
    {[](const Look& l) { return bit_identical(*l.base, l.head); }, Outcome::pass,
     [](const Look&) { return std::string("output bit-identical"); }},
};

/// Microseconds, or a ratio; 0: unknown.
double shown(const Side& side, bool time) {
  if (!time) return side.level.level();
  std::vector<double> times;
  for (const auto& [round, us] : side.times) times.push_back(us);
  return times.empty() ? 0 : geometric_mean(times);
}

}  // namespace

bool expected_by_nobody(const Look& l) {
  return !l.base && l.head.status == Status::unsupported;
}

bool is_judged(const Look& l) {
  return l.comparable() && l.other.empty() && !l.identical() && !l.disturbed() && !l.impossible() &&
         !l.warm();
}

CaseVerdict triage(const CaseId& id, const Look& look) {
  CaseVerdict v;
  v.id = id;
  v.against = look.against;
  v.by_time = look.comparable() && look.by_time();
  v.yardstick = look.head.judged == Judged::is_yardstick;
  v.same_code = look.base && same_code(*look.base, look.head);
  v.base = look.base ? shown(*look.base, v.by_time) : 0;
  v.head = shown(look.head, v.by_time);
  v.status = look.head.status;
  v.drift = look.other.empty() && !look.worse.empty();
  const auto line = std::find_if(std::begin(kTriage), std::end(kTriage),
                                 [&](const Line& l) { return l.holds(look); });
  if (line == std::end(kTriage)) return v;
  v.outcome = line->outcome;
  v.why = line->why(look);
  return v;
}

}  // namespace moegate
