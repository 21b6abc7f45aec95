// SPDX-License-Identifier: Apache-2.0
// What waivers do to a verdict; the other half of waivers.h.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "harness/baseline/waivers.h"

namespace moegate {
namespace {

using std::chrono::sys_days;
using Metric = Waiver::Metric;

constexpr double kWaivedShare = 0.02;  // of a suite's rows, and of a run's that one may match

int waivable(size_t rows) {
  return std::max(1, static_cast<int>(kWaivedShare * static_cast<double>(rows)));
}

/// What is wrong with a case that a waiver could waive. One whose output is wrong has nothing of that kind.
std::vector<Metric> failures_of(const CaseVerdict& v) {
  std::vector<Metric> failures;
  if (v.outcome == Outcome::wrong && !v.drift) return {};
  if (v.outcome == Outcome::wrong) failures.push_back(Metric::accuracy);
  if (v.outcome == Outcome::missing) failures.push_back(Metric::coverage);
  if (is_slower(v)) failures.push_back(Metric::latency);
  return failures;
}

bool matches(const Waiver& w, const CaseVerdict& v) {
  return w.cases.matches(v.id.key) && w.variant.matches(v.id.variant);
}

/// How much slower the case is, than the baseline or than its anchor.
double loss(const CaseVerdict& v) {
  return std::max(v.latency ? v.latency->effect : 0, v.creep);
}

/// Waivers that hold for a run, and what they were used for.
struct Active {
  const Waiver* waiver;
  bool valid = true;  // false: waives nothing
  int matched = 0, failing = 0, waived = 0;
};

/// The waiver of one failure of a case. One that matches but is exceeded is told in the reason.
Active* find_waiver(std::vector<Active>& all, Metric metric, CaseVerdict& v) {
  for (Active& a : all) {
    if (!a.valid || a.waiver->metric != metric || !matches(*a.waiver, v)) continue;
    if (metric != Metric::latency || loss(v) <= a.waiver->max_regression) return &a;
    v.why += fmt::format("; beyond the {:.3g} % of waiver {}", 100 * a.waiver->max_regression,
                         a.waiver->id);
  }
  return nullptr;
}

/// All of its failures are waived, or none is: half a waiver would hide the other half.
void waive(std::vector<Active>& all, CaseVerdict& v) {
  std::vector<Active*> used;
  for (const Metric metric : failures_of(v)) {
    Active* a = find_waiver(all, metric, v);
    if (a == nullptr) return;
    used.push_back(a);
  }
  if (used.empty()) return;
  find(v, Rule::waived, v.why);
  for (Active* a : used) {
    ++a->waived;
    const Waiver& w = *a->waiver;
    v.waiver += (v.waiver.empty() ? "" : ",") + w.id;
    v.why += fmt::format("; waived by {} until {:%F}: {}", w.id, w.expires, w.reason);
  }
}

void refuse_invalid(std::vector<Active>& all, GateResult& result, sys_days day, bool full) {
  const int most = full ? waivable(result.cases.size()) : std::numeric_limits<int>::max();
  for (Active& a : all) {
    const Waiver& w = *a.waiver;
    for (const CaseVerdict& v : result.cases) {
      if (!matches(w, v)) continue;
      ++a.matched;
      const auto failures = failures_of(v);
      a.failing += std::count(failures.begin(), failures.end(), w.metric) > 0;
    }
    if (day > w.expires) {
      result.waiver_problems.push_back(fmt::format(
          "waiver {} of {} expired on {:%F}; {}", w.id, w.owner, w.expires,
          a.failing > 0 ? fmt::format("{} row(s) still fail: fix them ({})", a.failing, w.issue)
                        : "delete it"));
    } else if (a.matched > w.max_cases) {
      result.waiver_problems.push_back(
          fmt::format("waiver {} matches {} rows, its max_cases is {}, so it waives nothing; "
                      "narrow cases or variant",
                      w.id, a.matched, w.max_cases));
    } else if (a.matched > most) {
      result.waiver_problems.push_back(
          fmt::format("waiver {} matches {} of {} rows, more than {:g} %, so it waives nothing; "
                      "narrow cases or variant",
                      w.id, a.matched, result.cases.size(), 100 * kWaivedShare));
    } else {
      continue;
    }
    a.valid = false;
  }
}

void limit_share(GateResult& result) {
  std::map<std::string, std::pair<int, int>> suites;  // waived, all
  for (const CaseVerdict& v : result.cases) {
    auto& [waived, all] = suites[v.id.suite];
    waived += v.outcome == Outcome::waived;
    ++all;
  }
  for (const auto& [suite, counts] : suites) {
    const auto [waived, all] = counts;
    if (waived <= waivable(static_cast<size_t>(all))) continue;
    result.waiver_problems.push_back(
        fmt::format("{} of the {} rows of suite '{}' are waived, more than {:g} %: fix some",
                    waived, all, suite, 100 * kWaivedShare));
  }
}

}  // namespace

void apply_waivers(GateResult& result, const std::vector<Waiver>& waivers, const std::string& klass,
                   sys_days day, bool full) {
  std::vector<Active> all;
  for (const Waiver& w : waivers) {
    if (w.klass == klass) all.push_back({&w});
  }
  refuse_invalid(all, result, day, full);
  for (CaseVerdict& v : result.cases) waive(all, v);
  for (const Active& a : all) {
    const Waiver& w = *a.waiver;
    if (a.waived > 0) {
      result.waiver_notes.push_back(fmt::format("{} row(s) waived by {} until {:%F} ({}, {}): {}",
                                                a.waived, w.id, w.expires, w.owner, w.issue,
                                                w.reason));
    } else if (a.valid && full && a.failing == 0) {
      result.waiver_notes.push_back(
          fmt::format("waiver {} was not needed: none of the {} rows that it matches fails; delete "
                      "it once that lasts",
                      w.id, a.matched));
    }
  }
  limit_share(result);
  count_outcomes(result);
}

}  // namespace moegate
