// SPDX-License-Identifier: Apache-2.0
#include "harness/worker/jit_caches.h"

#include <algorithm>
#include <array>

#include "harness/base/environment.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;

constexpr auto kVariables = std::to_array<const char*>(
    {"TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "CUDA_CACHE_PATH", "DG_JIT_CACHE_DIR",
     "SGLANG_DG_CACHE_DIR", "FLASHINFER_WORKSPACE_BASE", "AITER_JIT_DIR"});

bool is_empty(const fs::path& folder) {
  std::error_code ignored;  // a folder that is not there has no file
  for (const auto& entry : fs::recursive_directory_iterator(folder, ignored)) {
    if (!entry.is_directory(ignored)) return false;
  }
  return true;
}

}  // namespace

std::map<std::string, std::string> jit_caches(const fs::path& folder) {
  std::map<std::string, std::string> variables;
  for (const char* variable : kVariables) {
    const fs::path own = fs::absolute(folder / variable);
    fs::create_directories(own);
    variables[variable] = own;
  }
  return variables;
}

bool are_jit_caches_empty() {
  return std::ranges::all_of(kVariables, [](const char* variable) {
    const std::string folder = environment(variable);
    return !folder.empty() && is_empty(folder);
  });
}

}  // namespace moegate
