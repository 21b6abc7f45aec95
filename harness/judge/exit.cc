// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/exit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "harness/base/notes.h"
#include "harness/base/text.h"
#include "harness/judge/gate.h"

namespace moegate {
namespace {

constexpr std::array kGravestFirst = {
    Exit::interrupted,  Exit::store,       Exit::internal, Exit::usage,    Exit::environment,
    Exit::both,         Exit::accuracy,    Exit::latency,  Exit::coverage, Exit::waiver,
    Exit::inconclusive, Exit::no_baseline, Exit::ok};

bool slower(const GateResult& result) {
  return std::ranges::any_of(result.cases, [](const CaseVerdict& v) {
    return v.outcome != Outcome::waived && is_slower(v);
  });
}

/// With a smaller share of its rows decided, a verdict says nothing of the whole.
constexpr double kFewestDecided = 0.5;

/// No suite has a baseline, a candidate or a base run.
bool lacks_everything(const GateResult& result) {
  return std::ranges::all_of(result.suites, [](const auto& s) { return s.second.against.empty(); });
}

bool is_compared(const CaseVerdict& v) {
  if (v.outcome == Outcome::identical) return !v.yardstick;
  if (v.outcome == Outcome::wrong || v.outcome == Outcome::waived) return true;
  return v.latency && v.outcome != Outcome::inconclusive;
}

bool is_in_doubt(const CaseVerdict& v) {
  return v.outcome == Outcome::inconclusive || v.outcome == Outcome::environment ||
         v.outcome == Outcome::missing;
}

/// New rows of a suite without any baseline are open only beside nothing that was compared.
bool is_open(const CaseVerdict& v) {
  return is_in_doubt(v) || (v.outcome == Outcome::fresh && !v.against.empty());
}

/// Whether too few were decided beside those that are open.
bool too_few(const GateResult& result, bool (*open)(const CaseVerdict&)) {
  if (lacks_everything(result)) return false;
  const auto decided = std::ranges::count_if(result.cases, is_compared);
  const auto all = decided + std::ranges::count_if(result.cases, open);
  return static_cast<double>(decided) < kFewestDecided * static_cast<double>(all);
}

std::string first_word(const GateResult& result, Exit exit) {
  if (result.interrupted) return fmt::format("INTERRUPTED (exit {})", static_cast<int>(exit));
  if (exit != Exit::ok) return fmt::format("FAIL (exit {})", static_cast<int>(exit));
  if (lacks_everything(result)) return "NO BASELINE";
  return undecided(result) ? "UNDECIDED" : "PASS";
}

}  // namespace

Exit gravest(std::initializer_list<Exit> due) {
  const auto is_due = [&](Exit e) { return std::find(due.begin(), due.end(), e) != due.end(); };
  const Exit worst = *std::find_if(kGravestFirst.begin(), kGravestFirst.end() - 1, is_due);
  return worst == Exit::accuracy && is_due(Exit::latency) ? Exit::both : worst;
}

bool can_be_judged(Exit run) {
  return run == Exit::ok || run == Exit::accuracy || run == Exit::coverage;
}

Exit night_exit(const NightExits& exits) {
  const Exit last = exits.gate.value_or(exits.run);
  return gravest({exits.verify, exits.controls, exits.canaries, last});
}

bool undecided(const GateResult& result) {
  return too_few(result, is_open);
}

FailOn parse_fail_on(const std::string& list) {
  FailOn f{false, false, false, false};
  const std::map<std::string, bool*> names = {
      {"latency", &f.latency},         {"accuracy", &f.accuracy},         {"coverage", &f.coverage},
      {"environment", &f.environment}, {"inconclusive", &f.inconclusive}, {"changed", &f.changed}};
  for (const std::string& name : split_list(list)) {
    const auto it = names.find(name);
    if (it == names.end()) {
      usage_error(
          "--fail-on '{}' is unknown; use latency, accuracy, coverage, environment, changed, "
          "inconclusive",
          name);
    }
    *it->second = true;
  }
  return f;
}

Exit decide_exit(const GateResult& result, const FailOn& fail_on, bool lacks_baseline) {
  const bool wrong = std::ranges::any_of(result.cases, [&](const CaseVerdict& v) {
    return v.outcome == Outcome::wrong && (fail_on.accuracy || !v.drift);
  });
  const bool uncovered =
      result.cases.empty() || result.count(Outcome::missing) > 0 || !result.absent_shards.empty();
  const bool open =
      result.count(Outcome::inconclusive) > 0 || result.not_judged > 0 || undecided(result);
  const bool changed = std::ranges::any_of(result.cases, [](const CaseVerdict& v) {
    return v.outcome == Outcome::inconclusive && (!v.same_code || v.off);
  });
  const auto due = [](Exit exit, bool holds) { return holds ? exit : Exit::ok; };
  return gravest({
      due(Exit::interrupted, result.interrupted),
      due(Exit::environment, fail_on.environment && (result.count(Outcome::environment) > 0 ||
                                                     !result.unable.empty())),
      due(Exit::accuracy, wrong),
      due(Exit::latency, fail_on.latency && slower(result)),
      due(Exit::coverage, fail_on.coverage && uncovered),
      due(Exit::waiver, !result.waiver_problems.empty()),
      due(Exit::inconclusive, (fail_on.inconclusive && open) || (fail_on.changed && changed) ||
                                  (fail_on.undecided && too_few(result, is_in_doubt))),
      due(Exit::no_baseline, lacks_baseline),
  });
}

std::string sentence(const GateResult& result, Exit exit) {
  std::string counts;
  for (const Outcome o :
       {Outcome::regressed, Outcome::wrong, Outcome::missing, Outcome::environment, Outcome::waived,
        Outcome::improved, Outcome::inconclusive, Outcome::fresh, Outcome::identical,
        Outcome::pass}) {
    const int n = result.count(o);
    const int not_judged = o == Outcome::fresh ? result.not_judged : 0;
    const auto add = [&](int rows, const char* remark) {
      counts += fmt::format("{}{} {}{}", counts.empty() ? "" : ", ", rows, name_of(o), remark);
    };
    if (not_judged > 0) add(not_judged, " (not judged)");
    // Inconclusive is said even when it is none: it must never hide behind "pass".
    if (n > not_judged || o == Outcome::inconclusive) add(n - not_judged, "");
  }
  std::string text =
      fmt::format("{}: {}{}{} of {}", first_word(result, exit), result.unable,
                  result.unable.empty() ? "" : "; ", counts, count_of(result.cases.size(), "row"));
  if (result.judged > 0) text += fmt::format("; median change {}", percent(result.median_change));
  if (result.blind > 0) text += fmt::format("; {} blind", result.blind);
  if (result.not_run > 0) text += fmt::format("; {} of the baseline not run", result.not_run);
  if (!result.left_out.empty()) {
    text += fmt::format("; {} {}", result.left_out.size(),
                        result.interrupted ? "not judged" : "left out for want of time");
    if (result.more_s > 0) text += fmt::format(" (about {} more)", duration_text(result.more_s));
  }
  for (const AbsentShard& absent : result.absent_shards) {
    text += fmt::format("; shard {} of {} absent", absent.shard, absent.shards);
  }
  if (result.unsupported > 0) text += fmt::format("; {} unsupported", result.unsupported);
  return text;
}

}  // namespace moegate
