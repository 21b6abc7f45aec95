// SPDX-License-Identifier: Apache-2.0
// What the harness itself costs: wall time per cold sample over the time that cannot be avoided,
// which is the flush and the kernel, back to back. Says where the rest goes; asserts nothing.
//
// Usage: bench_overhead [auto|host|cuda[:n]] [samples]
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "harness/base/stats.h"
#include "harness/device/chill.h"
#include "harness/device/open.h"
#include "harness/kernel/kernel.h"
#include "harness/timing/timer.h"
#include "harness/worker/measure.h"
#include "kernels/topk_sort/topk_sort_testing.h"
#include "tests/bench/bare_loop.h"

namespace moegate::test {

constexpr int kBatch = 100;  // as many samples as the harness takes in one go

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// A small kernel with as many problems as the harness builds of it.
struct Work {
  explicit Work(Device& device)
      : c(topk_sort::topk_sort_case(
            {{"tokens", "256"}, {"experts", "256"}, {"topk", "8"}, {"hidden", "7168"}})) {
    constexpr int kProblems = 4;
    const bool host = device.facts().backend == Backend::host;
    for (const Variant& v : all_variants()) {
      const bool is_it = v.op == c.op && v.name == (host ? "fused" : "fused_cluster");
      if (is_it && v.backend == device.facts().backend) subject.variant = &v;
    }
    if (!subject.variant) throw Error(Exit::internal, "topk_sort has lost its fused variants");
    for (int i = 0; i < kProblems; ++i) {
      Problem& problem = *problems.emplace_back(find_op(c.op).make(device, c));
      if (subject.variant->workspace) {
        problem.reserve_workspace(subject.variant->workspace(c, device.facts()));
      }
      subject.sets.push_back(&problem);
    }
  }

  Case c;
  std::vector<std::unique_ptr<Problem>> problems;
  Subject subject{nullptr, {}};
};

/// Seconds per sample of flushing and launching in the barest loop on the host, where flushing
/// lines that a kernel has just written costs more than flushing clean ones.
double bare_loop_host(Device& device, const Subject& subject, int samples) {
  Chiller chiller(device.facts().cache_bytes);
  const Launch launch{device.stream(), device.facts()};
  const auto start = Clock::now();
  for (int i = 0; i < samples; ++i) {
    Problem& problem = *subject.sets[static_cast<size_t>(i) % subject.sets.size()];
    chiller.chill(problem);
    subject.variant->launch(problem, launch);
  }
  return seconds_since(start) / samples;
}

double bare_loop(const std::string& spec, int samples) {
  const auto device = open_device(spec);
  const Work work(*device);
#ifdef MOEGATE_HAS_CUDA
  if (device->facts().backend == Backend::cuda) {
    return bare_loop_cuda(*device, work.subject, samples);
  }
#endif
  return bare_loop_host(*device, work.subject, samples);
}

/// In a process of its own: CUPTI would slow the loop down, and has to come before the device.
double bare_loop_apart(const std::string& spec, int samples) {
  int ends[2];
  if (pipe(ends) != 0) throw Error(Exit::environment, "no pipe");
  const pid_t child = fork();
  if (child == 0) {
    try {
      const double seconds = bare_loop(spec, samples);
      if (write(ends[1], &seconds, sizeof seconds) == sizeof seconds) _exit(0);
    } catch (const std::exception& e) {
      fmt::print(stderr, "bench_overhead: {}\n", e.what());
    }
    _exit(1);
  }
  close(ends[1]);
  double seconds = 0;
  const bool told = read(ends[0], &seconds, sizeof seconds) == sizeof seconds;
  close(ends[0]);
  waitpid(child, nullptr, 0);
  if (!told) throw Error(Exit::environment, "the bare loop failed");
  return seconds;
}

/// Where the seconds of a sample go, in batches without what is done between them.
struct Parts {
  double enqueue_s = 0, device_s = 0, records_s = 0;  // per sample, one after the other
  double span_s = 0, cold_s = 0;  // of the kernel; of the flush and what it does first
};

Parts parts_of(Device& device, Timer& timer, const Subject& subject, int samples) {
  const auto session = timer.open(subject, nullptr, {});
  Parts parts;
  std::vector<double> spans, colds;
  for (int batch = -1; batch < samples / kBatch; ++batch) {
    const auto start = Clock::now();
    for (int i = 0; i < kBatch; ++i) session->enqueue();
    const double enqueued = seconds_since(start);
    device.synchronize();
    const double done = seconds_since(start);
    const std::vector<Sample> taken = session->collect();
    const double collected = seconds_since(start);
    if (batch < 0) continue;  // warms up
    parts.enqueue_s += enqueued / samples;
    parts.device_s += (done - enqueued) / samples;
    parts.records_s += (collected - done) / samples;
    for (const Sample& s : taken) {
      spans.push_back(s.span_ns * 1e-9);
      colds.push_back(s.cold_ns * 1e-9);
    }
  }
  parts.span_s = mean(spans);
  parts.cold_s = mean(colds);
  return parts;
}

/// Seconds of one more sample, with all that a result costs between batches: what many take longer
/// than few do.
double sample_cost(Device& device, Timer& timer, const Work& work, int samples) {
  constexpr int kTimes = 3, kFewer = 10;
  Bench bench(device, work.c);
  Result result = bench.verify(*work.subject.variant);
  const auto wall_s = [&](int count) {
    const Sampling sampling{
        .min_samples = count, .max_samples = count, .precision = 1e-9, .budget_s = 60};
    bench.measure(*work.subject.variant, timer, {}, sampling, result);
    return result.wall_s;
  };
  std::vector<double> each;
  for (int i = 0; i < kTimes; ++i) {
    const double few = wall_s(samples / kFewer);
    each.push_back((wall_s(samples) - few) / (samples - samples / kFewer));
  }
  return median(each);
}

int run(const std::string& spec, int samples) {
  const double bare_s = bare_loop_apart(spec, samples);
  const bool cuda = spec != "host" && !cuda_devices(nullptr).empty();
  const std::string fault = cuda ? prepare_cupti(0) : "";
  if (!fault.empty()) throw Error(Exit::environment, fault);
  const auto device = open_device(spec);
  const auto timer = cuda ? make_cupti_timer(*device) : make_host_timer(*device);
  const Work work(*device);
  const Parts parts = parts_of(*device, *timer, work.subject, samples);
  const double sample_s = sample_cost(*device, *timer, work, samples);
  const double batch_s = parts.enqueue_s + parts.device_s + parts.records_s;
  fmt::print(
      "{}: a kernel of {:.2f} us; flush and kernel back to back {:.2f} us; a sample {:.2f} us: "
      "{:+.1f} %\n",
      device->facts().name, parts.span_s * 1e6, bare_s * 1e6, sample_s * 1e6,
      100 * (sample_s / bare_s - 1));
  fmt::print(
      "of a sample: enqueued in {:.2f} us, {:.2f} us more until the device has done it, {:.2f} us "
      "for its records, "
      "{:.2f} us between batches of {}; the flush itself, with what it does first, {:.2f} us\n",
      parts.enqueue_s * 1e6, parts.device_s * 1e6, parts.records_s * 1e6,
      (sample_s - batch_s) * 1e6, kBatch, parts.cold_s * 1e6);
  return 0;
}

}  // namespace
}  // namespace moegate::test

int main(int argc, char** argv) {
  try {
    return moegate::test::run(
        argc > 1 ? argv[1] : "auto",
        argc > 2 ? std::max(std::atoi(argv[2]), moegate::test::kBatch) : 2000);
  } catch (const std::exception& e) {
    fmt::print(stderr, "bench_overhead: {}\n", e.what());
    return 1;
  }
}
