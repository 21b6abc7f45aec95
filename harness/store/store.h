// SPDX-License-Identifier: Apache-2.0
// The results database: what a run writes and a verdict reads. Everything that judges or reports
// goes through here and needs no GPU.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "harness/store/sqlite.h"
#include "harness/values/case.h"
#include "harness/values/environment_facts.h"
#include "harness/values/run.h"

namespace moegate {

/// Bytes of a store that is read as a whole before a verdict, which takes about half a second.
inline constexpr int64_t kQuicklyRead = int64_t{256} << 20;

/// Tag of a run that repeats one row of the store, with the row's number.
inline constexpr const char* kRepeatTag = "repeat";

/// Of runs that stand for themselves, no sides of an A/B and no repeats. For WHERE.
inline constexpr const char* kOfItsOwn =
    "run_id NOT IN (SELECT run_id FROM tag WHERE name IN ('ab', 'repeat'))";

/// Whether a file is one that a writer made and died before it was a store. Throws Error(store) as
/// Store::open() does.
bool is_empty_store(const std::string& path);

/// Statistics for the planner, from at most 400 entries of each index: quick in every store.
void analyze(Database& db);

class Store {
 public:
  /// read: an existing store, whose content never changes; what a writer that died has left half
  /// written is rolled back where the file may be written. update: an existing store. write: made
  /// when missing.
  enum class Mode { read, update, write };
  /// Throws Error(store) for a missing, unwritable or foreign database and for a store of another
  /// version, naming the path and the remedy; such a file is left untouched.
  static Store open(const std::string& path, Mode mode);

  /// Stores what a run states, but for its id, start, end and status, which the store sets; so it
  /// does uuid and campaign where they are empty. Returns run_id.
  int64_t begin_run(RunInfo info);
  int64_t begin_process(int64_t run, int round, int pid);
  void end_process(int64_t process, const std::string& throttle);
  /// What it ran with, once its last row is measured; nothing is stored of an empty one.
  void set_environment(int64_t process, const EnvironmentItems& environment);
  /// Of all processes of a run: what one of them loaded. Empty: unknown.
  EnvironmentItems environment(int64_t run);
  /// One transaction: case, run_case, result, accuracy, seeds, kernels, metrics, samples. Throws
  /// Error(store) for a second result of the same process, case and variant.
  void add_result(int64_t process, const Case& c, const Cost& cost, const std::vector<Fact>& facts,
                  const Result& result);
  void mark_suspect_warm(int64_t run, const std::string& key, const std::string& variant);
  /// A result turns out to be what its process died of, later.
  void mark_crashed(int64_t process, const std::string& key, const std::string& variant,
                    const std::string& why);
  /// Its rounds become those that were measured.
  void end_run(int64_t run, const std::string& status);
  /// (round, key, variant) that have a row: what --resume leaves out.
  std::set<std::tuple<int, std::string, std::string>> done(int64_t run);

  /// By key, the number of the GPU that measured a case, in a run on several.
  std::map<std::string, int> gpus_of_cases(int64_t run);

  /// Whether runs of this task can be added: a store made before the task cannot have them.
  bool takes(const std::string& task);
  /// "latest" (of this task, or of one of several, "measure compile", the newest run by its start
  /// that runs no more, interrupted ones too, but no side of an A/B and no repeat of a row), a
  /// number, or a label (its newest run). Throws Error(usage) naming what there is.
  int64_t find_run(const std::string& which, const std::string& task = "measure");
  /// The same for --resume, whose latest is the newest run that is not complete. Throws
  /// Error(usage) for a complete run and for a side of an A/B, which cannot be resumed.
  int64_t find_resumable(const std::string& which);
  /// The run that is this shard of a campaign: a complete one, else the newest; 0: none.
  int64_t find_shard(const std::string& campaign, int shard);
  /// Shards, from 1, that a run which was merged lacks: they did not run, did not end, or were not
  /// merged. None of any other run.
  std::vector<int> absent_shards(const RunInfo& run);
  RunInfo run_info(int64_t run);
  /// Throws Error(store) where SQLite finds damage in what verdicts read. Reads all of it, which
  /// takes seconds per GiB; a store of more than `most` bytes is left unread.
  void check_intact(int64_t most = std::numeric_limits<int64_t>::max());
  /// Throws Error(store) that names the first result of a run which is not what was stored, by its
  /// checksums (result_checksum.h); so do levels() and each_level() for what they read.
  void check_results(int64_t run);
  /// Every result of a run, ordered by key, variant, round, but for its samples, which no verdict
  /// reads; its kernels and stalls with `launches` only. Throws Error(store) for values that no run
  /// stores.
  std::vector<Level> levels(int64_t run, bool launches = false);
  /// For collect(): the same results one after another, rows in the order of their cases' numbers;
  /// of fields and metrics only what a verdict reads. The store has to outlive it.
  EachLevel each_level(int64_t run);

  /// Seconds of one device that a result took in the quickest of the device's five newest complete
  /// runs that had this budget for a row (Sampling::budget_s), of those with twenty results or
  /// more; 0 where there is none.
  double seconds_per_result(const DeviceFacts& device, double budget_s);

  void set_ceilings(const DeviceFacts& device, const std::map<std::string, double>& ceilings);
  std::map<std::string, double> ceilings(const DeviceFacts& device);

  /// The number of a device, which is stored where it is new.
  int64_t device_id(const DeviceFacts& device);

  Database& database() { return db_; }

 private:
  explicit Store(Database db) : db_(std::move(db)) {}
  std::vector<OperatorFacts> operators(int64_t run);
  Database db_;
};

/// Held by one process at a time, and free again as soon as that process ends, however it ends: a
/// lock of the kernel on a byte of the file STORE.lock, which is left beside the store. Runs of one
/// store have a byte each.
class RunLock {
 public:
  /// Throws Error(usage) naming the run while another process, or another lock of this one, holds
  /// it. Throws Error(store) where the file cannot be made.
  RunLock(const std::string& db, int64_t run);
  ~RunLock();
  RunLock(RunLock&&) = delete;

 private:
  int fd_;
};

}  // namespace moegate
