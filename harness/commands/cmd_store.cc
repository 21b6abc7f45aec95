// SPDX-License-Identifier: Apache-2.0
// moegate store: stores of several machines into one, and a store made smaller.
#include "harness/base/escape.h"
#include "harness/base/notes.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/flags.h"
#include "harness/night/night_gate.h"
#include "harness/store/merge.h"
#include "harness/store/prune.h"

namespace moegate {
namespace {

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

struct StoreCommand {
  std::string db;
  std::vector<std::string> files;  // the store that gets the runs, and those whose runs it gets
  MergeOptions merging;
  PruneAges ages;
};

int merge_stores(const StoreCommand& command) {
  if (command.files.size() < 2) {
    usage_error("a merge needs a store and what to put into it: moegate store merge OUT IN...");
  }
  const std::string& out = command.files[0];
  const Merged merged =
      merge_into(out, {command.files.begin() + 1, command.files.end()}, command.merging);
  for (const std::string& note : merged.notes) say("{}\n", note);
  fmt::print("{}: {} runs were added, {} were there already\n", one_line(out), merged.added,
             merged.known);
  if (merged.campaigns.empty()) return 0;
  Store store = Store::open(out, Store::Mode::read);
  for (const int64_t run : merged.campaigns) fmt::print("{}", campaign_text(store, run));
  return 0;
}

void check_ages(const PruneAges& ages) {
  constexpr int kMostDays = 36500;
  for (const auto& [flag, days] :
       {std::pair("samples", ages.samples), std::pair("runs", ages.launches.value_or(0))}) {
    if (days >= 0 && days <= kMostDays) continue;
    usage_error("--keep-{} {} is not a number of days; give a number from 0 to {}", flag, days,
                kMostDays);
  }
}

int prune_store(const StoreCommand& command) {
  constexpr double kMiB = 1 << 20;
  if (!command.files.empty()) {
    usage_error("store prune '{}': give the store as --db PATH", command.files[0]);
  }
  check_ages(command.ages);
  Store store = Store::open(command.db, Store::Mode::update);
  store.check_intact();  // a damaged store is for looking at, not for writing to
  const Pruned pruned = prune(store, command.ages);
  const Sizes sizes = compact(store);
  fmt::print("{} runs were thinned", pruned.runs);
  if (pruned.whole > 0) {
    fmt::print("; {} old runs stay whole, because a gate failed them or they were blessed",
               pruned.whole);
  }
  fmt::print("\n{} is {:.1f} MiB, was {:.1f}\n", command.db,
             static_cast<double>(sizes.after) / kMiB, static_cast<double>(sizes.before) / kMiB);
  return 0;
}

}  // namespace

int cmd_store(const Args& args) {
  std::string action;
  StoreCommand command;
  std::optional<std::string> db;
  Flags flags;
  flags.add(flag("leave-unfinished", command.merging.leave_unfinished));
  flags.add(flag("keep-samples", po::value(&command.ages.samples)->default_value(30)));
  flags.add(flag("keep-runs", command.ages.launches));
  flags.add(flag("db", db, "prune: the store"));
  std::set<std::string> given;
  if (!parse("store", flags, args,
             {{"ACTION", po::value(&action)}, {"FILES", po::value(&command.files)}}, &given)) {
    return 0;
  }
  if (action == "merge") {
    refuse_flags(given, {"keep-samples", "keep-runs", "db"},
                 "belongs to `moegate store prune`; leave it out");
    return merge_stores(command);
  }
  if (action == "prune") {
    refuse_flags(given, {"leave-unfinished"}, "belongs to `moegate store merge`; leave it out");
    command.db = db ? *db : announced(nearest_store());
    return prune_store(command);
  }
  usage_error("store{}: use merge OUT IN... or prune",
              action.empty() ? "" : fmt::format(" '{}'", action));
}

}  // namespace moegate
