// SPDX-License-Identifier: Apache-2.0
// A stored run that sampled where warps wait, made up.
#pragma once

#include <cstdint>
#include <string>

#include "harness/store/store.h"

namespace moegate {

/// Adds a run to a store: one row whose barrier and load were sampled so often, of 100 samples in a process.
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

}  // namespace moegate
