// SPDX-License-Identifier: Apache-2.0
// Probes of a GPU: timers, the cost of a flush, the proof that cold is cold, clocks, noise.
#include <cuda_runtime.h>
#include <sys/utsname.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "harness/base/escape.h"
#include "harness/base/stats.h"
#include "harness/device/cuda/cuda_sequence.h"
#include "harness/device/nvml.h"
#include "harness/kernel/cuda_check.h"
#include "harness/timing/cuda/cupti_lib.h"
#include "harness/timing/cuda/read_kernel.cuh"
#include "harness/timing/probe.h"

namespace moegate {
namespace {

constexpr int64_t kMega = 1 << 20;
constexpr int64_t kRulerMost = 16 * kMega;  // an H200 reads it in 5 us
constexpr int kSamples = 200;
constexpr int kFlushSamples = 50;
constexpr double kColdLeast = 1.2;  // an L2 hit is about twice as fast on an H200

void launch_read(const RulerProblem& problem, const Launch& launch) {
  constexpr int kThreads = 512;
  const Tensor& buffer = problem.buffer();
  read_kernel<<<launch.device.processors * 4, kThreads, 0,
                static_cast<cudaStream_t>(launch.stream)>>>(
      buffer.data<uint4>(), buffer.bytes() / sizeof(uint4),
      const_cast<unsigned*>(buffer.data<unsigned>()));
}

/// Runs one probe; what it throws becomes its row.
void attempt(const char* name, std::vector<Probe>& probes, const std::function<void()>& probe) {
  try {
    probe();
  } catch (const std::exception& error) {
    probes.push_back({name, "unavailable", "", error.what(), false});
  }
}

void add_facts(const DeviceFacts& facts, std::vector<Probe>& probes) {
  probes.push_back({"device", facts.name, "", facts.uuid});
  cudaFuncAttributes own{};
  MOEGATE_CUDA_CHECK(cudaFuncGetAttributes(&own, read_kernel));
  // Machine code is made of PTX of its own chip; what the driver made is of an older one.
  probes.push_back(chip_probe(facts.capability, own.ptxVersion != own.binaryVersion));
  utsname system{};
  uname(&system);
  probes.push_back(whole_probe(facts.name, is_virtual_gpu(facts.uuid), system.release));
  probes.push_back({"driver", facts.driver});
  probes.push_back({"SMs", std::to_string(facts.processors)});
  const double mega = static_cast<double>(facts.cache_bytes) / kMega;
  probes.push_back({"L2", fmt::format("{:.0f}", mega), "MiB"});
}

void add_timers(const std::string& no_cupti, double cupti_tick, double event_tick,
                std::vector<Probe>& probes) {
  const bool healthy = no_cupti.empty();
  const auto tick = [&](const char* name, double ns, const char* note) {
    probes.push_back({name, fmt::format("{:.0f}", ns), "ns", note});
  };
  if (healthy) {
    const std::string path = one_line(CuptiLib().path());
    probes.push_back(
        {"CUPTI", "healthy", "", "self-test: every launch attributed, none dropped; " + path});
    tick("CUPTI tick", cupti_tick, "");
  } else {
    probes.push_back({"CUPTI", "unavailable", "", no_cupti, false});
  }
  tick("event tick", event_tick, "CUDA events: the fallback");
}

/// What events say more than CUPTI does of the same launches.
void add_event_cost(Timer& event, Timer& cupti, const Subject& subject,
                    std::vector<Probe>& probes) {
  const RulerLevel seen = sample_ruler(event, subject, {}, kSamples);
  const RulerLevel true_level = sample_ruler(cupti, subject, {}, kSamples);
  if (seen.valid == 0 || true_level.valid == 0) return;
  probes.push_back({"events add", fmt::format("{:.2f}", (seen.ns - true_level.ns) * 1e-3), "us",
                    fmt::format("to {:.2f} us by CUPTI", true_level.ns * 1e-3)});
}

void add_flush_cost(Device& device, const Subject& subject, std::vector<Probe>& probes) {
  for (const Flush flush : {Flush::read, Flush::write}) {
    Conditions conditions;
    conditions.flush = flush;
    CudaSequence sequence(device, subject, conditions);
    for (int i = 0; i < kFlushSamples; ++i) {
      sequence.prepare();
      sequence.launch();
      sequence.release();
    }
    std::vector<double> us, mhz;
    for (const SampleReading& r : sequence.readings()) {
      us.push_back(static_cast<double>(r.ns) * 1e-3);
      mhz.push_back(sm_mhz(r));
    }
    const bool reads = flush == Flush::read;
    probes.push_back({reads ? "flush by reading" : "flush by writing",
                      fmt::format("{:.1f}", median(us)), "us", reads ? "the default" : ""});
    if (!reads) continue;
    probes.push_back(
        {"SM clock, measured", fmt::format("{:.0f}", median(mhz)), "MHz", "by the flush kernel"});
  }
}

void add_coldness(Timer& timer, const Subject& subject, std::vector<Probe>& probes) {
  Conditions clean, dirty, warm;
  dirty.flush = Flush::write;
  warm.cache = Cache::warm;
  const RulerLevel cold = sample_ruler(timer, subject, clean, kSamples);
  const RulerLevel after_write = sample_ruler(timer, subject, dirty, kSamples);
  const RulerLevel hit = sample_ruler(timer, subject, warm, kSamples);
  const Quiet quiet = quiet_of(Backend::cuda);
  const int64_t bytes = subject.sets.front()->tensors().front()->bytes();
  const auto row = [&](const char* how, const RulerLevel& level) {
    const std::string name = fmt::format("read {} MiB, {}", bytes / kMega, how);
    probes.push_back(level_probe(name, level, timer.name(), quiet));
  };
  row("cold (clean lines)", cold);
  row("cold (dirty lines)", after_write);
  row("warm", hit);
  if (cold.valid == 0 || after_write.valid == 0 || hit.valid == 0) return;
  const bool proven = cold.ns / hit.ns >= kColdLeast;
  probes.push_back({"cold / warm", fmt::format("{:.2f}", cold.ns / hit.ns), "",
                    proven ? "the flush makes L2 cold" : "the flush does not make L2 cold",
                    proven});
  probes.push_back({"dirty / clean", fmt::format("{:.2f}", after_write.ns / cold.ns), "",
                    "how much longer a kernel takes behind a flush that writes"});
}

void add_state(const DeviceFacts& facts, std::vector<Probe>& probes) {
  const GpuState state = read_gpu_state(facts.uuid);
  if (!state.why_none.empty()) {
    probes.push_back({"clocks", "unavailable", "", state.why_none, false});
    return;
  }
  const auto number = [&](const char* name, auto value, const char* unit, std::string note = "") {
    if (value) probes.push_back({name, fmt::format("{:.0f}", double(*value)), unit, note});
  };
  number("SM clock now", state.sm_mhz, "MHz",
         state.sm_max_mhz ? fmt::format("at most {}", *state.sm_max_mhz) : "");
  number("memory clock now", state.memory_mhz, "MHz");
  number("temperature", state.celsius, "C");
  number("power", state.watts, "W",
         state.limit_watts ? fmt::format("limit {:.0f}", *state.limit_watts) : "");
}

void add_energy(const DeviceFacts& facts, std::vector<Probe>& probes) {
  const EnergyCounter counter(facts.uuid);
  const bool counts = counter.why_none().empty();
  constexpr int kReads = 5;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kReads; ++i) counter.millijoules();
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  const std::string note =
      counts ? fmt::format("in {:.2f} ms", took.count() / kReads) : counter.why_none();
  probes.push_back({"energy counter", counts ? "readable" : "unavailable", "", note, counts});
}

void add_neighbours(const DeviceFacts& facts, std::vector<Probe>& probes) {
  const std::optional<int> others = other_gpu_processes(facts.uuid);
  const auto add = [&](const std::string& value, const char* note) {
    probes.push_back({"other processes on the GPU", value, "", note, others == 0});
  };
  if (!others) {
    add("unknown", "NVML does not show processes here");
  } else if (*others == 0) {
    add("none", "");
  } else {
    add(std::to_string(*others), "what they do falls into what is measured");
  }
}

void note_limit(const Device& device, const char* when, Health& health) {
  if (const auto what = clock_limit(device)) health.limits.push_back({when, *what});
}

}  // namespace

Health probe_cuda(Device& device) {
  Health health;
  std::vector<Probe>& probes = health.probes;
  add_facts(device.facts(), probes);
  attempt("other processes", probes, [&] { add_neighbours(device.facts(), probes); });
  note_limit(device, "before", health);
  const std::string no_cupti = prepare_cupti(0);  // as it was before the device was opened
  health.times = no_cupti.empty();
  attempt("timers", probes, [&] {
    const std::unique_ptr<Timer> event = make_event_timer(device);
    const std::unique_ptr<Timer> cupti = no_cupti.empty() ? make_cupti_timer(device) : nullptr;
    add_timers(no_cupti, cupti ? cupti->tick_ns() : 0, event->tick_ns(), probes);
    Timer& timer = cupti ? *cupti : *event;
    // Two buffers, as a case has several problem sets: whole MiB, of which two fit in L2.
    const int64_t cache = device.facts().cache_bytes;
    const int64_t bytes = std::clamp(cache / 3 / kMega * kMega, kMega, kRulerMost);
    RulerProblem first(device, bytes), second(device, bytes);
    const Variant read = ruler_variant("read", Backend::cuda, launch_read);
    const Subject subject{&read, {&first, &second}};
    if (cupti) {
      attempt("events add", probes, [&] { add_event_cost(*event, *cupti, subject, probes); });
    }
    attempt("flush", probes, [&] { add_flush_cost(device, subject, probes); });
    attempt("coldness", probes, [&] { add_coldness(timer, subject, probes); });
    attempt("A/A ratio", probes, [&] {
      add_noise(take_turns(timer, subject, {}), timer.tick_ns(), quiet_of(Backend::cuda), health);
    });
  });
  note_limit(device, "behind the probes", health);
  attempt("clocks", probes, [&] { add_state(device.facts(), probes); });
  attempt("energy counter", probes, [&] { add_energy(device.facts(), probes); });
  return health;
}

}  // namespace moegate
