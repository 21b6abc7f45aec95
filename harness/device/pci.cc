// SPDX-License-Identifier: Apache-2.0
// Whether a machine has a GPU is asked of its bus: without a driver nothing else knows.
#include <fstream>

#include "harness/base/error.h"
#include "harness/device/open.h"

namespace moegate {
namespace {

std::string first_line(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

}  // namespace

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
  throw Error(Exit::environment,
              fmt::format("--device auto: there is an NVIDIA GPU ({}), but it cannot be used: {}; "
                          "repair the driver, or ask for --device host",
                          gpu, why));
}

}  // namespace moegate
