// SPDX-License-Identifier: Apache-2.0
// What the tests of reports share: verdicts and a report that holds them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/report/gate_report.h"
#include "harness/report/page.h"
#include "harness/store/store.h"

namespace moegate::test {

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

// A stored run that sampled where warps wait, made up.

/// Adds a run to a store: one row whose barrier and load were sampled so often, of 100 samples in
/// a process.
inline int64_t add_stalled_run(const std::string& db, int64_t barrier, int64_t load,
                               const std::string& task = "stalls",
                               const std::string& variant = "fused", int processes = 1) {
  Store store = Store::open(db, Store::Mode::write);
  RunInfo info;
  info.label = "x";
  info.device = {Backend::cuda, "NVIDIA H200", "nvidia-h200", "GPU-1", 132, 60 << 20, 1, 1, "580"};
  info.flush = "read";
  info.task = task;
  const int64_t run = store.begin_run(info);
  for (int round = 0; round < processes; ++round) {
    Result r;
    r.variant = variant;
    r.kernels.emplace_back().name = "gemm<64>";
    r.stalls = {{0, 0x120, "BAR.SYNC 0x0", "gemm.cu:12", "barrier", barrier},
                {0, 0x40, "LDG.E R2, [R4.64]", "gemm.cu:9", "long_scoreboard", load}};
    r.metrics = {{.name = "pc_samples", .unit = "samples", .value = 100},
                 {.name = "pc_launches", .unit = "launches", .value = 8}};
    const Case c{"s", "gpt", "moe_gemm", {{"tokens", "8"}}, {}};
    store.add_result(store.begin_process(run, round, round), c, {}, {}, r);
  }
  store.end_run(run, "complete");
  return run;
}

}  // namespace moegate::test
