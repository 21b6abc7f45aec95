// SPDX-License-Identifier: Apache-2.0
// What the harness itself costs: wall time per cold sample over the time that cannot be avoided, which is
// making cold and launching. Prints one line per device; asserts nothing.
//
// Usage: bench_overhead [auto|host|cuda[:n]] [samples]
#include <chrono>
#include <map>

#include "harness/chill.h"
#include "harness/kernel.h"
#include "harness/stats.h"
#include "harness/timer.h"

namespace moegate {
namespace {

using Clock = std::chrono::steady_clock;

Case routing_case() {
  Case c;
  c.op = "topk_sort";
  for (const Param& p : find_op(c.op).params) c.params[p.name] = p.default_value;
  for (const Param& p : common_params()) c.params[p.name] = p.default_value;
  const std::map<std::string, std::string> shape = {
      {"tokens", "256"}, {"experts", "256"}, {"topk", "8"}, {"hidden", "7168"}};
  for (const auto& [name, value] : shape) c.params[name] = value;
  return c;
}

const Variant& variant(Backend backend, const std::string& name) {
  for (const Variant& v : all_variants()) {
    if (v.backend == backend && v.name == name) return v;
  }
  throw Error(Exit::internal, "no variant " + name);
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Seconds per sample of a session, after a warm-up; the median span goes to `span_s`.
double per_sample(Timer& timer, const Subject& subject, int samples, double& span_s) {
  const auto session = timer.open(subject, nullptr, {});
  for (int i = 0; i < samples / 5; ++i) session->enqueue();
  session->collect();
  const auto start = Clock::now();
  for (int i = 0; i < samples; ++i) session->enqueue();
  const auto taken = session->collect();
  const double wall = seconds_since(start);
  std::vector<double> spans;
  for (const Sample& s : taken) spans.push_back(s.span_ns * 1e-9);
  span_s = median(spans);
  return wall / samples;
}

/// Seconds per sample that cannot be avoided. On a GPU: a launch of nothing costs the flush, and the kernel
/// its span. On the host: flushing and launching in the barest loop, because flushing lines that a kernel
/// has just written costs more than flushing clean ones.
double unavoidable(Device& device, Timer& timer, const Subject& subject, int samples,
                   double span_s) {
  if (device.facts().backend == Backend::cuda) {
    Variant nothing = *subject.variant;
    nothing.launch = [](Problem&, const Launch&) {};
    double ignored = 0;
    return per_sample(timer, {&nothing, subject.sets}, samples, ignored) + span_s;
  }
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
  const std::string fault = cuda ? prepare_cupti() : "";
  if (!fault.empty()) throw Error(Exit::environment, fault);
  const auto device = open_device(spec);
  const auto timer = cuda ? make_cupti_timer(*device) : make_host_timer(*device);
  const Case c = routing_case();
  const auto problem = find_op(c.op).make(*device, c);
  const Variant& kernel = variant(device->facts().backend, cuda ? "fused_cluster" : "fused");
  if (kernel.workspace) problem->reserve_workspace(kernel.workspace(c, device->facts()));
  const Subject subject{&kernel, {problem.get()}};
  double span = 0;
  const double wall = per_sample(*timer, subject, samples, span);
  const double least = unavoidable(*device, *timer, subject, samples, span);
  fmt::print("{}: {} samples of a {:.2f} us kernel, {:.2f} us each; flush + kernel {:.2f} us; ratio {:.3f}\n",
             device->facts().name, samples, span * 1e6, wall * 1e6, least * 1e6, wall / least);
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
