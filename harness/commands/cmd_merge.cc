// SPDX-License-Identifier: Apache-2.0
// moegate merge: stores of several machines into one.
#include <filesystem>

#include "harness/base/escape.h"
#include "harness/base/notes.h"
#include "harness/campaign/night_gate.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/store/merge.h"

namespace moegate {
namespace {

namespace po = boost::program_options;

/// "run 4 'nightly': 3 of 4 shards"
std::string campaign_text(Store& store, int64_t id) {
  const RunInfo run = store.run_info(id);
  const auto absent = absent_shards(store, run);
  std::string text = fmt::format("{}: {} of {} shards\n", one_line(describe(run)),
                                 run.shards - static_cast<int>(absent.size()), run.shards);
  for (const AbsentShard& shard : absent) {
    text +=
        fmt::format("  shard {} is absent; to run it: {}\n", shard.shard, one_line(shard.command));
  }
  return text;
}

/// OUT, where it was not there before and stays empty: what is refused makes no store. Lives longer
/// than what has it open.
class NewStore {
 public:
  explicit NewStore(const std::string& path) : path_(path), there_(exists(path)) {}
  ~NewStore() {
    if (there_) return;
    try {
      // Another process may have begun a run in it.
      Store store = Store::open(path_, Store::Mode::read);
      if (store.database().integer("SELECT count(*) FROM run") > 0) return;
    } catch (const std::exception&) {  // it is none
      return;
    }
    std::error_code ignored;
    for (const char* beside : {"", "-wal", "-shm", "-journal"}) {
      std::filesystem::remove(path_ + beside, ignored);
    }
  }
  NewStore(const NewStore&) = delete;
  NewStore& operator=(const NewStore&) = delete;

 private:
  static bool exists(const std::string& path) {
    std::error_code ignored;
    return std::filesystem::exists(path, ignored);
  }
  const std::string path_;
  const bool there_;
};

}  // namespace

int cmd_merge(const Args& args) {
  std::string out;
  std::vector<std::string> in;
  MergeOptions options;
  po::options_description flags("Options");
  flags.add_options()  //
      ("out", po::value(&out)->value_name("FILE"),
       "the store that gets the runs; made when missing")  //
      ("in", po::value(&in)->value_name("FILE"),
       "a store whose runs it gets; may be repeated; without any a store of an older version is "
       "upgraded")  //
      ("leave-unfinished", po::bool_switch(&options.leave_unfinished),
       "merge without runs that have not ended, and name them; else they are refused");
  if (!parse("moegate merge OUT [IN...] [options]", flags, args, {"out", "in"})) return 0;
  if (out.empty()) {
    usage_error("merge needs a store and what to put into it: moegate merge OUT IN...");
  }
  for (const std::string& path : in) {
    Store::open(path, Store::Mode::read);  // else OUT is made for nothing
  }
  const NewStore made(out);
  Store store = Store::open(out, in.empty() ? Store::Mode::update : Store::Mode::write);
  if (in.empty()) {
    fmt::print("{}: is of this version\n", one_line(out));
    return 0;
  }
  const Merged merged = merge_stores(store, in, options);
  for (const std::string& note : merged.notes) say("{}\n", note);
  fmt::print("{}: {} runs added, {} were there\n", one_line(out), merged.added, merged.known);
  for (const int64_t run : merged.campaigns) fmt::print("{}", campaign_text(store, run));
  return 0;
}

}  // namespace moegate
