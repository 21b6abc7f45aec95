// SPDX-License-Identifier: Apache-2.0
#include "harness/night/why.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <tuple>

#include "harness/base/notes.h"
#include "harness/base/subprocess.h"
#include "harness/campaign/run_options.h"
#include "harness/store/row_profiles.h"

namespace moegate {
namespace {

/// A row as the side itself calls it.
RowName own_name(const WhySide& side, const CaseId& shown) {
  return {shown.key, side.variant.empty() ? shown.variant : side.variant};
}

/// The side's cases with these rows and no others, in the order of the rows.
std::vector<PlannedCase> only_these(const WhySide& side, std::span<CaseVerdict* const> rows) {
  std::vector<PlannedCase> cases;
  for (const CaseVerdict* row : rows) {
    const auto [key, variant] = own_name(side, row->id);
    for (const PlannedCase& planned : side.plan.cases) {
      if (planned.spec.key() != key || std::ranges::count(planned.variants, variant) == 0) continue;
      cases.push_back({planned.spec, {variant}});
      break;
    }
  }
  return cases;
}

/// Counts rows of one side in one process and stores them. Throws Error where no process can.
void count_rows(Store& store, const WhySide& side, std::span<CaseVerdict* const> rows,
                const Deadline& deadline, WorkerSource& source) {
  RunOptions options = side.options;
  options.worker.task = Task::counters;
  options.deadline = deadline;
  constexpr double kLeast = 1;
  options.case_timeout_s = std::max(kLeast, std::min(options.case_timeout_s, deadline.left()));
  options.row_share_s = 0;  // the deadline is nearer
  options.label = fmt::format("why of run {}", side.run);
  options.tags[kWhyTag] = std::to_string(side.run);
  // One GPU counts for both sides: a profiler beside another is nothing to rely on.
  options.worker.device = devices_of(options.worker.device)[0];
  Lanes lanes(source, options.worker);
  Plan plan{lanes.seat(0).worker().hello(), only_these(side, rows)};
  if (plan.cases.empty()) return;
  Progress progress(plan.rows().size());
  Recording recording(store, {std::move(options), std::move(lanes), std::move(plan)});
  recording.begin(0);
  recording.round(0, std::nullopt, progress);
  recording.finish(InterruptGuard::interrupted());
}

bool is_asked(const CaseVerdict& v, WhyMode mode) {
  if (mode == WhyMode::all) return true;
  if (!v.latency) return false;
  return v.outcome == Outcome::regressed || v.outcome == Outcome::waived ||
         v.outcome == Outcome::improved;
}

/// Those to ask about, failures first, the greatest effects first among equals.
std::vector<CaseVerdict*> asked_rows(GateResult& result, WhyMode mode) {
  std::vector<CaseVerdict*> rows;
  for (CaseVerdict& v : result.cases) {
    if (is_asked(v, mode)) rows.push_back(&v);
  }
  const auto place = [](const CaseVerdict* v) {
    const int rank = v->outcome == Outcome::regressed ? 0 : v->outcome == Outcome::waived ? 1 : 2;
    return std::pair(rank, -std::abs(effect_of(*v).share));
  };
  std::ranges::stable_sort(rows, {}, place);
  if (mode == WhyMode::automatic && rows.size() > kMostCauses) rows.resize(kMostCauses);
  return rows;
}

/// Counts the rows by one process of each side in turn; a clause says why not, or is empty.
std::string count_both(Store& store, const Compared& compared,
                       const std::vector<CaseVerdict*>& rows, const Deadline& deadline,
                       WorkerSource& source) {
  // A process takes some seconds to start, and a row some forty passes.
  constexpr double kStart = 5, kRow = 3;
  const size_t fit = deadline.within(deadline.left() - 2 * kStart).affords(rows.size(), 2 * kRow);
  if (fit == 0) return "there was no time left";
  const std::span worst(rows.data(), fit);
  say("counting what both sides did: {} rows\n", fit);
  try {
    count_rows(store, compared.base, worst, deadline.within(deadline.left() / 2), source);
    if (InterruptGuard::interrupted()) return "it was interrupted";
    count_rows(store, compared.head, worst, deadline, source);
  } catch (const Error& error) {
    if (error.code() == Exit::store) throw;
    return error.what();
  }
  if (InterruptGuard::interrupted()) return "it was interrupted";
  if (fit < rows.size()) {
    return fmt::format("there was time for {} of {} rows", fit, rows.size());
  }
  return "";
}

/// From what is stored now.
void explain_rows(Store& store, const Compared& compared, const std::vector<CaseVerdict*>& rows,
                  bool say_unknown) {
  std::set<std::string> keys;
  for (const CaseVerdict* v : rows) keys.insert(v->id.key);
  const CaseFilter asked = [&](const std::string& key) { return keys.contains(key); };
  const RowProfiles base = read_row_profiles(store, compared.base.run, asked);
  const RowProfiles head = read_row_profiles(store, compared.head.run, asked);
  for (CaseVerdict* v : rows) {
    const auto before = base.find(own_name(compared.base, v->id));
    const auto after = head.find(own_name(compared.head, v->id));
    if (before == base.end() || after == head.end()) continue;
    Cause cause = explain(before->second, after->second, effect_of(*v));
    if (cause.kind != CauseKind::unknown || say_unknown) v->cause = std::move(cause);
  }
}

/// Rows that differ by stored numbers alone: there is no program of the base to count with.
void note_not_compared(const std::vector<Compared>& compared, GateResult& result) {
  const auto is_compared = [&](const CaseVerdict& v) {
    return std::ranges::any_of(compared, [&](const Compared& one) {
      return one.rows.contains({v.id.key, v.id.variant});
    });
  };
  const auto rows = std::ranges::count_if(result.cases, [&](const CaseVerdict& v) {
    return is_asked(v, WhyMode::automatic) && !is_compared(v);
  });
  if (rows == 0) return;
  result.notes.push_back(fmt::format(
      "Nobody counted why {} rows differ: stored numbers judged them, without a replay.", rows));
}

}  // namespace

WhyMode parse_why(const std::string& name) {
  if (name == "auto") return WhyMode::automatic;
  if (name == "off") return WhyMode::off;
  if (name == "all") return WhyMode::all;
  usage_error("--why '{}'; use auto, off or all", name);
}

Compared keep_for_why(const PreparedAb& prepared) {
  Compared compared;
  compared.base = {prepared.base.options, prepared.base.plan};
  compared.head = {prepared.head.options, prepared.head.plan};
  return compared;
}

void complete_for_why(Compared& compared, const Comparison& comparison) {
  compared.base.run = comparison.base_run;
  compared.head.run = comparison.head_run;
  if (comparison.pair) {
    std::tie(compared.base.variant, compared.head.variant) = *comparison.pair;
  }
  for (const auto& [id, side] : comparison.head) {
    if (comparison.base.contains(id)) compared.rows.insert({id.key, id.variant});
  }
}

void add_causes(Store& store, const std::vector<Compared>& compared, WhyMode mode, Backend backend,
                const Deadline& deadline, GateResult& result, WorkerSource& source) {
  if (mode == WhyMode::off) return;
  const bool gpu = backend == Backend::cuda;
  if (mode == WhyMode::automatic && !gpu) return;
  const InterruptGuard guard;
  const Deadline until = mode == WhyMode::all ? deadline : deadline.within(kWhySeconds);
  const std::vector<CaseVerdict*> asked = asked_rows(result, mode);
  for (const Compared& one : compared) {
    std::vector<CaseVerdict*> rows;
    for (CaseVerdict* v : asked) {
      if (one.rows.contains({v->id.key, v->id.variant})) rows.push_back(v);
    }
    if (rows.empty()) continue;
    const std::string unable = gpu ? count_both(store, one, rows, until, source) : "";
    if (!unable.empty()) {
      result.notes.push_back(fmt::format("Some causes are unknown: {}.", unable));
    }
    explain_rows(store, one, rows, mode == WhyMode::all || unable.empty());
  }
  note_not_compared(compared, result);
}

}  // namespace moegate
