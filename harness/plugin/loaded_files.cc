// SPDX-License-Identifier: Apache-2.0
#include "harness/plugin/loaded_files.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>

#include "harness/base/environment.h"
#include "harness/base/hash.h"

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

/// What installed packages are made of lies among the system's files, and is none of them.
bool is_package(const std::string& path) {
  return path.find("/site-packages/") != path.npos || path.find("/dist-packages/") != path.npos;
}

bool is_systems(const std::string& path) {
  const auto is_below = [&](auto... folders) { return (path.starts_with(folders) || ...); };
  if (is_below("/proc/", "/sys/", "/dev/", "/etc/", "/run/")) return true;
  if (is_package(path)) return false;
  return is_below("/lib/", "/lib32/", "/lib64/", "/bin/", "/sbin/", "/usr/local/cuda") ||
         (is_below("/usr/") && !is_below("/usr/local/"));
}

/// What compilers of kernels keep for themselves: of code that is hashed where it runs. Choices
/// that Triton's autotuner made are none of it.
bool is_compilers(const std::string& path) {
  if (path.find("/.nv/ComputeCache/") != path.npos) return true;
  const auto below_named = [&](const char* variable) {
    const std::string named = environment(variable);
    return !named.empty() && path.starts_with(with_slash(resolved(named)));
  };
  if (below_named("CUDA_CACHE_PATH")) return true;
  const bool triton = path.find("/.triton/cache/") != path.npos || below_named("TRITON_CACHE_DIR");
  return triton && path.find("autotune") == path.npos;
}

/// `is_module`: an interpreter says that it runs it, compiled or not.
bool counts(const std::string& path, bool is_module) {
  // Packages are installed below the standard library.
  const auto left_out = [&](const std::string& folder) {
    return path.starts_with(folder) && !is_package(path.substr(folder.size() - 1));
  };
  if (is_systems(path) || is_compilers(path)) return false;
  if (std::ranges::any_of(state().left_out, left_out)) return false;
  return is_module || !path.ends_with(".pyc");
}

std::string name_of(const std::string& path) {
  size_t longest = 0;  // of the folders that it lies below
  for (const std::string& root : state().roots) {
    if (path.starts_with(root)) longest = std::max(longest, root.size());
  }
  return path.substr(longest);
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
  if (known.counts && known.file.path != path) known.file.as = path;
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
  const std::string folder = with_slash(resolved(root));
  if (std::ranges::count(state().roots, folder) == 0) state().roots.push_back(folder);
}

void leave_out_files_below(const std::string& folder) {
  state().left_out.push_back(with_slash(resolved(folder)));
}

void ask_for_loaded(std::function<std::vector<std::string>()> modules) {
  state().sources.push_back(std::move(modules));
}

std::vector<std::string> mapped_libraries() {
  std::vector<std::string> paths;
  const auto add = [](dl_phdr_info* info, size_t, void* to) {
    static_cast<std::vector<std::string>*>(to)->emplace_back(info->dlpi_name);
    return 0;
  };
  dl_iterate_phdr(add, &paths);
  return paths;
}

std::vector<LoadedFile> loaded_files() {
  for (const std::string& library : mapped_libraries()) {
    if (library.starts_with('/') && !is_own(library)) add(library, true);
  }
  for (const std::string& file : opened_files()) add(file, false);
  for (const auto& source : state().sources) {
    for (const std::string& file : source()) add(file, true);
  }
  std::map<std::string, LoadedFile> files;
  for (auto& [path, known] : state().known) {
    if (!known.counts || !refresh(known)) continue;
    known.file.name = name_of(known.file.path);  // the sources may have named folders
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

// Anything may open a file: a signal handler, a child between fork and exec, a library that is
// being loaded. So a note is a node of a list that only grows, and no lock is taken.

namespace {

struct Note {
  Note* next;
  bool made;  // by this process, before it read it
  char path[1];
};

constexpr size_t kBuckets = 1024;
constinit std::atomic<bool> watching{false};
constinit std::atomic<Note*> notes[kBuckets] = {};

size_t bucket_of(const char* path) {
  size_t hash = 0;
  for (; *path != 0; ++path) hash = hash * 31 + static_cast<unsigned char>(*path);
  return hash % kBuckets;
}

/// The first note on a path stands.
void add(const char* path, bool made) {
  std::atomic<Note*>& first = notes[bucket_of(path)];
  Note* head = first.load();
  for (const Note* note = head; note; note = note->next) {
    if (std::strcmp(note->path, path) == 0) return;
  }
  auto* note = static_cast<Note*>(std::malloc(sizeof(Note) + std::strlen(path)));
  if (!note) return;
  note->made = made;
  std::strcpy(note->path, path);
  note->next = head;
  while (!first.compare_exchange_weak(note->next, note)) {
  }
}

/// Notes what was opened as `file`, by a path below the folder `at`.
void note(int file, int at, const char* path, int flags) {
  if (file < 0 || !watching.load(std::memory_order_relaxed)) return;
  const int before = errno;
  const bool made = (flags & O_TRUNC) != 0 || (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
  if (!made && (flags & O_ACCMODE) == O_WRONLY) return;
  char whole[2 * PATH_MAX + 2] = "";
  if (path[0] != '/') {
    if (at == AT_FDCWD) {
      if (!getcwd(whole, PATH_MAX)) whole[0] = 0;
    } else {
      char link[32];
      std::snprintf(link, sizeof link, "/proc/self/fd/%d", at);
      const ssize_t length = readlink(link, whole, PATH_MAX);
      whole[length < 0 ? 0 : length] = 0;
    }
    std::strcat(whole, "/");
  }
  if (std::strlen(path) <= PATH_MAX) add(std::strcat(whole, path), made);
  errno = before;
}

int flags_of(const char* mode) {
  const bool plus = std::strchr(mode, '+') != nullptr;
  if (mode[0] == 'w') return O_TRUNC | (plus ? O_RDWR : O_WRONLY);
  if (mode[0] == 'a') return plus ? O_RDWR : O_WRONLY;
  return plus ? O_RDWR : O_RDONLY;
}

FILE* noted(FILE* file, const char* path, const char* mode) {
  if (file) note(fileno(file), AT_FDCWD, path, flags_of(mode));
  return file;
}

/// The C library's own function.
template <class Function>
Function* real(const char* name) {
  static constinit std::atomic<Function*> known{nullptr};
  Function* found = known.load();
  if (!found) known = found = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
  return found;
}

using Open = int(const char*, int, ...);
using OpenAt = int(int, const char*, int, ...);
using OpenFile = FILE*(const char*, const char*);
using ReopenFile = FILE*(const char*, const char*, FILE*);

}  // namespace

void watch_opens(bool on) {
  watching = on;
}

UnwatchedOpens::UnwatchedOpens() : before_(watching.exchange(false)) {}

UnwatchedOpens::~UnwatchedOpens() {
  watching = before_;
}

std::vector<std::string> opened_files() {
  std::vector<std::string> files;
  for (const std::atomic<Note*>& first : notes) {
    for (const Note* note = first.load(); note; note = note->next) {
      if (!note->made) files.emplace_back(note->path);
    }
  }
  return files;
}

// Where a `long` has 64 bits, the functions with 64 in their names are the ones without.
static_assert(sizeof(long) == sizeof(int64_t));

// By their names for the linker: the C library's headers may have other ideas of what they are
// called here.
extern "C" {

int watched_open(const char* path, int flags, ...) __asm__("open");
int watched_open64(const char* path, int flags, ...) __asm__("open64")
    __attribute__((alias("open")));
int watched_openat(int at, const char* path, int flags, ...) __asm__("openat");
int watched_openat64(int at, const char* path, int flags, ...) __asm__("openat64")
    __attribute__((alias("openat")));
// Of callers that were compiled with _FORTIFY_SOURCE and give no mode.
int watched_open_2(const char* path, int flags) __asm__("__open_2");
int watched_open64_2(const char* path, int flags) __asm__("__open64_2")
    __attribute__((alias("__open_2")));
int watched_openat_2(int at, const char* path, int flags) __asm__("__openat_2");
int watched_openat64_2(int at, const char* path, int flags) __asm__("__openat64_2")
    __attribute__((alias("__openat_2")));
FILE* watched_fopen(const char* path, const char* mode) __asm__("fopen");
FILE* watched_fopen64(const char* path, const char* mode) __asm__("fopen64")
    __attribute__((alias("fopen")));
FILE* watched_freopen(const char* path, const char* mode, FILE* file) __asm__("freopen");
FILE* watched_freopen64(const char* path, const char* mode, FILE* file) __asm__("freopen64")
    __attribute__((alias("freopen")));

// The mode is passed on where there is one; where there is none, the C library does not look at it.
#define MOEGATE_MODE_AFTER(last)                \
  va_list rest;                                 \
  va_start(rest, last);                         \
  const auto mode = va_arg(rest, unsigned int); \
  va_end(rest)

int watched_open(const char* path, int flags, ...) {
  MOEGATE_MODE_AFTER(flags);
  const int file = real<Open>("open")(path, flags, mode);
  note(file, AT_FDCWD, path, flags);
  return file;
}

int watched_openat(int at, const char* path, int flags, ...) {
  MOEGATE_MODE_AFTER(flags);
  const int file = real<OpenAt>("openat")(at, path, flags, mode);
  note(file, at, path, flags);
  return file;
}

#undef MOEGATE_MODE_AFTER

int watched_open_2(const char* path, int flags) {
  return watched_open(path, flags, 0u);
}

int watched_openat_2(int at, const char* path, int flags) {
  return watched_openat(at, path, flags, 0u);
}

FILE* watched_fopen(const char* path, const char* mode) {
  return noted(real<OpenFile>("fopen")(path, mode), path, mode);
}

FILE* watched_freopen(const char* path, const char* mode, FILE* file) {
  FILE* opened = real<ReopenFile>("freopen")(path, mode, file);
  return path ? noted(opened, path, mode) : opened;
}

}  // extern "C"

}  // namespace moegate
