// SPDX-License-Identifier: Apache-2.0
// Reads NVML through dlopen. The few prototypes are declared here because drivers ship the library
// without its header; they are part of NVML's stable C interface.
#include "harness/device/nvml.h"

#include <fmt/ranges.h>

#include <array>
#include <utility>

#include "harness/base/dynlib.h"

namespace moegate {
namespace {

using Handle = struct NvmlDevice*;
constexpr int kOk = 0;
constexpr int kMoreRoom = 7;                   // NVML_ERROR_INSUFFICIENT_SIZE
constexpr int kClockSm = 1, kClockMemory = 2;  // nvmlClockType_t
constexpr int kTemperatureGpu = 0;             // nvmlTemperatureSensors_t

/// nvmlProcessInfo_t of the calls that end in _v3.
struct ProcessInfo {
  unsigned pid;
  unsigned long long bytes;
  unsigned gpu_instance, compute_instance;
};
static_assert(sizeof(ProcessInfo) == 24);

struct Nvml {
  Dynlib lib{{"libnvidia-ml.so.1", "libnvidia-ml.so"}};
  int (*init)() = lib.find("nvmlInit_v2");
  int (*driver_version)(char*, unsigned) = lib.find("nvmlSystemGetDriverVersion");
  int (*by_uuid)(const char*, Handle*) = lib.find("nvmlDeviceGetHandleByUUID");
  int (*clock)(Handle, int, unsigned*) = lib.find("nvmlDeviceGetClockInfo");
  int (*max_clock)(Handle, int, unsigned*) = lib.find("nvmlDeviceGetMaxClockInfo");
  int (*temperature)(Handle, int, unsigned*) = lib.find("nvmlDeviceGetTemperature");
  int (*power)(Handle, unsigned*) = lib.find("nvmlDeviceGetPowerUsage");
  int (*power_limit)(Handle, unsigned*) = lib.find("nvmlDeviceGetEnforcedPowerLimit");
  // Older spelling first: it exists in every driver, the newer name only in recent ones.
  int (*throttle)(Handle,
                  unsigned long long*) = lib.find("nvmlDeviceGetCurrentClocksThrottleReasons");
  int (*energy)(Handle, unsigned long long*) = lib.find("nvmlDeviceGetTotalEnergyConsumption");
  int (*virtualization)(Handle, unsigned*) = lib.find("nvmlDeviceGetVirtualizationMode");
  int (*processes)(Handle, unsigned*,
                   ProcessInfo*) = lib.find("nvmlDeviceGetComputeRunningProcesses_v3");
  const char* (*error_text)(int) = lib.find("nvmlErrorString");
  std::string why;

  Nvml() {
    if (!lib) {
      why = "no NVML: " + lib.why();
      return;
    }
    if (!throttle) throttle = lib.find("nvmlDeviceGetCurrentClocksEventReasons");
    if (!init || init() != kOk) why = "NVML does not initialise";
  }
};

// Never shut down: the driver keeps the handles valid to the end of the process, and order of
// destruction at exit would be one more thing to get wrong.
Nvml& nvml() {
  static Nvml* instance = new Nvml;
  return *instance;
}

/// The GPU, or null with `why` set.
Handle gpu_of(const std::string& uuid, std::string& why) {
  Nvml& n = nvml();
  Handle device = nullptr;
  if (!n.why.empty()) {
    why = n.why;
  } else if (!n.by_uuid || n.by_uuid(uuid.c_str(), &device) != kOk) {
    why = "NVML knows no GPU " + uuid;
    return nullptr;
  }
  return device;
}

template <class F, class... Args>
std::optional<unsigned> ask(F* function, Args... args) {
  unsigned value = 0;
  if (!function || function(args..., &value) != kOk) return std::nullopt;
  return value;
}

std::optional<double> as_watts(std::optional<unsigned> milliwatts) {
  return milliwatts ? std::optional<double>(*milliwatts / 1000.0) : std::nullopt;
}

// Bits of nvmlDeviceGetCurrentClocksThrottleReasons. Idle (1) is left out: it is no throttling.
constexpr std::array<std::pair<unsigned long long, const char*>, 8> kReasons{{
    {0x002, "application clocks"},
    {0x004, "power cap"},
    {0x008, "hardware slowdown"},
    {0x010, "sync boost"},
    {0x020, "thermal (software)"},
    {0x040, "thermal (hardware)"},
    {0x080, "power brake"},
    {0x100, "display clocks"},
}};

}  // namespace

GpuState read_gpu_state(const std::string& uuid) {
  GpuState state;
  const Handle device = gpu_of(uuid, state.why_none);
  if (!device) return state;
  Nvml& n = nvml();
  state.sm_mhz = ask(n.clock, device, kClockSm);
  state.memory_mhz = ask(n.clock, device, kClockMemory);
  state.sm_max_mhz = ask(n.max_clock, device, kClockSm);
  state.celsius = ask(n.temperature, device, kTemperatureGpu);
  state.watts = as_watts(ask(n.power, device));
  state.limit_watts = as_watts(ask(n.power_limit, device));
  unsigned long long bits = 0;
  if (n.throttle && n.throttle(device, &bits) == kOk) {
    for (const auto& [bit, text] : kReasons) {
      if (bits & bit) state.throttle.emplace_back(text);
    }
  }
  return state;
}

EnergyCounter::EnergyCounter(const std::string& uuid) {
  const Handle gpu = gpu_of(uuid, why_none_);
  if (!gpu) return;
  Nvml& n = nvml();
  if (!n.energy) {
    why_none_ = "this driver's NVML counts no energy";
    return;
  }
  unsigned long long value = 0;
  const int status = n.energy(gpu, &value);
  gpu_ = status == kOk ? gpu : nullptr;
  if (gpu_) return;
  why_none_ = fmt::format("NVML counts no energy of GPU {}: {}", uuid,
                          n.error_text ? n.error_text(status) : fmt::format("error {}", status));
}

std::optional<double> EnergyCounter::millijoules() const {
  unsigned long long value = 0;
  if (!gpu_ || nvml().energy(static_cast<Handle>(gpu_), &value) != kOk) return std::nullopt;
  return static_cast<double>(value);
}

std::optional<int> other_gpu_processes(const std::string& uuid) {
  std::string why;
  const Handle gpu = gpu_of(uuid, why);
  if (!gpu || !nvml().processes) return std::nullopt;
  std::array<ProcessInfo, 64> found;
  auto count = static_cast<unsigned>(found.size());
  const int status = nvml().processes(gpu, &count, found.data());
  // One of them is this process, under whatever number its container gave it.
  if ((status != kOk && status != kMoreRoom) || count == 0) return std::nullopt;
  return static_cast<int>(count) - 1;
}

bool is_virtual_gpu(const std::string& uuid) {
  constexpr unsigned kVgpu = 2;  // nvmlGpuVirtualizationMode_t; 1 is a whole GPU passed through
  std::string why;
  const Handle gpu = gpu_of(uuid, why);
  return gpu && ask(nvml().virtualization, gpu) == kVgpu;
}

std::string nvidia_driver_version() {
  Nvml& n = nvml();
  std::array<char, 96> text{};
  if (!n.why.empty() || !n.driver_version || n.driver_version(text.data(), text.size()) != kOk) {
    return "";
  }
  return text.data();
}

std::string throttle_text(const GpuState& state) {
  return fmt::format("{}", fmt::join(state.throttle, ", "));
}

}  // namespace moegate
