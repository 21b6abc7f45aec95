// SPDX-License-Identifier: Apache-2.0
// A store some of whose bytes are others: 4 bytes of the input say which, and what it is instead.

#include "harness/store/query_report.h"
#include "harness/store/store_fixture.h"
#include "tests/fuzz/fuzz.h"

namespace moegate::fuzz {

using test::bytes_of;
using test::host_run;
namespace {

std::string whole_store() {
  const std::string path = own_file("whole.sqlite").string();
  {
    Store store = Store::open(path, Store::Mode::write);
    RunInfo info = host_run();
    info.operators = {{"topk_sort", "per_token", {{"sort"}}}};
    info.tags = {{"night", "1"}};
    const int64_t run = store.begin_run(info);
    const int64_t process = store.begin_process(run, 0, 1);
    for (const char* tokens : {"1", "8"}) {
      const Case c{"tiny", "gpt", "topk_sort", {{"tokens", tokens}}, {}};
      Result r;
      r.variant = "chain";
      r.timer = "clock";
      r.judged = Judged::span;
      r.samples = 2;
      r.span_ns = 5000;
      r.accuracy.resize(1);
      r.seeds.resize(1);
      r.kernels.resize(1);
      r.metrics = {{"core_wait", "share", 0.5}};
      r.spans_ns = {5000.f, 5001.f};
      store.add_result(process, c, {1, 2, 3}, {{"active_experts", 57}}, r);
    }
    store.set_ceilings(info.device, {{"read_bytes_per_s", 1e10}});
    store.end_run(run, "complete");
  }
  return bytes_of(path);
}

/// All that a gate asks of a store.
void read_all(const std::string& path) {
  Store store = Store::open(path, Store::Mode::read);
  store.check_intact();
  const RunInfo info = store.run_info(store.find_run("latest"));
  is_partial(info);
  store.ceilings(info.device);
  store.levels(info.id);
  store.done(info.id);
  static const auto report = find_report("latency");
  render(run_report(store, report, {info.id}), Format::json);
}

}  // namespace

void store(std::string_view bytes) {
  static const std::string whole = whole_store();
  std::string damaged = whole;
  for (size_t i = 0; i + 4 <= bytes.size(); i += 4) {
    const auto byte = [&](size_t k) {
      return static_cast<size_t>(static_cast<uint8_t>(bytes[i + k]));
    };
    damaged[(byte(0) | byte(1) << 8 | byte(2) << 16) % damaged.size()] = bytes[i + 3];
  }
  const std::string path = write_own_file("damaged.sqlite", damaged).string();
  accepted({Exit::store, Exit::usage}, [&] { read_all(path); });
  require(bytes_of(path) == damaged, "reading changes it");
}

}  // namespace moegate::fuzz
