// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/devices.h"

#include <algorithm>
#include <string_view>

#include "harness/base/error.h"

namespace moegate {
namespace {

constexpr std::string_view kGpu = "cuda:";

/// "cuda:1" of "cuda:1", "1" and "01".
std::string numbered_gpu(std::string_view name, const std::string& spec) {
  const std::string_view digits = name.starts_with(kGpu) ? name.substr(kGpu.size()) : name;
  constexpr size_t kMostDigits = 3;
  const bool number = !digits.empty() && digits.size() <= kMostDigits &&
                      digits.find_first_not_of("0123456789") == std::string_view::npos;
  if (!number) {
    usage_error(
        "--device {}: '{}' is no GPU that others could share a run with; number them, as in "
        "cuda:0,1, and measure on any other device by itself",
        spec, name);
  }
  return fmt::format("{}{}", kGpu, std::stoi(std::string(digits)));
}

}  // namespace

std::vector<std::string> devices_of(const std::string& spec) {
  if (spec.find(',') == std::string::npos) return {spec};
  std::vector<std::string> devices;
  for (size_t from = 0; from <= spec.size();) {
    const size_t comma = std::min(spec.find(',', from), spec.size());
    const std::string gpu = numbered_gpu(std::string_view(spec).substr(from, comma - from), spec);
    if (std::ranges::count(devices, gpu) > 0) {
      usage_error("--device {}: names {} twice; name each GPU once", spec, gpu);
    }
    devices.push_back(gpu);
    from = comma + 1;
  }
  return devices;
}

std::string device_list(const std::vector<std::string>& devices) {
  std::string list;
  for (const std::string& device : devices) {
    list += list.empty() ? device : "," + device.substr(kGpu.size());
  }
  return list;
}

int gpu_number(const std::string& device) {
  return std::stoi(device.substr(kGpu.size()));
}

}  // namespace moegate
