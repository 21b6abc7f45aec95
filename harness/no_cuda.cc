// SPDX-License-Identifier: Apache-2.0
// The CUDA side of the harness in a build without CUDA: every entry says what is missing and what
// to do about it, so that callers need no conditional compilation.
#include "harness/canary.h"
#include "harness/device.h"
#include "harness/error.h"
#include "harness/probe.h"
#include "harness/timer.h"

namespace moegate {
namespace {

constexpr const char* kWhy = "this moegate was built without CUDA";
constexpr const char* kRemedy =
    "rebuild with -DMOEGATE_CUDA=ON where nvcc is installed, or use --device host";

[[noreturn]] void refuse(const std::string& what) {
  throw Error(Exit::environment, fmt::format("{}: {}; {}", what, kWhy, kRemedy));
}

}  // namespace

std::unique_ptr<Device> open_cuda_device(int ordinal) {
  refuse(fmt::format("cannot open cuda:{}", ordinal));
}

std::vector<DeviceFacts> cuda_devices(std::string* why_none) {
  if (why_none) *why_none = kWhy;
  return {};
}

std::string prepare_cupti(int) {
  return kWhy;
}

std::unique_ptr<Timer> make_cupti_timer(Device&) {
  refuse("no CUPTI timer");
}

std::unique_ptr<Timer> make_event_timer(Device&) {
  refuse("no event timer");
}

void launch_delay(void*, int64_t) {
  refuse("no delay on a GPU");
}

double delay_cycles_per_step() {
  refuse("no delay on a GPU");
}

void launch_scale(void*, void*, DType, int64_t, float) {
  refuse("no scaling on a GPU");
}

std::vector<Probe> probe_cuda(Device&) {
  return {{.name = "CUDA", .value = "unavailable", .unit = "", .note = kWhy, .ok = false}};
}

std::map<std::string, double> measure_cuda_ceilings(Device&) {
  return {};
}

}  // namespace moegate
