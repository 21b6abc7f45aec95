// SPDX-License-Identifier: Apache-2.0
// Probes of the host: caches, instruction sets, the clock, the proof that cold is cold, bandwidth
// ceilings by OpenMP, noise. Uses the host timer, so what it proves is what is used.
#include <omp.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>

#include "harness/timing/probe.h"

namespace moegate {
namespace {

using Clock = std::chrono::steady_clock;

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

/// This thread's part of `count` words.
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
  probes.push_back({.name = "device", .value = facts.name, .note = facts.uuid});
  probes.push_back({.name = "system", .value = facts.driver});
  probes.push_back({.name = "hardware threads", .value = fmt::format("{}", facts.processors)});
  probes.push_back({.name = "instruction sets", .value = instruction_sets()});
  const bool known = facts.cache_bytes > 0;
  probes.push_back(
      {.name = "last-level cache",
       .value = known ? fmt::format("{:.1f}", double(facts.cache_bytes) / kMega) : "unknown",
       .unit = known ? "MiB" : "",
       .note = known ? "" : "the system does not say",
       .ok = known});
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
      {.name = "cold / warm",
       .value = fmt::format("{:.2f}", miss.ns / hit.ns),
       .note = proven ? "flushing makes the caches cold" : "flushing does not make caches cold",
       .ok = proven});
}

/// Fastest piece in bytes per second: the machine may be shared, a ceiling is what was possible. On a
/// busy one that is never a whole sweep, which takes longer than a thread keeps its processor, but a
/// slice of it, as a launch is.
template <class Work>
double best_rate(int64_t words, int64_t bytes_per_word, const Work& work) {
  const auto start = Clock::now();
  double best = 0;
  const auto run = [&](int64_t begin, int64_t count) {
    const auto before = Clock::now();
    work(begin, count);
    const std::chrono::duration<double> took = Clock::now() - before;
    best = std::max(best, static_cast<double>(count * bytes_per_word) / took.count());
  };
  do {
    run(0, words);
    for (int64_t at = 0; at + kSliceWords <= words; at += kSliceWords) run(at, kSliceWords);
  } while (std::chrono::duration<double>(Clock::now() - start).count() < kSweepSeconds);
  return best;
}

/// Asks for large pages: a sweep over half a gigabyte of small ones measures address translation.
void want_large_pages(void* data, size_t bytes) {
  constexpr size_t kLarge = size_t{2} << 20;
  const auto begin = (reinterpret_cast<uintptr_t>(data) + kLarge - 1) / kLarge * kLarge;
  const auto end = (reinterpret_cast<uintptr_t>(data) + bytes) / kLarge * kLarge;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

}  // namespace

Health probe_host(Device& device) {
  Health health;
  std::vector<Probe>& probes = health.probes;
  const DeviceFacts& facts = device.facts();
  add_facts(facts, probes);
  try {
    const std::unique_ptr<Timer> timer = make_host_timer(device);
    probes.push_back({.name = "clock tick",
                      .value = fmt::format("{:.0f}", timer->tick_ns()),
                      .unit = "ns",
                      .note = "steady_clock"});
    // A quarter of the cache stays cached while other programs use the rest.
    const int64_t bytes = std::clamp(facts.cache_bytes / 4, kMega, kRulerMost);
    RulerProblem first(device, bytes);
    const Variant read = ruler_variant("read", Backend::host, launch_read);
    const Subject subject{&read, {&first}};
    add_coldness(*timer, subject, bytes, probes);
    add_noise(take_turns(*timer, subject, {}), timer->tick_ns(), quiet_of(Backend::host), health);
  } catch (const std::exception& error) {
    health.times = false;
    probes.push_back({.name = "timer", .value = "unavailable", .note = error.what(), .ok = false});
  }
  return health;
}

std::map<std::string, double> measure_host_ceilings(Device& device) {
  std::map<std::string, double> ceilings;
  const int64_t bytes = std::clamp(4 * device.facts().cache_bytes, kSweepLeast, kSweepMost);
  const int64_t half = bytes / 16;  // words of half the buffer
  try {
    const auto release = [&](void* p) { device.release(p); };
    const std::unique_ptr<void, decltype(release)> memory(
        device.allocate(static_cast<size_t>(bytes)), release);
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

}  // namespace moegate
