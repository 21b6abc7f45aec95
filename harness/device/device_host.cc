// SPDX-License-Identifier: Apache-2.0
// The host as a device, and the choice among devices by name.
#include <omp.h>
#include <re2/re2.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>

#include "harness/base/error.h"
#include "harness/device/hash_words.h"
#include "harness/device/open.h"

namespace moegate {
namespace {

/// First "key : value" of each key in /proc/cpuinfo; empty where there is no such file.
std::map<std::string, std::string> cpu_info() {
  std::map<std::string, std::string> info;
  static const RE2 key_and_value(R"((.*?)[ \t]*:[ \t]*([^ \t].*))");
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    std::string key, value;
    if (RE2::FullMatch(line, key_and_value, &key, &value)) info.emplace(key, value);
  }
  return info;
}

std::string isa() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) return "avx512";
  if (__builtin_cpu_supports("avx2")) return "avx2";
  return "x86-64";
#else
  return "portable";
#endif
}

int usable_threads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return CPU_COUNT(&set);
}

/// Gives every OpenMP thread a core of its own, so that no sample pays for a migration.
void pin_threads(int threads) {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (sched_getaffinity(0, sizeof usable, &usable) != 0) return;
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &usable)) cpus.push_back(cpu);
  }
  omp_set_dynamic(0);
  omp_set_num_threads(threads);
#pragma omp parallel num_threads(threads)
  {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpus[static_cast<size_t>(omp_get_thread_num()) % cpus.size()], &one);
    sched_setaffinity(0, sizeof one, &one);
  }
}

DeviceFacts host_facts() {
  const auto cpu = cpu_info();
  const auto at = [&](const char* key) {
    const auto it = cpu.find(key);
    return it == cpu.end() ? std::string("unknown") : it->second;
  };
  utsname system{};
  uname(&system);
  DeviceFacts facts;
  facts.backend = Backend::host;
  facts.processors = usable_threads();
#if defined(__aarch64__)
  // Linux gives numbers in the place of a name.
  facts.name = fmt::format("Arm {} {}", at("CPU implementer"), at("CPU part"));
  facts.klass = class_name(fmt::format("host {} {} {}t", facts.name, isa(), facts.processors));
#else
  facts.name = at("model name");
  // Family and model keep apart processors that a hypervisor gives the same name.
  facts.klass = class_name(fmt::format("host {} f{}m{} {} {}t", facts.name, at("cpu family"),
                                       at("model"), isa(), facts.processors));
#endif
  facts.uuid = system.nodename;
  const long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
  facts.cache_bytes = cache > 0 ? cache : sysconf(_SC_LEVEL2_CACHE_SIZE);
  facts.memory_bytes = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  facts.driver = fmt::format("{} {}", system.sysname, system.release);
  return facts;
}

class HostDevice : public Device {
 public:
  explicit HostDevice(bool pins) {
    facts_ = host_facts();
    if (pins) pin_threads(facts_.processors);
  }
  void* allocate(size_t bytes) override {
    constexpr size_t kAlign = 256;
    void* p = std::aligned_alloc(kAlign, (bytes + kAlign - 1) / kAlign * kAlign);
    if (!p) give_up(Exit::environment, "out of memory: {} bytes", bytes);
    return p;
  }
  void release(void* p) noexcept override { std::free(p); }
  void upload(void* to, const void* from, size_t bytes) override { std::memcpy(to, from, bytes); }
  void download(void* to, const void* from, size_t bytes) override { std::memcpy(to, from, bytes); }
  void copy(void* to, const void* from, size_t bytes) override { std::memcpy(to, from, bytes); }
  void fill(void* to, uint8_t byte, size_t bytes) override { std::memset(to, byte, bytes); }
  void fill_random(void* to, size_t units, const RandomFill& what) override {
#pragma omp parallel for schedule(static) if (units > 100000)
    for (size_t i = 0; i < units; ++i) write_random_unit(what, to, i);
  }
  uint64_t hash(const void* data, size_t bytes) override {
    return hash_of_words(data, bytes, [](uint64_t word) { return word; });
  }
  std::vector<RowDistance> row_distances(const RowPairs& pairs) override {
    std::vector<RowDistance> all(static_cast<size_t>(pairs.rows));
#pragma omp parallel for schedule(static) if (pairs.rows * pairs.width > 100000)
    for (int64_t r = 0; r < pairs.rows; ++r) {
      add_row_distance(pairs, pairs.out_places, pairs.reference_places, r, 0, 1,
                       all[static_cast<size_t>(r)]);
    }
    return all;
  }
  void synchronize() override {}
};

std::string first_line(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

}  // namespace

std::unique_ptr<Device> open_host_device() {
  return std::make_unique<HostDevice>(true);
}

std::unique_ptr<Device> open_guest_host_device() {
  return std::make_unique<HostDevice>(false);
}

int cuda_ordinal(const std::string& spec) {
  if (spec == "host") return -1;
  if (spec == "auto" || spec == "cuda") return 0;
  int ordinal = 0;
  if (RE2::FullMatch(spec, "cuda:(\\d{1,3})", &ordinal)) return ordinal;
  usage_error("unknown device '{}'; use auto, host, cuda or cuda:N", spec);
}

std::unique_ptr<Device> open_device(const std::string& spec) {
  const int ordinal = cuda_ordinal(spec);
  return means_host(spec) ? open_host_device() : open_cuda_device(ordinal);
}

// Whether a machine has a GPU is asked of its bus: without a driver nothing else knows.

std::string nvidia_gpu(const std::filesystem::path& bus) {
  std::error_code ignored;  // a machine without this bus has none
  for (const auto& device : std::filesystem::directory_iterator(bus, ignored)) {
    const bool nvidia = first_line(device.path() / "vendor") == "0x10de";
    const bool display = first_line(device.path() / "class").starts_with("0x03");
    if (nvidia && display) return device.path().filename().string();
  }
  return "";
}

bool means_host(const std::string& spec) {
  if (cuda_ordinal(spec) < 0) return true;
  std::string why;
  if (spec != "auto" || !cuda_devices(&why).empty()) return false;
  const std::string gpu = nvidia_gpu("/sys/bus/pci/devices");
  if (gpu.empty()) return true;
  give_up(Exit::environment,
          "--device auto: there is an NVIDIA GPU ({}), but it cannot be used: {}; repair the "
          "driver, or ask for --device host",
          gpu, why);
}

}  // namespace moegate
