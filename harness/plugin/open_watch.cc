// SPDX-License-Identifier: Apache-2.0
// Anything may open a file: a signal handler, a child between fork and exec, a library that is being
// loaded. So a note is a node of a list that only grows, and no lock is taken.
#include "harness/plugin/open_watch.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace moegate {
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
Function* real(std::atomic<Function*>& known, const char* name) {
  Function* found = known.load();
  if (!found) known = found = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
  return found;
}

using Open = int(const char*, int, ...);
using OpenAt = int(int, const char*, int, ...);
using OpenFile = FILE*(const char*, const char*);
using ReopenFile = FILE*(const char*, const char*, FILE*);

int open_with(std::atomic<Open*>& known, const char* name, const char* path, int flags,
              mode_t mode) {
  const int file = real(known, name)(path, flags, mode);
  note(file, AT_FDCWD, path, flags);
  return file;
}

int open_at_with(std::atomic<OpenAt*>& known, const char* name, int at, const char* path, int flags,
                 mode_t mode) {
  const int file = real(known, name)(at, path, flags, mode);
  note(file, at, path, flags);
  return file;
}

constinit std::atomic<Open*> real_open{nullptr}, real_open64{nullptr};
constinit std::atomic<OpenAt*> real_openat{nullptr}, real_openat64{nullptr};
constinit std::atomic<OpenFile*> real_fopen{nullptr}, real_fopen64{nullptr};
constinit std::atomic<ReopenFile*> real_freopen{nullptr}, real_freopen64{nullptr};

}  // namespace

void watch_opens(bool on) {
  watching = on;
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

// By their names for the linker: the C library's headers may have other ideas of what they are called here.
extern "C" {

int watched_open(const char* path, int flags, ...) __asm__("open");
int watched_open64(const char* path, int flags, ...) __asm__("open64");
int watched_openat(int at, const char* path, int flags, ...) __asm__("openat");
int watched_openat64(int at, const char* path, int flags, ...) __asm__("openat64");
// Of callers that were compiled with _FORTIFY_SOURCE and give no mode.
int watched_open_2(const char* path, int flags) __asm__("__open_2");
int watched_open64_2(const char* path, int flags) __asm__("__open64_2");
int watched_openat_2(int at, const char* path, int flags) __asm__("__openat_2");
int watched_openat64_2(int at, const char* path, int flags) __asm__("__openat64_2");
FILE* watched_fopen(const char* path, const char* mode) __asm__("fopen");
FILE* watched_fopen64(const char* path, const char* mode) __asm__("fopen64");
FILE* watched_freopen(const char* path, const char* mode, FILE* file) __asm__("freopen");
FILE* watched_freopen64(const char* path, const char* mode, FILE* file) __asm__("freopen64");

// The mode is passed on where there is one; where there is none, the C library does not look at it.
#define MOEGATE_MODE_AFTER(last)                \
  va_list rest;                                 \
  va_start(rest, last);                         \
  const auto mode = va_arg(rest, unsigned int); \
  va_end(rest)

int watched_open(const char* path, int flags, ...) {
  MOEGATE_MODE_AFTER(flags);
  return open_with(real_open, "open", path, flags, mode);
}

int watched_open64(const char* path, int flags, ...) {
  MOEGATE_MODE_AFTER(flags);
  return open_with(real_open64, "open64", path, flags, mode);
}

int watched_openat(int at, const char* path, int flags, ...) {
  MOEGATE_MODE_AFTER(flags);
  return open_at_with(real_openat, "openat", at, path, flags, mode);
}

int watched_openat64(int at, const char* path, int flags, ...) {
  MOEGATE_MODE_AFTER(flags);
  return open_at_with(real_openat64, "openat64", at, path, flags, mode);
}

#undef MOEGATE_MODE_AFTER

int watched_open_2(const char* path, int flags) {
  return open_with(real_open, "open", path, flags, 0);
}

int watched_open64_2(const char* path, int flags) {
  return open_with(real_open64, "open64", path, flags, 0);
}

int watched_openat_2(int at, const char* path, int flags) {
  return open_at_with(real_openat, "openat", at, path, flags, 0);
}

int watched_openat64_2(int at, const char* path, int flags) {
  return open_at_with(real_openat64, "openat64", at, path, flags, 0);
}

FILE* watched_fopen(const char* path, const char* mode) {
  return noted(real(real_fopen, "fopen")(path, mode), path, mode);
}

FILE* watched_fopen64(const char* path, const char* mode) {
  return noted(real(real_fopen64, "fopen64")(path, mode), path, mode);
}

FILE* watched_freopen(const char* path, const char* mode, FILE* file) {
  FILE* opened = real(real_freopen, "freopen")(path, mode, file);
  return path ? noted(opened, path, mode) : opened;
}

FILE* watched_freopen64(const char* path, const char* mode, FILE* file) {
  FILE* opened = real(real_freopen64, "freopen64")(path, mode, file);
  return path ? noted(opened, path, mode) : opened;
}

}  // extern "C"

}  // namespace moegate
