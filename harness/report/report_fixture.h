// SPDX-License-Identifier: Apache-2.0
// What the tests of reports share: verdicts and a report that holds them.
#pragma once

#include <string>
#include <vector>

#include "harness/report/gate_report.h"
#include "harness/report/page_markdown.h"

namespace moegate {

inline CaseVerdict verdict(Outcome outcome, const std::string& variant, double effect = 0) {
  CaseVerdict v;
  v.id = {"nightly", "topk_sort/experts=128,tokens=8", variant};
  v.against = "baselines/nightly.tsv";
  v.outcome = outcome;
  v.why = std::string(name_of(outcome)) + " because";
  v.base = 10;
  v.head = 10 * (1 + effect);
  if (effect != 0) {
    v.stage = 1;
    v.latency = Judgement{};
    v.latency->outcome = outcome;
    v.latency->effect = effect;
    v.latency->low = effect - 0.01;
    v.latency->high = effect + 0.01;
    v.latency->p_adjusted = 0.001;
  }
  return v;
}

inline GateReport report_on(std::vector<CaseVerdict> cases) {
  GateReport report;
  report.result.cases = std::move(cases);
  count_outcomes(report.result);
  report.limits = Limits::cuda();
  report.exit = Exit::latency;
  report.run.device = {Backend::cuda, "NVIDIA H200", "nvidia-h200", "GPU-1"};
  report.run.git_sha = "abc123";
  report.next = "moegate bless --run 1 --reason '...'";
  return report;
}

inline std::string comment(const GateReport& report) {
  return to_markdown(gate_page(report), kCommentBytes);
}

inline size_t count(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at) ++n;
  return n;
}

}  // namespace moegate
