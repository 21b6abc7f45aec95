// SPDX-License-Identifier: Apache-2.0
// For tests: SQLite's default VFS, which ends the process before one chosen change of a file.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <map>

namespace moegate {

/// While it lives, every connection of this process goes through it. It syncs nothing: a kill loses
/// nothing that was written, and a test of some hundred kills is then quick.
class CrashVfs {
 public:
  CrashVfs() : real_(sqlite3_vfs_find(nullptr)), vfs_(*real_) {
    vfs_.zName = "crash";
    vfs_.pNext = nullptr;
    vfs_.xOpen = open;
    vfs_.xDelete = remove;
    self_ = this;
    sqlite3_vfs_register(&vfs_, 1);
  }
  ~CrashVfs() {
    sqlite3_vfs_unregister(&vfs_);
    self_ = nullptr;
  }
  CrashVfs(const CrashVfs&) = delete;
  CrashVfs& operator=(const CrashVfs&) = delete;

  /// While on, no file can be opened for writing, as if permissions said so.
  void make_read_only(bool on) { read_only_ = on; }

  /// Runs `work` in a child that ends before its change number `k`, the first being 0. False when
  /// `work` came to its end with fewer changes.
  bool killed_at(int k, const std::function<void()>& work) {
    const pid_t child = fork();
    if (child == 0) {
      left_ = k;
      try {
        work();
      } catch (...) {
        _exit(kThrew);
      }
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status)) << status;
    EXPECT_NE(WEXITSTATUS(status), kThrew) << "change " << k;
    return WEXITSTATUS(status) == kKilled;
  }

 private:
  static constexpr int kKilled = 77, kThrew = 78;

  /// A file's methods with ours in place of those that change it.
  struct Methods {
    sqlite3_io_methods ours;  // first: sqlite3_file points at it
    const sqlite3_io_methods* real;
  };

  static void count() {
    if (self_->left_ == 0) _exit(kKilled);
    if (self_->left_ > 0) --self_->left_;
  }
  static const sqlite3_io_methods* real(sqlite3_file* file) {
    return reinterpret_cast<const Methods*>(file->pMethods)->real;
  }
  static int write(sqlite3_file* file, const void* data, int bytes, sqlite3_int64 offset) {
    count();
    return real(file)->xWrite(file, data, bytes, offset);
  }
  static int truncate(sqlite3_file* file, sqlite3_int64 size) {
    count();
    return real(file)->xTruncate(file, size);
  }
  static int sync(sqlite3_file*, int) {
    count();
    return SQLITE_OK;
  }
  static int remove(sqlite3_vfs*, const char* path, int) {
    count();
    return self_->real_->xDelete(self_->real_, path, 0);
  }
  static int open(sqlite3_vfs*, const char* path, sqlite3_file* file, int flags, int* out) {
    if (self_->read_only_ && (flags & SQLITE_OPEN_READWRITE) != 0) {
      flags = (flags & ~(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)) | SQLITE_OPEN_READONLY;
    }
    const int rc = self_->real_->xOpen(self_->real_, path, file, flags, out);
    if (!file->pMethods) return rc;
    Methods& methods = self_->methods_[file->pMethods];
    methods = {*file->pMethods, file->pMethods};
    methods.ours.xWrite = write;
    methods.ours.xTruncate = truncate;
    methods.ours.xSync = sync;
    file->pMethods = &methods.ours;
    return rc;
  }

  static inline CrashVfs* self_ = nullptr;
  sqlite3_vfs* real_;
  sqlite3_vfs vfs_;
  std::map<const sqlite3_io_methods*, Methods> methods_;
  int left_ = -1;  // changes until the end; -1: it never comes
  bool read_only_ = false;
};

}  // namespace moegate
