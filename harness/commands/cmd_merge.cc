// SPDX-License-Identifier: Apache-2.0
// moegate merge: stores of several machines into one.
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
       "a store whose runs it gets; may be repeated")  //
      ("leave-unfinished", po::bool_switch(&options.leave_unfinished),
       "merge without runs that have not ended, and name them; else they are refused");
  if (!parse("moegate merge OUT IN... [options]", flags, args, {"out", "in"})) return 0;
  if (in.empty()) {
    usage_error("merge needs a store and what to put into it: moegate merge OUT IN...");
  }
  const Merged merged = merge_into(out, in, options);
  for (const std::string& note : merged.notes) say("{}\n", note);
  fmt::print("{}: {} runs added, {} were there\n", one_line(out), merged.added, merged.known);
  if (merged.campaigns.empty()) return 0;
  Store store = Store::open(out, Store::Mode::read);
  for (const int64_t run : merged.campaigns) fmt::print("{}", campaign_text(store, run));
  return 0;
}

}  // namespace moegate
