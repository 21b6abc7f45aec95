// SPDX-License-Identifier: Apache-2.0
// Probes that are the same on both backends, and the choice between them.
#include "harness/timing/probe.h"

#include <omp.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>

#include "harness/base/deadline.h"
#include "harness/base/stats.h"
#include "harness/device/nvml.h"
#include "harness/device/open.h"

namespace moegate {

// Probes of the host: caches, instruction sets, the clock, the proof that cold is cold, bandwidth
// ceilings by OpenMP, noise. Uses the host timer, so what it proves is what is used.

namespace {

constexpr int64_t kMega = int64_t{1} << 20;
constexpr int64_t kRulerMost = 8 * kMega;  // small enough to flush and read 200 times
constexpr int64_t kSweepLeast = 64 * kMega;
constexpr int64_t kSweepMost = 512 * kMega;  // some machines report half a gigabyte of cache
constexpr int64_t kSliceWords = 2 * kMega;   // 16 MiB of them: milliseconds
constexpr double kSweepSeconds = 0.3;        // for each of read and copy
constexpr double kColdLeast = 1.2;
constexpr int kSamples = 100;

#if defined(__x86_64__)
// Wide loads where the processor has them: with narrow ones two cores do not fill a memory channel.
#define MOEGATE_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define MOEGATE_CLONES
#endif

MOEGATE_CLONES uint64_t sum_range(const uint64_t* words, int64_t count) {
  uint64_t sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) sum += words[i];
  return sum;
}

MOEGATE_CLONES void copy_range(uint64_t* to, const uint64_t* from, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) to[i] = from[i];
}

struct Range {
  int64_t begin, count;
};

Range my_part(int64_t count) {
  const int64_t threads = omp_get_num_threads(), me = omp_get_thread_num();
  const int64_t begin = count * me / threads;
  return {begin, count * (me + 1) / threads - begin};
}

uint64_t sum_words(const uint64_t* words, int64_t count) {
  uint64_t sum = 0;
#pragma omp parallel reduction(+ : sum)
  {
    const Range part = my_part(count);
    sum += sum_range(words + part.begin, part.count);
  }
  return sum;
}

void copy_words(uint64_t* to, const uint64_t* from, int64_t count) {
#pragma omp parallel
  {
    const Range part = my_part(count);
    copy_range(to + part.begin, from + part.begin, part.count);
  }
}

void keep(uint64_t value) {
  __asm__ volatile("" : : "r"(value));
}

void launch_read(const RulerProblem& problem, const Launch&) {
  const Tensor& buffer = problem.buffer();
  keep(sum_words(buffer.data<uint64_t>(), static_cast<int64_t>(buffer.bytes() / 8)));
}

std::string instruction_sets() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  std::string text;
  const auto add = [&](bool has, const char* name) {
    if (has) text += (text.empty() ? "" : " ") + std::string(name);
  };
  add(__builtin_cpu_supports("avx2"), "avx2");
  add(__builtin_cpu_supports("fma"), "fma");
  add(__builtin_cpu_supports("avx512f"), "avx512f");
  add(__builtin_cpu_supports("avx512vnni"), "avx512vnni");
  add(__builtin_cpu_supports("avx512bf16"), "avx512bf16");
  // CPUID leaf 7, EDX bits 22, 24, 25 (Intel SDM): g++ 12 has no name for AMX in supports().
  unsigned a = 7, b = 0, c = 0, d = 0;
  __asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  add((d >> 24 & 1) != 0, "amx-tile");
  add((d >> 22 & 1) != 0, "amx-bf16");
  add((d >> 25 & 1) != 0, "amx-int8");
  return text.empty() ? "x86-64" : text;
#else
  return "portable";
#endif
}

void add_facts(const DeviceFacts& facts, std::vector<Probe>& probes) {
  probes.push_back({"device", facts.name, "", facts.uuid});
  probes.push_back({"system", facts.driver});
  probes.push_back({"hardware threads", std::to_string(facts.processors)});
  probes.push_back({"instruction sets", instruction_sets()});
  if (facts.cache_bytes > 0) {
    const double mega = double(facts.cache_bytes) / kMega;
    probes.push_back({"last-level cache", fmt::format("{:.1f}", mega), "MiB"});
  } else {
    probes.push_back({"last-level cache", "unknown", "", "the system does not say", false});
  }
}

void add_coldness(Timer& timer, const Subject& subject, int64_t bytes, std::vector<Probe>& probes) {
  Conditions cold, warm;
  warm.cache = Cache::warm;
  const RulerLevel miss = sample_ruler(timer, subject, cold, kSamples);
  const RulerLevel hit = sample_ruler(timer, subject, warm, kSamples);
  const std::string size = fmt::format("read {:.1f} MiB, ", double(bytes) / kMega);
  const Quiet quiet = quiet_of(Backend::host);
  probes.push_back(level_probe(size + "cold", miss, timer.name(), quiet));
  probes.push_back(level_probe(size + "warm", hit, timer.name(), quiet));
  if (miss.valid == 0 || hit.valid == 0) return;
  const bool proven = miss.ns / hit.ns >= kColdLeast;
  probes.push_back(
      {"cold / warm", fmt::format("{:.2f}", miss.ns / hit.ns), "",
       proven ? "flushing makes the caches cold" : "flushing does not make caches cold", proven});
}

/// Fastest piece in bytes per second: the machine may be shared, a ceiling is what was possible. On
/// a busy one that is never a whole sweep, which takes longer than a thread keeps its processor,
/// but a slice of it, as a launch is.
template <class Work>
double best_rate(int64_t words, int64_t bytes_per_word, const Work& work) {
  const Deadline until(kSweepSeconds);
  double best = 0;
  const auto run = [&](int64_t begin, int64_t count) {
    const double before = steady_seconds();
    work(begin, count);
    const double took_s = steady_seconds() - before;
    best = std::max(best, static_cast<double>(count * bytes_per_word) / took_s);
  };
  do {
    run(0, words);
    for (int64_t at = 0; at + kSliceWords <= words; at += kSliceWords) run(at, kSliceWords);
  } while (!until.passed());
  return best;
}

/// Asks for large pages: a sweep over half a gigabyte of small ones measures address translation.
void want_large_pages(void* data, size_t bytes) {
  constexpr size_t kLarge = size_t{2} << 20;
  const auto begin = (reinterpret_cast<uintptr_t>(data) + kLarge - 1) / kLarge * kLarge;
  const auto end = (reinterpret_cast<uintptr_t>(data) + bytes) / kLarge * kLarge;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

constexpr int kWarmUp = 20;
constexpr int kRounds = 10;  // A/A: 200 samples a side, in turns
constexpr int kPerRound = 20;

/// Valid spans of so many samples.
std::vector<double> spans_of(Session& session, int samples, int& invalid) {
  for (int i = 0; i < samples; ++i) session.enqueue();
  std::vector<double> spans;
  for (const Sample& s : session.collect()) {
    if (s.flags == 0) spans.push_back(s.span_ns);
  }
  invalid += samples - static_cast<int>(spans.size());
  return spans;
}

void warm_up(Session& session) {
  int ignored = 0;
  spans_of(session, kWarmUp, ignored);
}

std::vector<double> all_of(const std::vector<std::vector<double>>& turns) {
  std::vector<double> all;
  for (const std::vector<double>& turn : turns) all.insert(all.end(), turn.begin(), turn.end());
  return all;
}

}  // namespace

Health probe_host(Device& device) {
  Health health;
  std::vector<Probe>& probes = health.probes;
  const DeviceFacts& facts = device.facts();
  add_facts(facts, probes);
  try {
    const std::unique_ptr<Timer> timer = make_host_timer(device);
    probes.push_back({"clock tick", fmt::format("{:.0f}", timer->tick_ns()), "ns", "steady_clock"});
    // A quarter of the cache stays cached while other programs use the rest.
    const int64_t bytes = std::clamp(facts.cache_bytes / 4, kMega, kRulerMost);
    RulerProblem first(device, bytes);
    const Variant read = ruler_variant("read", Backend::host, launch_read);
    const Subject subject{&read, {&first}};
    add_coldness(*timer, subject, bytes, probes);
    add_noise(take_turns(*timer, subject, {}), timer->tick_ns(), quiet_of(Backend::host), health);
  } catch (const std::exception& error) {
    health.times = false;
    probes.push_back({"timer", "unavailable", "", error.what(), false});
  }
  return health;
}

std::map<std::string, double> measure_host_ceilings(Device& device) {
  std::map<std::string, double> ceilings;
  const int64_t bytes = std::clamp(4 * device.facts().cache_bytes, kSweepLeast, kSweepMost);
  const int64_t half = bytes / 16;  // words of half the buffer
  try {
    const DeviceMemory memory(device.allocate(static_cast<size_t>(bytes)), {&device});
    want_large_pages(memory.get(), static_cast<size_t>(bytes));
    auto* words = static_cast<uint64_t*>(memory.get());
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < 2 * half; ++i) words[i] = static_cast<uint64_t>(i);  // places the pages
    ceilings["read_bytes_per_s"] =
        best_rate(2 * half, sizeof(uint64_t),
                  [&](int64_t at, int64_t count) { keep(sum_words(words + at, count)); });
    ceilings["copy_bytes_per_s"] = best_rate(
        half, 2 * sizeof(uint64_t),
        [&](int64_t at, int64_t count) { copy_words(words + at, words + half + at, count); });
  } catch (const Error&) {
    // Too little memory: no ceiling is better than a wrong one.
  }
  return ceilings;
}

RulerProblem::RulerProblem(Device& device, int64_t bytes) : Problem(device) {
  buffer_ = &make_tensor("buffer", Role::weight, DType::u8, {bytes});
  buffer_->fill(1);
  device.synchronize();
}

Cost RulerProblem::cost() const {
  return {.flops = 0, .read_bytes = static_cast<double>(buffer_->bytes()), .write_bytes = 0};
}

Variant ruler_variant(const std::string& name, Backend backend,
                      void (*launch)(const RulerProblem&, const Launch&)) {
  Variant variant;
  variant.op = "ruler";
  variant.name = name;
  variant.backend = backend;
  variant.launch = [launch](Problem& problem, const Launch& where) {
    launch(static_cast<const RulerProblem&>(problem), where);
  };
  return variant;
}

Probe chip_probe(int capability, bool compiled_by_driver) {
  constexpr int kRunOn = 90;  // all that moegate's developers have
  std::string note = compiled_by_driver
                         ? "the driver compiles moegate's code for it, and another driver counts "
                           "as a change; -DMOEGATE_ALL_CHIPS=ON builds machine code"
                         : "machine code";
  if (capability != kRunOn) {
    note +=
        "; moegate was compiled for this chip, but its developers run it on sm_90 only: tell "
        "them what you see";
  }
  return {"chip", fmt::format("sm_{}", capability), "", note};
}

Probe whole_probe(const std::string& name, bool is_virtual, const std::string& kernel) {
  const auto no = [](const char* what, const char* note) {
    return Probe{"whole GPU", what, "", note, false};
  };
  if (name.find(" MIG ") != std::string::npos) {
    return no("MIG slice", "other slices share L2 and memory; switch MIG off to measure");
  }
  if (is_virtual) return no("vGPU", "other machines share its SMs; pass a whole GPU through");
  if (kernel.find("microsoft") != std::string::npos) {
    return no("WSL2", "launches and counters go through Windows; measure under Linux");
  }
  return {"whole GPU", "yes", "", "no MIG slice, no vGPU, no WSL2"};
}

RulerLevel sample_ruler(Timer& timer, const Subject& subject, const Conditions& conditions,
                        int samples) {
  const std::unique_ptr<Session> session = timer.open(subject, nullptr, conditions);
  warm_up(*session);
  RulerLevel level;
  const std::vector<double> spans = spans_of(*session, samples, level.invalid);
  level.valid = static_cast<int>(spans.size());
  if (spans.empty()) return level;
  level.ns = trimmed_mean(spans);
  level.spread = stddev(spans) / level.ns;
  return level;
}

Quiet quiet_of(Backend backend) {
  // Of a GPU: an H200 shows 1.0001, 5 % and none. Of a host: threads share cores, and the gate's
  // margin is ten times as wide.
  if (backend == Backend::cuda) return {.ratio = 0.01, .spread = 0.2, .invalid = 0.05};
  return {.ratio = 0.10, .spread = 1.0, .invalid = 0.5};
}

Probe level_probe(const std::string& name, const RulerLevel& level, const std::string& timer,
                  const Quiet& quiet) {
  const int all = level.valid + level.invalid;
  return {name, fmt::format("{:.2f}", level.ns * 1e-3), "us",
          fmt::format("{}, {} samples, {} invalid, spread {:.1f} % (good: below {:.0f} %)", timer,
                      level.valid, level.invalid, 100 * level.spread, 100 * quiet.spread),
          level.valid > 0 && level.invalid <= quiet.invalid * all && level.spread < quiet.spread};
}

Turns take_turns(Timer& timer, const Subject& subject, const Conditions& conditions) {
  const std::unique_ptr<Session> session_a = timer.open(subject, nullptr, conditions);
  const std::unique_ptr<Session> session_b = timer.open(subject, nullptr, conditions);
  warm_up(*session_a);
  warm_up(*session_b);
  Turns turns;
  for (int round = 0; round < kRounds; ++round) {
    const bool a_first = round % 2 == 0;
    for (const bool is_a : {a_first, !a_first}) {
      Session& session = is_a ? *session_a : *session_b;
      (is_a ? turns.a : turns.b).push_back(spans_of(session, kPerRound, turns.invalid));
    }
  }
  return turns;
}

void add_noise(const Turns& turns, double tick_ns, const Quiet& quiet, Health& health) {
  const std::vector<double> a = all_of(turns.a), b = all_of(turns.b);
  std::vector<double> ratios;
  for (size_t turn = 0; turn < turns.a.size(); ++turn) {
    if (turns.a[turn].empty() || turns.b[turn].empty()) continue;
    ratios.push_back(trimmed_mean(turns.a[turn]) / trimmed_mean(turns.b[turn]));
  }
  if (ratios.size() < 2) {
    health.probes.push_back({"A/A ratio", "unavailable", "", "no valid sample", false});
    return;
  }
  for (const double ratio : ratios) health.log_ratios.push_back(std::log(ratio));
  health.tick = tick_ns / trimmed_mean(b);
  const double ratio = trimmed_mean(a) / trimmed_mean(b);
  const Interval interval = geometric_mean_interval(ratios);
  const double reach = 0.5 * std::log(interval.high / interval.low);
  const auto valid = static_cast<double>(a.size() + b.size());
  health.quiet = std::abs(ratio - 1) <= quiet.ratio && reach <= 3 * quiet.ratio &&
                 turns.invalid <= quiet.invalid * (valid + turns.invalid);
  const std::string note = fmt::format(
      "same launch twice, {} + {} samples in turns: known to {:.2g} % (good: 1 within {:.0f} %, "
      "known to {:.0f} %); spread {:.1f} % and {:.1f} %, {} invalid",
      a.size(), b.size(), 100 * reach, 100 * quiet.ratio, 300 * quiet.ratio,
      100 * stddev(a) / mean(a), 100 * stddev(b) / mean(b), turns.invalid);
  health.probes.push_back({"A/A ratio", fmt::format("{:.4f}", ratio), "", note, health.quiet});
}

std::optional<std::string> clock_limit(const Device& device) {
  if (device.facts().backend == Backend::host) return std::nullopt;
  const GpuState state = read_gpu_state(device.facts().uuid);
  if (!state.why_none.empty()) return std::nullopt;
  return throttle_text(state);
}

Probe limits_probe(std::span<const ClockLimit> limits) {
  Probe probe{.name = "clock held down by", .value = "nothing"};
  for (const ClockLimit& limit : limits) {
    probe.note += (probe.note.empty() ? "looked at " : ", ") + limit.when;
    if (limit.what.empty()) continue;
    probe.value = probe.value == "nothing" ? "" : probe.value + "; ";
    probe.value += fmt::format("{} ({})", limit.what, limit.when);
    probe.ok = probe.ok && limit.when == kBehindCeilings;
  }
  return probe;
}

Health probe_device(Device& device) {
  return device.facts().backend == Backend::cuda ? probe_cuda(device) : probe_host(device);
}

std::map<std::string, double> measure_ceilings(Device& device) {
  return device.facts().backend == Backend::cuda ? measure_cuda_ceilings(device)
                                                 : measure_host_ceilings(device);
}

}  // namespace moegate
