// SPDX-License-Identifier: Apache-2.0
// For tests of the store: a store's file, what refuses it, and stores of older versions.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <string>

#include "harness/base/error.h"
#include "harness/base/files.h"
#include "harness/base/refusal_fixture.h"
#include "harness/base/scratch_fixture.h"
#include "harness/store/store.h"
#include "store_sql.h"

namespace moegate {

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

/// A store of an old version as the program of that version left it, with one result and verdict.
inline void write_old_store(const std::string& path, int version) {
  Database db(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  db.execute("BEGIN");
  for (int v = 0; v < version; ++v) db.execute(kMigrations.at(static_cast<size_t>(v)));
  db.execute(
      "INSERT INTO device VALUES (1, 'host', 'CPU', 'host', 'a-host', '', 2, 1, 1, 1);"
      "INSERT INTO run (run_id, label, started, status, device_id, protocol, timer, flush, rounds,"
      " git_sha, dirty, build, host, command, options)"
      " VALUES (1, 'old', '2026-01-01T00:00:00Z', 'complete', 1, 1, 'clock', 'lines', 1, '', 0, '',"
      " '', '', '{}');"
      "INSERT INTO process (process_id, run_id, round, pid, started) "
      "VALUES (1, 1, 0, 4711, '2026-01-01T00:00:00Z');"
      "INSERT INTO bench_case VALUES (1, 'topk_sort tokens=8', 'topk_sort', '{}', 1, 2, 3);"
      "INSERT INTO run_case VALUES (1, 1, 'tiny', 'gpt', '{}');"
      "INSERT INTO result (process_id, case_id, variant, status, why, path, deterministic, timer,"
      " tick_ns, samples, invalid, flags, span_ns, median_ns, low_ns, high_ns, min_ns, busy_ns,"
      " sum_ns, ratio, ratio_low, ratio_high, sm_mhz, impossible, suspect_warm, wall_s)"
      " VALUES (1, 1, 'chain', 'ok', '', '', 1, 'clock', 1, 1, 0, 0, 5000, 5000, 5000, 5000, 5000,"
      " 5000, 5000, 1, 1, 1, 0, 0, 0, 1);"
      "INSERT INTO kernel (result_id, ordinal, name, grid, block, cluster, registers, "
      "static_shared,"
      " dynamic_shared, ns, gap_ns) VALUES (1, 0, 'a', '', '', '', 0, 0, 0, 1, 0),"
      " (1, 1, 'b', '', '', '', 0, 0, 0, 1, 0);"
      "INSERT INTO sample (result_id, spans) VALUES (1, x'00409c45')");
  db.execute(version < 7
                 ? "INSERT INTO accuracy (result_id, output, ok, why, elements, mismatches,"
                   " nonfinite, rel_l2, worst_index)"
                   " VALUES (1, 'weights', 1, '', 8, 0, 0, 1e-6, 0)"
                 : "INSERT INTO verification VALUES (1, 'of what was found');"
                   "INSERT INTO verified_output (verification_id, output, ok, why, elements,"
                   " mismatches, nonfinite, rel_l2, worst_index)"
                   " VALUES (1, 'weights', 1, '', 8, 0, 0, 1e-6, 0);"
                   "UPDATE result SET verification_id = 1;"
                   "UPDATE process SET results = 1, wall_s = 1");
  if (version >= 6) db.execute("UPDATE process SET uuid = 'of an old store'");
  db.execute(
      version == 1
          ? "INSERT INTO verdict VALUES (1, 1, 'chain', 'base.ini', 'pass', 1, 1, 0,"
            " 0, 0, 1, 1, 0.01, 'same')"
          : "INSERT INTO verdict (run_id, against, suite, key, variant, outcome, stage, base,"
            " head, effect, low, high, df, p, p_adjusted, mde, blind, family, waiver, why)"
            " VALUES (1, 'base.ini', 'tiny', 'topk_sort tokens=8',"
            " 'chain', 'pass', 1, 1, 1, 0, 0, 0, 1, 1, 1, 0.01, 0, 1, '', 'same')");
  db.execute("PRAGMA application_id = 0x4D6F4550; PRAGMA user_version = " +
             std::to_string(version) + "; COMMIT");
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

}  // namespace moegate
