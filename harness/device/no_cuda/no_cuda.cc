// SPDX-License-Identifier: Apache-2.0
// CUDA devices in a build without CUDA: every entry says what is missing and what to do about it,
// so that callers need no conditional compilation.

#include "harness/base/error.h"
#include "harness/device/cuda/delay.h"
#include "harness/device/open.h"

namespace moegate {

[[noreturn]] void refuse_cuda(const std::string& what) {
  constexpr const char* kRemedy =
      "rebuild with -DMOEGATE_CUDA=ON where nvcc is installed, or use --device host";
  give_up(Exit::environment, "{}: {}; {}", what, kNoCuda, kRemedy);
}

std::unique_ptr<Device> open_cuda_device(int ordinal) {
  refuse_cuda(fmt::format("cannot open cuda:{}", ordinal));
}

std::unique_ptr<Device> open_guest_cuda_device(int ordinal, void*) {
  return open_cuda_device(ordinal);
}

bool is_being_captured(void*) {
  return false;
}

std::vector<DeviceFacts> cuda_devices(std::string* why_none) {
  if (why_none) *why_none = kNoCuda;
  return {};
}

void launch_delay(void*, int64_t) {
  refuse_cuda("no delay on a GPU");
}

double delay_cycles_per_step() {
  refuse_cuda("no delay on a GPU");
}

void launch_scale(void*, void*, DType, int64_t, float) {
  refuse_cuda("no scaling on a GPU");
}

}  // namespace moegate
