// SPDX-License-Identifier: Apache-2.0
#include "harness/plugin/loaded_files.h"

#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>

#include "harness/base/environment.h"
#include "harness/base/hash.h"
#include "harness/plugin/open_watch.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;

struct Known {
  bool counts = false;
  FileStamp stamp{};
  LoadedFile file;
};

struct State {
  std::vector<std::string> roots, left_out;  // with their final slash
  std::vector<std::function<std::vector<std::string>()>> sources;
  std::map<std::string, Known> known;  // by the path that was used
};
State& state() {
  static State one;
  return one;
}

std::string with_slash(const std::string& folder) {
  return folder.ends_with('/') ? folder : folder + '/';
}

std::string resolved(const std::string& path) {
  char* real = realpath(path.c_str(), nullptr);
  const std::string text = real ? real : path;
  std::free(real);
  return text;
}

bool is_below(const std::string& path, std::string_view folder) {
  return std::string_view(path).starts_with(folder);
}

/// What installed packages are made of lies among the system's files, and is none of them.
bool is_package(const std::string& path) {
  return path.find("/site-packages/") != path.npos || path.find("/dist-packages/") != path.npos;
}

bool is_systems(const std::string& path) {
  for (const char* folder : {"/proc/", "/sys/", "/dev/", "/etc/", "/run/"}) {
    if (is_below(path, folder)) return true;
  }
  if (is_package(path)) return false;
  for (const char* folder : {"/lib/", "/lib32/", "/lib64/", "/bin/", "/sbin/", "/usr/local/cuda"}) {
    if (is_below(path, folder)) return true;
  }
  return is_below(path, "/usr/") && !is_below(path, "/usr/local/");
}

/// What compilers of kernels keep for themselves: of code that is hashed where it runs. Choices that
/// Triton's autotuner made are none of it.
bool is_compilers(const std::string& path) {
  if (path.find("/.nv/ComputeCache/") != path.npos) return true;
  const std::string named = environment("TRITON_CACHE_DIR");
  const bool triton = path.find("/.triton/cache/") != path.npos ||
                      (!named.empty() && is_below(path, with_slash(resolved(named))));
  return triton && path.find("autotune") == path.npos;
}

/// `is_module`: an interpreter says that it runs it, compiled or not.
bool counts(const std::string& path, bool is_module) {
  // Packages are installed below the standard library.
  const auto left_out = [&](const std::string& folder) {
    return is_below(path, folder) && !is_package(path.substr(folder.size() - 1));
  };
  if (is_systems(path) || is_compilers(path)) return false;
  if (std::ranges::any_of(state().left_out, left_out)) return false;
  return is_module || !path.ends_with(".pyc");
}

std::string name_of(const std::string& path) {
  for (const std::string& root : state().roots) {
    if (is_below(path, root)) return path.substr(root.size());
  }
  return path;
}

/// Looks at a file again where it may have changed. False: it is no file with a content.
bool refresh(Known& known) {
  const std::optional<FileStamp> stamp = stamp_of(known.file.path);
  if (!stamp) {
    known.file.hash.clear();
    std::error_code ignored;
    return !fs::exists(known.file.path, ignored);
  }
  if (*stamp == known.stamp && !known.file.hash.empty()) return true;
  known.stamp = *stamp;
  known.file.hash = content_hash(known.file.path, *stamp);
  return true;
}

void add(const std::string& path, bool is_module) {
  const auto [at, is_new] = state().known.try_emplace(path);
  if (!is_new && (at->second.counts || !is_module)) return;
  Known& known = at->second;
  known.file.path = resolved(path);
  known.counts = counts(known.file.path, is_module) && refresh(known);
  if (!known.counts) return;
  known.file.name = name_of(known.file.path);
  if (known.file.path != path) known.file.as = path;
}

int add_library(dl_phdr_info* info, size_t, void* libraries) {
  static_cast<std::vector<std::string>*>(libraries)->emplace_back(info->dlpi_name);
  return 0;
}

/// Of the program itself, and of what was installed with it.
bool is_own(const std::string& library) {
  static const fs::path program = resolved("/proc/self/exe");
  const fs::path path = resolved(library);
  return path == program || path.parent_path() == program.parent_path().parent_path() / "lib";
}

}  // namespace

std::string root_of(const std::string& file) {
  const fs::path folder = fs::path(resolved(file)).parent_path();
  std::error_code ignored;
  for (fs::path above = folder; above.has_relative_path(); above = above.parent_path()) {
    if (fs::exists(above / ".git", ignored)) return above.string();
  }
  return folder.string();
}

void name_files_below(const std::string& root) {
  state().roots.push_back(with_slash(resolved(root)));
}

void leave_out_files_below(const std::string& folder) {
  state().left_out.push_back(with_slash(resolved(folder)));
}

void ask_for_loaded(std::function<std::vector<std::string>()> modules) {
  state().sources.push_back(std::move(modules));
}

std::vector<LoadedFile> loaded_files() {
  std::vector<std::string> libraries;
  dl_iterate_phdr(add_library, &libraries);
  for (const std::string& library : libraries) {
    if (library.starts_with('/') && !is_own(library)) add(library, true);
  }
  for (const std::string& file : opened_files()) add(file, false);
  for (const auto& source : state().sources) {
    for (const std::string& file : source()) add(file, true);
  }
  std::map<std::string, LoadedFile> files;
  for (auto& [path, known] : state().known) {
    if (!known.counts || !refresh(known)) continue;
    const auto [at, is_new] = files.try_emplace(known.file.path, known.file);
    if (!is_new && at->second.as.empty()) at->second.as = known.file.as;
  }
  std::vector<LoadedFile> all;
  for (auto& [path, file] : files) all.push_back(std::move(file));
  return all;
}

std::string hash_of(const std::vector<LoadedFile>& files) {
  std::vector<std::pair<std::string_view, std::string_view>> named;
  for (const LoadedFile& file : files) {
    if (file.hash.empty()) return "";
    named.emplace_back(file.name, file.hash);
  }
  std::ranges::sort(named);
  uint64_t hash = 0;
  for (const auto& [name, content] : named) {
    hash = hash_bytes(name.data(), name.size(), hash);
    hash = hash_bytes(content.data(), content.size(), hash);
  }
  return fmt::format("{:016x}", hash);
}

}  // namespace moegate
