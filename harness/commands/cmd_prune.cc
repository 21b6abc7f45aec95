// SPDX-License-Identifier: Apache-2.0
// moegate prune: make a store smaller.
#include "harness/base/error.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/flags.h"
#include "harness/store/prune.h"

namespace moegate {

namespace po = boost::program_options;

int cmd_prune(const Args& args) {
  constexpr double kMiB = 1 << 20;
  constexpr int kMostDays = 36500;
  std::string db;
  PruneAges ages;
  po::options_description flags("Options");
  flags.add_options()  //
      ("keep-samples", po::value(&ages.samples)->default_value(30)->value_name("DAYS"),
       "the spans of single launches of older runs go; their levels and verdicts stay, and "
       "everything of runs that a gate failed or that were blessed")  //
      ("keep-runs", into(ages.launches)->value_name("DAYS"),
       "of older runs launches, metrics and stalls go, too (default: they stay)");
  flags.add(db_flag(db));
  if (!parse("moegate prune [options]", flags, args)) return 0;
  for (const auto& [flag, days] :
       {std::pair("samples", ages.samples), std::pair("runs", ages.launches.value_or(0))}) {
    if (days >= 0 && days <= kMostDays) continue;
    usage_error("--keep-{} {} is no number of days; give one from 0 to {}", flag, days, kMostDays);
  }
  Store store = Store::open(db, Store::Mode::update);
  store.check_intact();  // a damaged store is for looking at, not for writing to
  const Pruned pruned = prune(store, ages);
  const Sizes sizes = compact(store);
  fmt::print("{} runs were thinned", pruned.runs);
  if (pruned.whole > 0) {
    fmt::print("; {} as old stay whole: a gate failed them, or they were blessed", pruned.whole);
  }
  fmt::print("\n{} is {:.1f} MiB, was {:.1f}\n", db, static_cast<double>(sizes.after) / kMiB,
             static_cast<double>(sizes.before) / kMiB);
  return 0;
}

}  // namespace moegate
