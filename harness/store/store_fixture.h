// SPDX-License-Identifier: Apache-2.0
// For tests of the store: a store's file, what refuses it, and what is written into it.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "harness/base/error.h"
#include "harness/base/files.h"
#include "harness/base/test_fixture.h"
#include "harness/store/store.h"

namespace moegate::test {

class StoreFixture : public ::testing::Test {
 protected:
  /// The message of the Error(store) that opening throws; "accepted" where it throws none.
  static std::string refusal(const std::string& path, Store::Mode mode) {
    return refusal_of([&] { Store::open(path, mode); }, Exit::store);
  }

  /// A copy of the store and its journal, which lives until the next copy.
  std::string copy() const {
    namespace fs = std::filesystem;
    const fs::path folder = dir_ / "copy";
    fs::remove_all(folder);
    fs::create_directories(folder);
    for (const auto& entry : fs::directory_iterator(dir_.path())) {
      if (entry.is_regular_file()) fs::copy(entry.path(), folder / entry.path().filename());
    }
    return (folder / "r.db").string();
  }

  ScratchFolder dir_;
  const std::string path_ = (dir_ / "r.db").string();  // no such file yet
};

/// Empty for a file that is not there.
inline std::string bytes_of(const std::string& path) {
  return is_file(path) ? read_file(path) : "";
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline RunInfo host_run() {
  RunInfo info;
  info.label = "nightly";
  info.device = {Backend::host, "CPU", "host", "a-host", 2, 1, 1, 1, ""};
  info.flush = "lines";
  return info;
}

/// A result with a row in every table of its parts.
inline Result whole_result() {
  Result r;
  r.variant = "chain";
  r.timer = "clock";
  r.samples = 2;
  r.span_ns = 5000;
  r.accuracy.resize(1);
  r.seeds.resize(2);
  r.seeds[1].seed = 1;
  r.kernels.resize(2);
  r.spans_ns = {5000.f, 5001.f};
  return r;
}

/// One result, from a store that does not exist to a run that is complete.
inline void write_run(const std::string& path) {
  Store store = Store::open(path, Store::Mode::write);
  const int64_t run = store.begin_run(host_run());
  const int64_t process = store.begin_process(run, 0, 1);
  const Case c{"tiny", "gpt", "topk_sort", {{"tokens", "8"}}, {}};
  store.add_result(process, c, {1, 2, 3}, {{"active_experts", 57}}, whole_result());
  store.end_process(process, "");
  store.end_run(run, "complete");
}

/// Expects that nothing of a result is missing and no row hangs loose.
inline void expect_whole(Store& store) {
  Database& db = store.database();
  Statement check(db, "PRAGMA integrity_check");
  ASSERT_TRUE(check.step());
  EXPECT_EQ(check.text(0), "ok");
  EXPECT_FALSE(Statement(db, "PRAGMA foreign_key_check").step());
  EXPECT_EQ(db.integer("SELECT count(*) FROM result r WHERE"
                       " (SELECT count(*) FROM accuracy a WHERE a.result_id = r.result_id) <> 1"
                       " OR (SELECT count(*) FROM kernel k WHERE k.result_id = r.result_id) <> 2"
                       " OR (SELECT count(*) FROM sample s WHERE s.result_id = r.result_id) <> 1"),
            0);
  Statement levels(db,
                   "SELECT run_id, (SELECT count(*) FROM result JOIN process USING (process_id) "
                   "WHERE process.run_id = run.run_id) FROM run");
  while (levels.step()) EXPECT_EQ(store.levels(levels.integer(0)).size(), levels.integer(1));
}

}  // namespace moegate::test
