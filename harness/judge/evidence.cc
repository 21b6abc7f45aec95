// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/evidence.h"

#include <algorithm>

#include "harness/base/text.h"

namespace moegate {

bool CaseIdLess::operator()(const CaseId& a, const CaseId& b) const {
  // A gate asks this a million times: no text is copied, and none is looked at twice.
  if (const int suites = NaturalLess::compare(a.suite, b.suite); suites != 0) return suites < 0;
  if (const int keys = NaturalLess::compare(a.key, b.key); keys != 0) return keys < 0;
  return NaturalLess::compare(a.variant, b.variant) < 0;
}

Evidence evidence_of(const ByRound& rounds) {
  std::vector<double> levels;
  for (const auto& [round, level] : rounds) levels.push_back(level);
  return Evidence::of(levels);
}

Quantity compared(const Side& base, const Side& head) {
  const auto of_ratios = [](const Side& side) {
    return side.judged == Judged::ratio || side.judged == Judged::is_yardstick;
  };
  if (!of_ratios(base) && !of_ratios(head)) return Quantity::level;
  const bool yardsticks =
      base.judged == Judged::is_yardstick && head.judged == Judged::is_yardstick;
  const bool same = !head.yardstick.empty() && base.yardstick == head.yardstick;
  return yardsticks || !same ? Quantity::time : Quantity::level;
}

BaselineHeader header_of(const RunInfo& run, const std::string& suite) {
  const bool host = run.device.backend == Backend::host;
  const auto sets = run.tags.find(kSetsTag);
  const std::string fewer = sets == run.tags.end() ? "" : ",sets=" + sets->second;
  return {.klass = run.device.klass,
          .suite = suite,
          .protocol = run.protocol,
          .timer = run.timer,
          .flush = run.flush + fewer,
          .gpu = host ? "-" : uuids_of(run),
          .program = run.program,
          .git_sha = run.dirty ? "" : run.git_sha};
}

}  // namespace moegate
