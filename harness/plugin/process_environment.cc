// SPDX-License-Identifier: Apache-2.0
#include "harness/plugin/process_environment.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include "harness/base/hash.h"
#include "harness/plugin/loaded_files.h"

namespace moegate {
namespace {

struct AskedOfEnvironment {
  std::vector<std::string> stated;
  std::function<EnvironmentItems()> further;
};
AskedOfEnvironment& asked_of_environment() {
  static AskedOfEnvironment one;
  return one;
}

/// With these variables begin the names of what CUDA, torch, Triton and engines read.
constexpr auto kPrefixes = std::to_array<std::string_view>(
    {"CUDA_", "CUBLAS_", "CUDNN_", "NVIDIA_", "TORCH", "PYTORCH_", "TRITON_", "VLLM_", "SGLANG_",
     "SGL_", "FLASHINFER_", "DG_", "AITER_", "OMP_"});
constexpr auto kFurther =
    std::to_array<std::string_view>({"LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH"});

bool is_told(std::string_view name) {
  return std::ranges::count(kFurther, name) > 0 ||
         std::ranges::any_of(kPrefixes, [&](std::string_view p) { return name.starts_with(p); });
}

/// Which devices are meant is stored of the device.
bool names_folders_or_devices(const std::string& name, const std::string& value) {
  return value.starts_with('/') || value.starts_with('~') || value.find(":/") != value.npos ||
         name.ends_with("VISIBLE_DEVICES");
}

/// As the process was started: what it sets itself need not be the same in the next one.
std::map<std::string, std::string> variables_at_start() {
  std::map<std::string, std::string> variables;
  std::ifstream in("/proc/self/environ");
  for (std::string text; std::getline(in, text, '\0');) {
    const size_t at = text.find('=');
    if (at != std::string::npos) variables[text.substr(0, at)] = text.substr(at + 1);
  }
  return variables;
}

/// A number as libraries of CUDA tell it: 13000 is 13.0.
std::string thousands(long number) {
  return fmt::format("{}.{}", number / 1000, number % 1000 / 10);
}

/// What a library says of its version by its own function; empty: nothing.
std::string version_of(const std::string& path, std::string_view name) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (!library) return "";
  const auto find = [&](const char* symbol) { return dlsym(library, symbol); };
  std::string version;
  const auto by_pointer = [&](const char* symbol) {
    auto* call = reinterpret_cast<int (*)(int*)>(find(symbol));
    int number = 0;
    return call && call(&number) == 0 ? number : 0;
  };
  const auto by_value = [&](const char* symbol) {
    auto* call = reinterpret_cast<size_t (*)()>(find(symbol));
    return call ? static_cast<long>(call()) : 0;
  };
  const auto by_two = [&](const char* symbol) {
    auto* call = reinterpret_cast<int (*)(int*, int*)>(find(symbol));
    int major = 0, minor = 0;
    if (call && call(&major, &minor) == 0) version = fmt::format("{}.{}", major, minor);
  };
  const auto told = [&](long number) { return number == 0 ? "" : std::to_string(number); };
  if (name.starts_with("libcudart.")) {
    const int number = by_pointer("cudaRuntimeGetVersion");
    if (number != 0) version = thousands(number);
  } else if (name.starts_with("libcuda.")) {
    const int number = by_pointer("cuDriverGetVersion");
    if (number != 0) version = thousands(number);
  } else if (name.starts_with("libcublasLt.")) {
    version = told(by_value("cublasLtGetVersion"));
  } else if (name.starts_with("libcublas.")) {
    auto* call = reinterpret_cast<int (*)(int, int*)>(find("cublasGetProperty"));
    std::array<int, 3> parts{};
    for (int i = 0; call && i < 3; ++i) call(i, &parts[static_cast<size_t>(i)]);
    if (parts[0] != 0) version = fmt::format("{}.{}.{}", parts[0], parts[1], parts[2]);
  } else if (name.starts_with("libcudnn")) {
    version = told(by_value("cudnnGetVersion"));
  } else if (name.starts_with("libnccl.")) {
    version = told(by_pointer("ncclGetVersion"));
  } else if (name.starts_with("libcupti.")) {
    version = told(by_pointer("cuptiGetVersion"));
  } else if (name.starts_with("libnvrtc.")) {
    by_two("nvrtcVersion");
  } else {
    by_two("nvJitLinkVersion");
  }
  dlclose(library);
  return version;
}

constexpr auto kLibraries = std::to_array<std::string_view>(
    {"libcudart.", "libcublas.", "libcublasLt.", "libcudnn", "libnccl.", "libnvrtc.",
     "libnvJitLink.", "libcupti.", "libcuda."});

/// By its name and content: one under two paths is one.
void add_libraries(std::vector<EnvironmentItem>& items) {
  static std::map<std::string, EnvironmentItem> known;  // by path: what is mapped stays
  for (const std::string& path : mapped_libraries()) {
    const std::string name = std::filesystem::path(path).filename();
    const auto begins = [&](std::string_view start) { return name.starts_with(start); };
    if (std::ranges::none_of(kLibraries, begins)) continue;
    const auto [at, is_new] = known.try_emplace(path);
    if (is_new) at->second = {"library", name, version_of(path, name), content_hash(path)};
    items.push_back(at->second);
  }
}

}  // namespace

void state_variables(std::vector<std::string> names) {
  asked_of_environment().stated = std::move(names);
}

void ask_for_environment(std::function<EnvironmentItems()> items) {
  asked_of_environment().further = std::move(items);
}

EnvironmentItems told_variables(const std::map<std::string, std::string>& variables,
                                const std::vector<std::string>& stated) {
  EnvironmentItems items;
  for (const auto& [name, value] : variables) {
    const bool by_user = std::ranges::count(stated, name) > 0;
    if (!by_user && !is_told(name)) continue;
    EnvironmentItem item{.kind = "variable", .name = name, .value = value, .digest = ""};
    item.counts = by_user || !names_folders_or_devices(name, value);
    if (is_secret(name)) {
      constexpr size_t kDigits = 16;
      item.digest = sha256(value).substr(0, kDigits);
      item.value.clear();
    }
    items.push_back(std::move(item));
  }
  return items;
}

EnvironmentItems process_environment() {
  const UnwatchedOpens unwatched;
  std::vector<EnvironmentItem> items =
      told_variables(variables_at_start(), asked_of_environment().stated);
  add_libraries(items);
  if (const auto& further = asked_of_environment().further; further) {
    std::ranges::move(further(), std::back_inserter(items));
  }
  return in_order(std::move(items));
}

}  // namespace moegate
