// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/own_home.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "harness/base/environment.h"
#include "harness/base/error.h"
#include "harness/base/files.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;

constexpr size_t kNameDigits = 12;

/// Where what is compiled, tuned or installed is kept, below the own home.
constexpr std::array<std::pair<const char*, const char*>, 17> kOwn = {{
    {"HOME", ""},
    {"TMPDIR", ".tmp"},
    {"XDG_CACHE_HOME", ".cache"},
    {"PYTHONUSERBASE", ".local"},
    {"PYTHONPYCACHEPREFIX", ".cache/pycache"},
    {"TRITON_HOME", ""},
    {"TRITON_CACHE_DIR", ".triton/cache"},
    {"TORCHINDUCTOR_CACHE_DIR", ".cache/torchinductor"},
    {"TORCH_EXTENSIONS_DIR", ".cache/torch_extensions"},
    {"CUDA_CACHE_PATH", ".nv/ComputeCache"},
    {"NUMBA_CACHE_DIR", ".cache/numba"},
    {"CUPY_CACHE_DIR", ".cupy/kernel_cache"},
    {"DG_JIT_CACHE_DIR", ".deep_gemm"},
    {"DG_CACHE_DIR", ".deep_gemm"},
    {"FLASHINFER_WORKSPACE_BASE", ""},
    {"TVM_FFI_CACHE_DIR", ".cache/tvm-ffi"},
    {"VLLM_CACHE_ROOT", ".cache/vllm"},
}};

/// Of the user's home: caches, which are every side's own, and what has such parts.
const std::set<std::string>& not_linked() {
  static const std::set<std::string> names = {".cache", ".local",     ".triton", ".nv",
                                              ".cupy",  ".deep_gemm", ".tvm",    ".aiter",
                                              ".numba", ".keras"};
  return names;
}

/// Files there that tools read their settings from. Others may be what a kernel has tuned.
const std::set<std::string>& settings() {
  static const std::set<std::string> names = {".gitconfig", ".git-credentials", ".netrc",
                                              ".condarc",   ".pypirc",          ".npmrc"};
  return names;
}

/// In a cache, what is kept by its content, or has no kernels: packages, compiled objects, models.
constexpr std::array kSharedCaches = {"pip", "uv", "ccache", "huggingface", "bazel"};

void link(const fs::path& from, const fs::path& to) {
  std::error_code there;
  if (fs::exists(from, there)) fs::create_symlink(from, to, there);
}

/// The entries of one folder, in another.
void link_entries(const fs::path& from, const fs::path& to, const std::set<std::string>& without) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(from, ignored)) {
    const std::string name = entry.path().filename();
    if (without.contains(name)) continue;
    if (entry.is_directory(ignored) || settings().contains(name)) link(entry.path(), to / name);
  }
}

/// Packages that the user installed stay where they are and are found behind those of the checkout.
void link_packages(const fs::path& from, const fs::path& to) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(from, ignored)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with("python")) {
      link(entry.path(), to / name);
      continue;
    }
    const fs::path packages = entry.path() / "site-packages", own = to / name / "site-packages";
    if (!fs::is_directory(packages, ignored)) continue;
    fs::create_directories(own, ignored);
    // Read in the order of their names: the checkout's own come first.
    write_file_atomically(own / "zzz_of_the_user.pth",
                          fmt::format("import site; site.addsitedir({})\n",
                                      nlohmann::json(packages.string()).dump()));
  }
}

fs::path users(const char* variable, const fs::path& otherwise) {
  const std::string set = environment(variable);
  return set.empty() ? otherwise : fs::path(set);
}

}  // namespace

fs::path own_folder(const fs::path& checkout) {
  return checkout.parent_path() / (checkout.filename().string().substr(0, kNameDigits) + ".own");
}

std::map<std::string, std::string> own_variables(const fs::path& checkout) {
  std::map<std::string, std::string> variables;
  for (const auto& [name, below] : kOwn) {
    const fs::path home = own_folder(checkout);
    variables[name] = *below == 0 ? home : home / below;
  }
  return variables;
}

void make_own_home(const fs::path& checkout) {
  const fs::path home = own_folder(checkout);
  std::error_code error;
  for (const auto& [name, below] : kOwn) {
    if (!error) fs::create_directories(home / below, error);
  }
  if (!error) fs::create_directories(home / ".local" / "lib", error);
  if (error) usage_error("{}: {}; set XDG_CACHE_HOME", home.string(), error.message());
  const fs::path theirs = environment("HOME");
  if (theirs.empty()) return;
  link_entries(theirs, home, not_linked());
  link_entries(theirs / ".local", home / ".local", {"lib", "state"});
  const fs::path packages = users("PYTHONUSERBASE", theirs / ".local");
  link_packages(packages / "lib", home / ".local" / "lib");
  const fs::path cache = users("XDG_CACHE_HOME", theirs / ".cache");
  for (const char* shared : kSharedCaches) link(cache / shared, home / ".cache" / shared);
}

}  // namespace moegate
