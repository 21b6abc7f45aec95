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
  int days = 0;
  po::options_description flags("Options");
  flags.add_options()  //
      ("keep-samples", po::value(&days)->default_value(30)->value_name("DAYS"),
       "the spans of single launches of older runs go; their levels and verdicts stay, and so do "
       "the spans of runs that a gate failed");
  flags.add(db_flag(db));
  if (!parse("moegate prune [options]", flags, args)) return 0;
  if (days < 0 || days > kMostDays) {
    usage_error("--keep-samples {} is no number of days; give one from 0 to {}", days, kMostDays);
  }
  Store store = Store::open(db, Store::Mode::update);
  store.check_intact();  // a damaged store is for looking at, not for writing to
  const Pruned pruned = prune_samples(store, days);
  const Sizes sizes = compact(store);
  fmt::print("{} runs lost their samples, {:.1f} MiB", pruned.runs,
             static_cast<double>(pruned.bytes) / kMiB);
  if (pruned.failed > 0) fmt::print("; {} as old keep them, a gate failed them", pruned.failed);
  fmt::print("\n{} is {:.1f} MiB, was {:.1f}\n", db, static_cast<double>(sizes.after) / kMiB,
             static_cast<double>(sizes.before) / kMiB);
  return 0;
}

}  // namespace moegate
