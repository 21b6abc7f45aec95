// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/comparison.h"

#include <cmath>

namespace moegate {
namespace {

std::map<std::string, Expectation> expectations(const RunInfo& base, const RunInfo& head,
                                                Sides sides, const Sides& head_sides) {
  const bool other_device = !same_device(base.device.uuid, head.device.uuid);
  const std::string note = other_device ? "measured on another device: " + base.device.uuid : "";
  const Expectation of_a_suite{describe(base), note, other_device, {}};
  std::map<std::string, Expectation> expected;
  for (const auto& [id, side] : head_sides) expected.try_emplace(id.suite, of_a_suite);
  while (!sides.empty()) {
    Sides& rows = expected.try_emplace(sides.begin()->first.suite, of_a_suite).first->second.sides;
    rows.insert(rows.end(), sides.extract(sides.begin()));
  }
  return expected;
}

/// Rows that one of two runs measured and the other has not come to.
void leave_out_lacking(const Sides& sides, const Sides& other,
                       std::set<CaseId, CaseIdLess>& left_out) {
  InOrder there(other);
  for (const auto& [id, side] : sides) {
    if (side.measured() && !there.find_or_null(id)) left_out.insert(left_out.end(), id);
  }
}

}  // namespace

std::string against_commit(const RunInfo& base) {
  return describe(base) + " at " + (base.git_sha.empty() ? "unknown" : base.git_sha);
}

bool is_of_a_run(const std::string& against) {
  constexpr std::string_view kRun = "run ";  // as describe() begins
  return against.starts_with(kRun) && against.size() > kRun.size() && against[kRun.size()] >= '0' &&
         against[kRun.size()] <= '9';
}

GateResult judge_runs(const RunInfo& base, const RunInfo& head, Sides base_sides,
                      const Sides& head_sides, const Limits& limits) {
  const bool host = head.device.backend == Backend::host;
  // With the same options they set out to measure the same cases, whatever part of a suite that is.
  const bool same_cases = head.status == "complete" && base.options == head.options;
  Setting setting{limits, host, is_partial(head) && !same_cases};
  setting.trust_code = false;
  Replayed nothing;
  if (head.status != "complete") {
    nothing.interrupted = true;
    leave_out_lacking(base_sides, head_sides, nothing.left_out);
    if (base.status != "complete") {  // an A/B's sides end together
      leave_out_lacking(head_sides, base_sides, nothing.left_out);
    }
  }
  return judge(head_sides, expectations(base, head, std::move(base_sides), head_sides), setting,
               nothing);
}

PairedQuestion pair_rounds(const Side& base, const Side& head, int first, int last) {
  PairedQuestion q;
  q.tick = head.tick;
  const Quantity quantity = compared(base, head);
  const auto& before = base.rounds(quantity);
  const auto& means = head.mean_rounds(quantity);
  const auto& means_before = base.mean_rounds(quantity);
  for (const auto& [round, level] : head.rounds(quantity)) {
    const double* other = find_or_null(before, round);
    if (round < first || round >= last || !other) continue;
    q.log_ratios.push_back(std::log(level / *other));
    q.base_logs.push_back(std::log(*other));
    q.head_logs.push_back(std::log(level));
    const double *mean = find_or_null(means, round),
                 *mean_before = find_or_null(means_before, round);
    if (mean && mean_before) q.mean_log_ratios.push_back(std::log(*mean / *mean_before));
  }
  return q;
}

}  // namespace moegate
