// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/rules.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "harness/judge/look.h"
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

std::string of_head(const Look& l) {
  return what_happened(l.head);
}

std::string why_identical(const Look&) {
  return kIdentical;
}

std::string why_by_time(const Look& l) {
  if (l.are_yardsticks()) return "a yardstick, judged by its own time";
  const auto known = [](const std::string& yardstick) {
    return yardstick.empty() ? "of unknown code" : yardstick;
  };
  return fmt::format("judged by its own time: its yardstick is {}, the base's {}",
                     known(l.head.yardstick), known(l.base->yardstick));
}

/// With a number all the same.
std::string why_disturbed(const Look& l) {
  const std::string what = what_happened(l.head.disturbed ? l.head : *l.base);
  if (l.head.level.n == 0 || l.base->level.n == 0) return what;
  return uncertain(std::expm1(l.head.level.mean_log - l.base->level.mean_log)) + ": " + what;
}

std::string why_impossible(const Look& l) {
  return fmt::format(
      "faster than the device's ceilings allow in {} of {} processes: is its work done, and "
      "cold? If the ceilings are wrong, run `moegate doctor --db` on the idle device",
      l.head.impossible, l.head.level.n);
}

struct Row {
  Rule rule;
  Outcome outcome;
  /// What the sides of a row say by themselves. All else is found over the rows of a run: find().
  bool (*holds)(const Look&) = nullptr;
  std::string (*why)(const Look&) = nullptr;
};

constexpr std::array<Row, kRuleCount> kRules = {{
    {Rule::waived, Outcome::waived},
    {Rule::nothing_timed, Outcome::environment},
    {Rule::wrong_output, Outcome::wrong,
     [](const Look& l) { return l.head.status == Status::wrong; }, of_head},
    {Rule::broken, Outcome::missing, [](const Look& l) { return is_broken(l.head.status); },
     of_head},
    {Rule::no_latency, Outcome::missing,
     [](const Look& l) { return !l.head.measured() && !l.head.never_quiet(); },
     [](const Look& l) { return "has no latency any more: " + what_happened(l.head); }},
    {Rule::impossible, Outcome::wrong,
     [](const Look& l) { return l.head.measured() && l.impossible(); }, why_impossible},
    {Rule::fresh, Outcome::fresh,
     [](const Look& l) { return l.base == nullptr && !l.head.never_quiet(); },
     [](const Look& l) {
       return std::string(l.against.empty() ? "no baseline" : "nothing to compare with there");
     }},
    {Rule::other_timer, Outcome::environment,
     [](const Look& l) { return l.base && l.head.measured() && !l.comparable(); },
     [](const Look& l) {
       return fmt::format("timed by '{}', the baseline by '{}': not comparable", l.head.timer,
                          l.base->timer);
     }},
    {Rule::other_question, Outcome::environment, [](const Look& l) { return !l.other.empty(); },
     [](const Look& l) { return fmt::format("not comparable: {} than the base's", l.other); }},
    {Rule::worse_output, Outcome::wrong, [](const Look& l) { return !l.worse.empty(); },
     [](const Look& l) { return l.worse; }},
    {Rule::as_warm, Outcome::environment, [](const Look& l) { return l.comparable() && l.warm(); },
     [](const Look&) { return std::string("as fast cold as warm, which the base is not"); }},
    {Rule::other_device, Outcome::environment},
    {Rule::known_identical, Outcome::identical},
    {Rule::stalled, Outcome::missing},
    {Rule::not_measured, Outcome::missing},
    {Rule::lacking, Outcome::missing},
    {Rule::absent, Outcome::missing},
    {Rule::crept, Outcome::regressed},
    {Rule::far_slower, Outcome::regressed},
    {Rule::left_open, Outcome::inconclusive},
    {Rule::slow_to_enqueue, Outcome::regressed},
    {Rule::noisier, Outcome::regressed},
    {Rule::identical_but_off, Outcome::inconclusive},
    {Rule::identical, Outcome::identical,
     [](const Look& l) { return (l.comparable() || l.silent()) && l.identical(); }, why_identical},
    {Rule::slower, Outcome::regressed},
    {Rule::replay_decides, Outcome::inconclusive},
    {Rule::faster, Outcome::improved},
    {Rule::uncertain, Outcome::inconclusive},
    {Rule::not_slower, Outcome::pass},
    {Rule::disturbed, Outcome::inconclusive,
     [](const Look& l) { return l.comparable() && l.disturbed(); }, why_disturbed},
    {Rule::same_yardstick, Outcome::identical,
     [](const Look& l) {
       return l.comparable() && l.are_yardsticks() && same_code(*l.base, l.head);
     },
     why_identical},
    {Rule::never_quiet, Outcome::inconclusive, [](const Look& l) { return l.head.never_quiet(); },
     of_head},
    {Rule::by_own_time, Outcome::inconclusive,
     [](const Look& l) { return l.comparable() && l.by_time(); }, why_by_time},
    {Rule::same_outputs, Outcome::pass,
     [](const Look& l) { return l.comparable() && bit_identical(*l.base, l.head); },
     [](const Look&) { return std::string("output bit-identical"); }},
}};

constexpr bool are_in_order() {
  for (size_t i = 0; i < kRuleCount; ++i) {
    if (static_cast<size_t>(kRules[i].rule) != i) return false;
  }
  return true;
}
static_assert(are_in_order(), "kRules has a row for each Rule, in their order");

/// Microseconds, or a ratio; 0: unknown.
double shown(const Side& side, bool time) {
  return (time ? evidence_of(side.times) : side.level).level();
}

}  // namespace

Outcome outcome_of(const Found& found) {
  for (const Row& row : kRules) {
    if (found.test(static_cast<size_t>(row.rule))) return row.outcome;
  }
  return Outcome::pass;
}

Rule rule_of(const Judgement& latency) {
  if (latency.outcome == Outcome::regressed) return Rule::slower;
  if (latency.outcome == Outcome::improved) return Rule::faster;
  return latency.outcome == Outcome::pass ? Rule::not_slower : Rule::uncertain;
}

void find(CaseVerdict& v, Rule rule, std::string why) {
  v.found.set(static_cast<size_t>(rule));
  v.outcome = outcome_of(v.found);
  v.why = std::move(why);
}

CaseVerdict look_at(const CaseId& id, const Look& look) {
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
  for (const Row& row : kRules) {
    if (row.holds == nullptr || !row.holds(look)) continue;
    find(v, row.rule, row.why(look));  // what stands behind it in the list decides nothing
    break;
  }
  return v;
}

}  // namespace moegate
