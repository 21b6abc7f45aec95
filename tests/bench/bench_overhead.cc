// SPDX-License-Identifier: Apache-2.0
// What the harness itself costs: wall time per cold sample over the time that cannot be avoided,
// which is the flush and the kernel. Prints one line per device; asserts nothing.
//
// Usage: bench_overhead [auto|host|cuda[:n]] [samples]
#include <chrono>

#include "harness/base/stats.h"
#include "harness/device/chill.h"
#include "harness/device/open.h"
#include "harness/kernel/kernel.h"
#include "harness/timing/timer.h"
#include "kernels/topk_sort/topk_sort_testing.h"

namespace moegate {
namespace {

using Clock = std::chrono::steady_clock;

const Variant& variant(Backend backend, const std::string& name) {
  for (const Variant& v : all_variants()) {
    if (v.backend == backend && v.name == name) return v;
  }
  throw Error(Exit::internal, "no variant " + name);
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Timed {
  double wall_s, span_s, cold_s;  // per sample; cold: what the timer saw the flush take
};

/// A session's samples after a warm-up.
Timed per_sample(Timer& timer, const Subject& subject, int samples) {
  const auto session = timer.open(subject, nullptr, {});
  for (int i = 0; i < samples / 5; ++i) session->enqueue();
  session->collect();
  const auto start = Clock::now();
  for (int i = 0; i < samples; ++i) session->enqueue();
  const auto taken = session->collect();
  const double wall = seconds_since(start);
  std::vector<double> spans, colds;
  for (const Sample& s : taken) {
    spans.push_back(s.span_ns * 1e-9);
    colds.push_back(s.cold_ns * 1e-9);
  }
  return {wall / samples, mean(spans), mean(colds)};
}

/// Seconds per sample of flushing and launching in the barest loop on the host, where flushing
/// lines that a kernel has just written costs more than flushing clean ones.
double bare_loop(Device& device, const Subject& subject, int samples) {
  Chiller chiller(device.facts().cache_bytes);
  const Launch launch{device.stream(), device.facts()};
  const auto start = Clock::now();
  for (int i = 0; i < samples; ++i) {
    chiller.chill(*subject.sets[0]);
    subject.variant->launch(*subject.sets[0], launch);
  }
  return seconds_since(start) / samples;
}

int run(const std::string& spec, int samples) {
  const bool cuda = spec != "host" && !cuda_devices(nullptr).empty();
  const std::string fault = cuda ? prepare_cupti(0) : "";
  if (!fault.empty()) throw Error(Exit::environment, fault);
  const auto device = open_device(spec);
  const auto timer = cuda ? make_cupti_timer(*device) : make_host_timer(*device);
  const Case c = topk_sort::topk_sort_case(
      {{"tokens", "256"}, {"experts", "256"}, {"topk", "8"}, {"hidden", "7168"}});
  const auto problem = find_op(c.op).make(*device, c);
  const Variant& kernel = variant(device->facts().backend, cuda ? "fused_cluster" : "fused");
  if (kernel.workspace) problem->reserve_workspace(kernel.workspace(c, device->facts()));
  const Subject subject{&kernel, {problem.get()}};
  const Timed timed = per_sample(*timer, subject, samples);
  const double least = cuda ? timed.cold_s + timed.span_s : bare_loop(*device, subject, samples);
  fmt::print(
      "{}: {} samples of a {:.2f} us kernel, {:.2f} us each; flush + kernel {:.2f} us; ratio "
      "{:.3f}\n",
      device->facts().name, samples, timed.span_s * 1e6, timed.wall_s * 1e6, least * 1e6,
      timed.wall_s / least);
  return 0;
}

}  // namespace
}  // namespace moegate

int main(int argc, char** argv) {
  try {
    return moegate::run(argc > 1 ? argv[1] : "auto", argc > 2 ? std::atoi(argv[2]) : 1000);
  } catch (const std::exception& e) {
    fmt::print(stderr, "bench_overhead: {}\n", e.what());
    return 1;
  }
}
