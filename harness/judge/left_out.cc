// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/left_out.h"

#include <fmt/format.h>

namespace moegate {
namespace {

/// What its outputs say stays: only its latency is open.
bool stays(const CaseVerdict& v) {
  return v.outcome == Outcome::wrong || v.outcome == Outcome::environment;
}

/// No replay would find that it is not slower.
bool is_beyond_noise(const CaseVerdict& v, const Limits& limits) {
  return v.outcome == Outcome::regressed && v.latency && v.latency->low > 2 * limits.blind_at;
}

constexpr const char* kNotMeasured = "left out: the time was up before it was measured";

/// Without having been measured.
void call_identical(CaseVerdict& v, const Expectation& expected) {
  v.same_code = true;
  v.yardstick = expected.sides.at(v.id).judged == Judged::is_yardstick;
  find(v, Rule::known_identical,
       "not measured: the base's program, whose variant launched what the base's did elsewhere");
}

CaseVerdict nobodys(const CaseId& id, const std::string& against) {
  CaseVerdict v;
  v.id = id;
  v.against = against;
  find(v, Rule::stalled,
       std::string(kNotMeasured) +
           ", the candidate lacks it, and it did not grow: give the night a larger --budget");
  return v;
}

}  // namespace

bool is_known_by_program(const CaseId& id, const Sides& head, const Expectation& expected) {
  const auto base = expected.sides.find(id);
  if (!expected.same_program || base == expected.sides.end() || base->second.code.empty()) {
    return false;
  }
  const auto op_of = [](const std::string& key) { return key.substr(0, key.find('/')); };
  bool seen = false;
  for (const auto& [other, side] : head) {
    if (other.suite != id.suite || other.variant != id.variant || side.processes == 0 ||
        op_of(other.key) != op_of(id.key)) {
      continue;
    }
    const auto its_base = expected.sides.find(other);
    if (its_base == expected.sides.end()) continue;
    if (!same_code(its_base->second, side)) return false;
    seen = seen || side.code == base->second.code;
  }
  return seen;
}

void leave_open(GateResult& result, const Sides& head,
                const std::map<std::string, Expectation>& expected, const Replayed& replayed,
                const Limits& limits) {
  const Expectation none;
  const auto expected_of = [&](const CaseId& id) -> const Expectation& {
    const auto suite = expected.find(id.suite);
    return suite == expected.end() ? none : suite->second;
  };
  std::set<CaseId, CaseIdLess> unheard = replayed.left_out;
  std::set<CaseId, CaseIdLess> known;
  for (CaseVerdict& v : result.cases) {
    if (unheard.erase(v.id) == 0) continue;
    if (!head.contains(v.id) && !stays(v) && is_known_by_program(v.id, head, expected_of(v.id))) {
      call_identical(v, expected_of(v.id));
      known.insert(v.id);
      continue;
    }
    if (is_beyond_noise(v, limits)) {
      result.more_s += replayed.replaying_s;
      continue;
    }
    if (stays(v)) {
      find(v, Rule::left_open, v.why);
    } else if (!head.contains(v.id)) {
      find(v, Rule::not_measured, kNotMeasured);
      result.more_s += replayed.measuring_s;
    } else {
      find(v, Rule::left_open, "left out: the time was up before it was replayed; " + v.why);
      result.more_s += replayed.replaying_s;
    }
  }
  for (const CaseId& id : unheard) {
    result.more_s += replayed.measuring_s;
    const Expectation& e = expected_of(id);
    if (e.stalled) result.cases.push_back(nobodys(id, e.against));
  }
  for (const CaseId& id : replayed.left_out) {
    if (!known.contains(id)) result.left_out.push_back(id.key + " " + id.variant);
  }
  if (!known.empty()) {
    result.notes.push_back(fmt::format(
        "{} rows were not measured for want of time and are identical all the same: the program is "
        "the baseline's, and their variants launched what the baseline's did in the rows that were "
        "measured.",
        known.size()));
  }
}

}  // namespace moegate
