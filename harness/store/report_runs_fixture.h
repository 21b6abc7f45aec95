// SPDX-License-Identifier: Apache-2.0
// A store whose runs have known numbers.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "harness/base/test_fixture.h"
#include "harness/kernel/registry.h"
#include "harness/store/store.h"

namespace moegate::test {

class StoredRuns : public ::testing::Test {
 protected:
  RunInfo info(Backend backend) {
    backend_ = backend;
    RunInfo info;
    info.label = "x";
    for (const OpDescription& op : describe_operators(own_registry(), backend)) {
      info.operators.push_back(facts_of(op, backend));
    }
    info.device = {backend, "device",     "class", backend == Backend::cuda ? "GPU-1" : "a-host",
                   132,     cache_bytes_, 1,       1,
                   "driver"};
    info.protocol = 1;
    info.timer = backend == Backend::cuda ? "cupti" : "clock";
    info.flush = "read";
    info.rounds = 3;
    return info;
  }

  /// chain3 (host: chain) takes 10 us and fused 8 us with 1 % noise that both share, on two cases
  /// that differ in scoring; `flat` takes as long as chain3, with noise of its own.
  void add_run(Backend backend, int processes = 3) {
    Store store = Store::open(db_, Store::Mode::write);
    const int64_t run = store.begin_run(info(backend));
    const std::string before = backend == Backend::cuda ? "chain3" : "chain";
    for (int round = 0; round < processes; ++round) {
      const int64_t process = store.begin_process(run, round, round);
      for (const char* scoring : {"softmax", "noaux_tc"}) {
        const Case c{"s",
                     "gpt",
                     "topk_sort",
                     {{"tokens", "8"},
                      {"routing", "uniform"},
                      {"launch", "stream"},
                      {"cache", "cold"},
                      {"scoring", scoring},
                      {"topk", "4"}},
                     {}};
        const double day = 1 + 0.01 * round;
        add(store, process, c, before, {10000 * day}, 1);
        add(store, process, c, "fused", {8000 * day}, 0.8);
        add(store, process, c, "flat", {10000 * (1.03 - 0.03 * round)}, 1.03 - 0.03 * round);
        Result crashed;
        crashed.variant = "broken";
        crashed.status = Status::crashed;
        crashed.why = "signal 11";
        store.add_result(process, c, {}, {}, crashed);
      }
    }
    store.end_run(run, "complete");
  }

  /// chain3 in one process: 2.4 mJ in 5 us of a launch, behind a flush of 9.6 mJ. `flat` adds less
  /// than is uncertain.
  void add_energy_run() {
    Store store = Store::open(db_, Store::Mode::write);
    RunInfo metered = info(Backend::cuda);
    metered.task = "energy";
    const int64_t process = store.begin_process(store.begin_run(metered), 0, 1);
    const Case c{"s", "gpt", "topk_sort", {{"tokens", "8"}}, {}};
    for (const auto& [variant, mj] : {std::pair("chain3", 2.4), std::pair("flat", 0.01)}) {
      Result r;
      r.variant = variant;
      r.metrics = {{"energy_per_launch", "mJ", mj},       {"energy_uncertainty", "mJ", 0.05},
                   {"energy_resolution", "mJ", 0.5},      {"mean_power", "W", 480},
                   {"energy_with_flush", "mJ", 9.6 + mj}, {"energy_flush", "mJ", 9.6},
                   {"energy_launches", "launches", 80000}};
      store.add_result(process, c, {6e9, 16e6, 8e6}, {}, r);
    }
  }

  /// Counters of cold launches that must read 16 MB, of one of two kernels, too: `cold` reads
  /// them, `warm` half of them, `leaves_out` has no more than that from L2 either, `twice` more
  /// than L2 holds.
  void add_counter_run() {
    Store store = Store::open(db_, Store::Mode::write);
    RunInfo counted = info(Backend::cuda);
    counted.task = "counters";
    const int64_t process = store.begin_process(store.begin_run(counted), 0, 1);
    const Case c{"s", "gpt", "topk_sort", {{"tokens", "8"}, {"cache", "cold"}}, {}};
    const auto add_counts = [&](const Case& of, const std::string& variant, double read, double l2,
                                double must) {
      Result r;
      r.variant = variant;
      KernelRow kernel;
      kernel.name = "first";
      r.kernels = {kernel};
      r.metrics = {
          {"dram__bytes_read.sum", "byte", read},
          {"dram__bytes_write.sum", "byte", 0},
          {"dram__bytes.sum.peak_sustained_elapsed.per_second", "byte/second", 4e12},
          {"lts__t_sectors_srcunit_tex_op_read.sum", "l2_sector", l2 / 32},
          {"lts__t_sectors.sum", "l2_sector", l2 / 32},
          {"lts__t_sectors.sum.peak_sustained", "l2_sector/fbp_cycle", 100},
          {"lts__cycles_elapsed.avg.per_second", "fbp_cycle/second", 2e9},
          {"l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_active", "percent", 5},
          {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", "percent", 0},
          {"smsp__issue_active.avg.pct_of_peak_sustained_active", "percent", 20},
          {"sm__cycles_active.max", "gpc_cycle", 10000},
          {"sm__cycles_elapsed.avg.per_second", "gpc_cycle/second", 2e9},
          {"smsp__warps_active.sum", "gpc_cyclewarp", 1e6},
          {"smsp__warps_issue_stalled_selected.sum", "gpc_cyclewarp", 6e5},
          {"smsp__warps_issue_stalled_barrier.sum", "gpc_cyclewarp", 3e5},
          {"dram__bytes_read.sum", "byte", read / 2, 0},
          {"counter_passes", "launches", 8}};
      store.add_result(process, of, {6e9, must, 0}, {}, r);
    };
    add_counts(c, "cold", 16.1e6, 17e6, 16e6);
    add_counts(c, "warm", 8e6, 17e6, 16e6);
    add_counts(c, "leaves_out", 8e6, 8.1e6, 16e6);
    Case large = c;
    large.params["tokens"] = "9";
    add_counts(large, "twice", 120e6, 200e6, 100e6);
  }

  /// One route through the int4 layers of gpt-oss-20b, one token, in us when cold.
  struct Route {
    std::string variant;
    std::vector<double> fc1_launches;
    double fc2;  // 0: it has none
    double layer = 0;
    std::string layer_variant = {};  // empty: as of the products
  };
  /// Processes differ by 1 % that all routes share; warm takes half as long. On a host the first
  /// route is the yardstick.
  void add_qmoe_run(Backend backend, const std::vector<Route>& routes,
                    const std::string& dtype = "fp16") {
    Store store = Store::open(db_, Store::Mode::write);
    const int64_t run = store.begin_run(info(backend));
    for (int round = 0; round < 3; ++round) {
      const int64_t process = store.begin_process(run, round, round);
      for (const std::string cache : {"cold", "warm"}) {
        const double ns = (0.99 + 0.01 * round) * (cache == "cold" ? 1000 : 500);
        for (const auto& [variant, fc1, fc2, layer, layer_variant] : routes) {
          std::vector<double> launches;
          for (const double us : fc1) launches.push_back(us * ns);
          add(store, process, qmoe_case("fc1", cache, dtype), variant, launches,
              total(fc1) / total(routes[0].fc1_launches));
          if (layer > 0) {
            add(store, process, qmoe_case("layer", cache, dtype),
                layer_variant.empty() ? variant : layer_variant, {layer * ns},
                layer / routes[0].layer);
          }
          if (fc2 == 0) continue;
          add(store, process, qmoe_case("fc2", cache, dtype), variant, {fc2 * ns},
              fc2 / routes[0].fc2);
        }
      }
    }
    store.end_run(run, "complete");
  }

  /// A variant of a grouped GEMM with one block of rows, in us; of two launches the first zeroes.
  struct Gemm {
    std::string op, variant, block;
    std::vector<double> launches;
  };
  /// 8192 tokens of DeepSeek-R1 TP8 with the shared expert among 257, but for `params`. Processes
  /// differ by 1 % that all share. On a host the first of an operator is the yardstick.
  void add_moe_run(Backend backend, const std::vector<Gemm>& gemms,
                   std::map<std::string, std::string> params = {}) {
    params.insert({{"tokens", "8192"},
                   {"experts", "257"},
                   {"topk", "9"},
                   {"hidden", "7168"},
                   {"inter", "256"},
                   {"dtype", "fp8"},
                   {"routing", "shared:zipf:0.67"}});
    Store store = Store::open(db_, Store::Mode::write);
    const int64_t run = store.begin_run(info(backend));
    for (int round = 0; round < 3; ++round) {
      const int64_t process = store.begin_process(run, round, round);
      for (const Gemm& gemm : gemms) {
        const bool down = gemm.op == "moe_down";
        Case c{"s", down ? "r1-tp8-down" : "r1-tp8-gate-up", gemm.op, params, {}};
        c.params["block"] = gemm.block;
        const auto yardstick = std::find_if(gemms.begin(), gemms.end(),
                                            [&](const Gemm& g) { return g.op == gemm.op; });
        std::vector<double> launches;
        for (const double us : gemm.launches) launches.push_back(us * (990 + 10 * round));
        // Bytes and operations of 8192 tokens.
        const Cost cost = down ? Cost{270.6e9, 0.5e9, 1.06e9} : Cost{541.2e9, 1.0e9, 0.15e9};
        add(store, process, c, gemm.variant, launches,
            total(gemm.launches) / total(yardstick->launches), cost, "zero_kernel(uint4*, long)");
      }
    }
    store.end_run(run, "complete");
  }
  /// Variants of dense_fc2, in us, at 128 tokens of DeepSeek-R1 TP8 but for `params`; the cost is
  /// that of all experts being active, 8 of 256 per token. Processes
  /// differ by 1 % that all share. On a host the first is the yardstick.
  void add_dense_run(Backend backend, const std::vector<std::pair<std::string, double>>& variants,
                     const std::map<std::string, std::string>& params = {}) {
    Case c{"s", "r1-tp8", "dense_fc2", params, {}};
    c.params.insert({{"tokens", "128"},
                     {"experts", "256"},
                     {"topk", "8"},
                     {"inter", "256"},
                     {"hidden", "7168"},
                     {"scales", "tensor"}});
    Store store = Store::open(db_, Store::Mode::write);
    const int64_t run = store.begin_run(info(backend));
    for (int round = 0; round < 3; ++round) {
      const int64_t process = store.begin_process(run, round, round);
      for (const auto& [variant, us] : variants) {
        add(store, process, c, variant, {us * (990 + 10 * round)}, us / variants[0].second,
            {3.758e9, 470e6, 1.8e6});
      }
    }
    store.end_run(run, "complete");
  }
  static double total(const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0);
  }
  /// `part`: fc1, fc2 or layer.
  static Case qmoe_case(const std::string& part, const std::string& cache,
                        const std::string& dtype) {
    Case c{"s",
           "gpt-oss-20b-" + part,
           part == "fc1" ? "qmoe_fc1_swiglu" : "qmoe_" + part,
           {{"tokens", "1"},
            {"hidden", "2880"},
            {"inter", "2880"},
            {"scale-block", "0"},
            {"dtype", dtype},
            {"cache", cache}},
           {}};
    if (part != "fc2") c.params["alpha"] = "1.702";
    return c;
  }

  /// A run of one case whose processes had these statuses, one after another.
  void add_statuses(const std::map<std::string, std::vector<Status>>& variants) {
    Store store = Store::open(db_, Store::Mode::write);
    const int64_t run = store.begin_run(info(Backend::cuda));
    const Case c{"s", "gpt", "topk_sort", {{"tokens", "8"}}, {}};
    for (const auto& [variant, statuses] : variants) {
      for (size_t round = 0; round < statuses.size(); ++round) {
        Result r;
        r.variant = variant;
        r.status = statuses[round];
        store.add_result(store.begin_process(run, static_cast<int>(round), 1), c, {}, {}, r);
      }
    }
    store.end_run(run, "complete");
  }

  /// `first` names the first of several launches.
  void add(Store& store, int64_t process, const Case& c, const std::string& variant,
           const std::vector<double>& launches_ns, double ratio, const Cost& cost = {1e9, 16e6, 0},
           const std::string& first = "kernel<int>", const std::vector<Fact>& facts = {}) {
    Result r;
    r.variant = variant;
    r.timer = "cupti";
    r.judged = backend_ == Backend::cuda ? Judged::span
               : ratio == 1              ? Judged::is_yardstick
                                         : Judged::ratio;
    r.samples = 100;
    r.span_ns = r.low_ns = r.high_ns = r.busy_ns = r.sum_ns = total(launches_ns);
    r.ratio = ratio;
    Accuracy a;
    a.output = "weights";
    a.ok = true;
    a.rel_l2 = 1e-3;
    r.accuracy = {a};
    for (const double ns : launches_ns) {
      KernelRow k;
      k.name = r.kernels.empty() && launches_ns.size() > 1 ? first : "kernel<int>";
      k.ns = ns;
      r.kernels.push_back(k);
    }
    r.stalls = {{0, 0x40, "LDG.E R2, [R4.64]", "", "long_scoreboard", 10}};
    store.add_result(process, c, cost, facts, r);
  }
  /// Of the GPU.
  void measure_ceilings(const std::map<std::string, double>& ceilings) {
    Store::open(db_, Store::Mode::write).set_ceilings(info(Backend::cuda).device, ceilings);
  }

  ScratchFolder dir_;
  const std::string db_ = (dir_ / "r.db").string();
  Backend backend_ = Backend::cuda;  // of the run that is being added
  int64_t cache_bytes_ = 60 << 20;   // of the device
};

}  // namespace moegate::test
