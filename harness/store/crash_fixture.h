// SPDX-License-Identifier: Apache-2.0
// For tests: SQLite's default VFS, which ends the process before one chosen change of a file, or
// fails from one on.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <map>

namespace moegate::test {

/// What becomes of a change of a file.
enum class Fault { io_error, disk_full, short_write };

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

  /// Runs `work` while its change number `k`, and each later one where it is `lasting`, comes to
  /// `fault`. An open counts as a change. False when `work` came to its end with fewer changes.
  bool failed_at(int k, Fault fault, bool lasting, const std::function<void()>& work) {
    fault_ = fault;
    lasting_ = lasting;
    left_ = k;
    failed_ = false;
    faulty_ = true;
    work();
    faulty_ = false;
    left_ = -1;
    return failed_;
  }

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

  /// Whether this change is to fail. Ends the process where that is what is to be.
  static bool count() {
    const bool now = self_->left_ == 0;
    if (now && !self_->faulty_) _exit(kKilled);
    if (self_->left_ > 0 || (now && !self_->lasting_)) --self_->left_;
    self_->failed_ |= now;
    return now;
  }
  static int code(int of_io_error) {
    return self_->fault_ == Fault::io_error ? of_io_error : SQLITE_FULL;
  }
  static const sqlite3_io_methods* real(sqlite3_file* file) {
    return reinterpret_cast<const Methods*>(file->pMethods)->real;
  }
  static int write(sqlite3_file* file, const void* data, int bytes, sqlite3_int64 offset) {
    if (count()) {
      if (self_->fault_ == Fault::short_write) real(file)->xWrite(file, data, bytes / 2, offset);
      return code(SQLITE_IOERR_WRITE);
    }
    return real(file)->xWrite(file, data, bytes, offset);
  }
  static int truncate(sqlite3_file* file, sqlite3_int64 size) {
    if (count()) return code(SQLITE_IOERR_TRUNCATE);
    return real(file)->xTruncate(file, size);
  }
  static int sync(sqlite3_file*, int) { return count() ? code(SQLITE_IOERR_FSYNC) : SQLITE_OK; }
  static int remove(sqlite3_vfs*, const char* path, int) {
    if (count()) return SQLITE_IOERR_DELETE;
    return self_->real_->xDelete(self_->real_, path, 0);
  }
  static int open(sqlite3_vfs*, const char* path, sqlite3_file* file, int flags, int* out) {
    if (self_->read_only_ && (flags & SQLITE_OPEN_READWRITE) != 0) {
      flags = (flags & ~(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)) | SQLITE_OPEN_READONLY;
    }
    if (self_->faulty_ && count()) {
      file->pMethods = nullptr;
      return SQLITE_CANTOPEN;
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
  Fault fault_ = Fault::io_error;
  bool faulty_ = false, lasting_ = false, failed_ = false;
  bool read_only_ = false;
};

}  // namespace moegate::test
