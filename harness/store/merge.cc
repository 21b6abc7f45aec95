// SPDX-License-Identifier: Apache-2.0
#include "harness/store/merge.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

#include "harness/base/files.h"
#include "harness/store/merge_rows.h"
#include "harness/store/merge_sources.h"
#include "harness/store/rows.h"

namespace moegate {
namespace {

class Merge {
 public:
  explicit Merge(Store& out) : out_(out), db_(out.database()), shapes_(shapes_of(db_)) {
    serve_made_rows(db_);
  }

  void take(Source& in);
  /// Has the runs of campaigns state what their shards do.
  void sum_up();
  Merged merged;

 private:
  int64_t take_run(Source& in, const RunInfo& run, const NumberOfByColumn& numbers);
  int64_t take_campaign(Source& in, RunInfo run, const NumberOfByColumn& numbers);
  void take_shard(Source& in, const RunInfo& run, const Shard& shard, int64_t campaign,
                  const NumberOfByColumn& numbers);
  void check_same_processes(Source& in, const RunInfo& run, int64_t to, int shard);
  int64_t find_run(const std::string& uuid);

  Store& out_;
  Database& db_;
  const TableShapes shapes_;
  std::set<int64_t> campaigns_;
};

int64_t Merge::find_run(const std::string& uuid) {
  return db_.integer("SELECT run_id FROM run WHERE uuid = ?1", uuid);
}

void Merge::check_same_processes(Source& in, const RunInfo& run, int64_t to, int shard) {
  const auto names = [&](Database& db, int64_t of) {
    return values_of<std::string>(
        db, "SELECT DISTINCT uuid FROM process WHERE run_id = ?1 AND shard = ?2 ORDER BY uuid", of,
        shard);
  };
  if (names(in.db(), run.id) == names(db_, to)) return;
  usage_error(
      "{} and run {} of {} began as one run and were finished apart; keep one of them, in one of "
      "the stores",
      in.who(run), to, db_.path());
}

int64_t Merge::take_run(Source& in, const RunInfo& run, const NumberOfByColumn& numbers) {
  const int64_t there = find_run(run.uuid);
  ++(there > 0 ? merged.known : merged.added);
  if (there == 0) return copy_row(in.db(), db_, shapes_.at("run"), "run_id", run.id, numbers, {});
  check_same_processes(in, run, there, 0);
  return there;
}

int64_t Merge::take_campaign(Source& in, RunInfo run, const NumberOfByColumn& numbers) {
  run.options = options_of_all(in.store, run.options);
  int64_t campaign = find_run(run.campaign);
  if (campaign > 0) check_same_campaign(out_.run_info(campaign), run, in.who(run));
  Statement row(in.db(), "SELECT created, label FROM campaign WHERE uuid = ?1");
  if (!row.bind(run.campaign).step()) in.db().damaged(in.who(run) + " is of no campaign");
  db_.run(
      "INSERT INTO campaign (uuid, created, label, shards) VALUES (?1, ?2, ?3, ?4) ON "
      "CONFLICT (uuid) DO UPDATE SET created = min(created, excluded.created), label = "
      "min(label, excluded.label)",
      run.campaign, row.text(0), row.text(1), run.shards);
  if (campaign == 0) {
    campaign = copy_row(in.db(), db_, shapes_.at("run"), "run_id", run.id, numbers,
                        {{"uuid", run.campaign}, {"shard", "0"}, {"options", run.options}});
  }
  campaigns_.insert(campaign);
  for (const Shard& shard : shards_of(in, run)) take_shard(in, run, shard, campaign, numbers);
  return campaign;
}

void Merge::take_shard(Source& in, const RunInfo& run, const Shard& shard, int64_t campaign,
                       const NumberOfByColumn& numbers) {
  Statement there(db_, "SELECT uuid FROM shard WHERE run_id = ?1 AND shard = ?2");
  if (there.bind(campaign, shard.shard).step()) {
    if (there.text(0) != shard.uuid) {
      usage_error(
          "{}: shard {} of this campaign was measured twice, and the other one is in {} already; "
          "merge one of them",
          in.who(run), shard.shard, db_.path());
    }
    check_same_processes(in, run, campaign, shard.shard);
    ++merged.known;
    return;
  }
  const auto device = numbers.at("device_id")(shard.device_id);
  if (!device) in.db().damaged(in.who(run) + " is of no device");
  Shard here = shard;
  here.device_id = *device;
  insert_row(db_, "shard", here, std::pair("run_id", campaign));
  ++merged.added;
}

/// Run by run, so that whoever writes into the source waits for one run and not for the merge.
void Merge::take(Source& in) {
  RunRows rows(in, db_, shapes_);
  {
    const Transaction reading(in.db(), "BEGIN");
    rows.copy_first();
  }
  for (const RunInfo& run : in.runs) {
    const Transaction reading(in.db(), "BEGIN");
    rows.copy(run.id, run.shards > 0 ? take_campaign(in, run, rows.numbers())
                                     : take_run(in, run, rows.numbers()));
  }
}

void Merge::sum_up() {
  for (const int64_t campaign : campaigns_) {
    sum_up_shards(out_, campaign);
    merged.campaigns.push_back(campaign);
  }
  drop_unused_devices(out_);
}

/// While it lives, what holds of each row by itself is not asked again as it is written, which
/// would take a fifth of the time: sources were asked about CHECKs, RowCheck looks at results, and
/// RunRows knows the numbers of other tables. What it does not know is asked at the end.
class Unchecked {
 public:
  explicit Unchecked(Database& db) : db_(db) {
    db_.execute("PRAGMA foreign_keys = 0; PRAGMA ignore_check_constraints = 1");
  }
  ~Unchecked() {
    sqlite3_exec(db_.handle(), "PRAGMA foreign_keys = 1; PRAGMA ignore_check_constraints = 0",
                 nullptr, nullptr, nullptr);
  }
  Unchecked(Unchecked&&) = delete;
  void check() {
    Statement q(db_, "PRAGMA foreign_key_check(before)");  // the only one of two columns
    if (q.step()) db_.damaged("a before of no operator");
  }

 private:
  Database& db_;
};

/// While a store without a result is filled, it does without the index over all nights, in which
/// each row is a page of its own.
class LateIndex {
 public:
  explicit LateIndex(Database& db) : db_(db) {
    if (db_.integer("SELECT EXISTS (SELECT 1 FROM result)") != 0) return;
    Statement q(db_, "SELECT sql FROM sqlite_schema WHERE name = 'result_series'");
    if (q.step()) sql_ = q.text(0);
    q.reset();
    if (!sql_.empty()) db_.execute("DROP INDEX result_series");
  }
  void make() {
    if (!sql_.empty()) db_.execute(sql_);
  }

 private:
  Database& db_;
  std::string sql_;
};

/// A file that is removed with what SQLite lays beside it, where nobody has given it its name.
class Unfinished {
 public:
  explicit Unfinished(const std::string& out) : path(out + "." + random_name() + ".tmp") {
    const int file =
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (file < 0) {
      refuse_store(out,
                   "cannot be made: {}; check that its folder exists and that you may write there",
                   std::strerror(errno));
    }
    ::close(file);
  }
  ~Unfinished() {
    for (const char* beside : {"", "-wal", "-shm", "-journal"}) ::unlink((path + beside).c_str());
  }
  Unfinished(Unfinished&&) = delete;
  /// False where `out` is there by now.
  bool becomes(const std::string& out) const {
    if (::link(path.c_str(), out.c_str()) == 0) return true;
    if (errno == EEXIST) return false;
    const bool no_links = errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS;
    if (no_links && ::rename(path.c_str(), out.c_str()) == 0) return true;
    refuse_store(out, "cannot be made: {}; choose another folder", std::strerror(errno));
  }
  const std::string path;
};

}  // namespace

Merged merge_stores(Store& out, const std::vector<std::string>& in, const MergeOptions& options) {
  Database& db = out.database();
  std::vector<std::string> notes;
  Sources sources = open_sources(in, db.path(), notes);
  Unchecked numbers(db);
  Transaction writing(db);
  LateIndex index(db);
  Merge merge(out);
  merge.merged.notes = std::move(notes);
  choose_runs(out, options, sources, merge.merged.notes);
  for (const auto& source : sources) merge.take(*source);
  merge.sum_up();
  index.make();
  numbers.check();
  analyze(db);
  writing.commit();
  return merge.merged;
}

Merged merge_into(const std::string& out, const std::vector<std::string>& in,
                  const MergeOptions& options) {
  std::error_code ignored;
  if (!std::filesystem::exists(out, ignored) && !out.starts_with(':')) {
    const Unfinished file(out);
    Merged merged;
    {
      Store store = Store::open(file.path, Store::Mode::write);
      store.database().call(out);
      merged = merge_stores(store, in, options);
    }
    if (file.becomes(out)) return merged;
  }
  Store store = Store::open(out, Store::Mode::write);
  return merge_stores(store, in, options);
}

}  // namespace moegate
