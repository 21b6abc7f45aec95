// SPDX-License-Identifier: Apache-2.0
// moegate bless: make a run the baseline.
#include <fmt/format.h>
#include <unistd.h>

#include "harness/base/escape.h"
#include "harness/base/home.h"
#include "harness/base/notes.h"
#include "harness/commands/author.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/flags.h"
#include "harness/judge/bless.h"
#include "harness/store/prune.h"
#include "harness/store/store.h"

namespace moegate {
namespace {

namespace po = boost::program_options;

struct BlessCommand {
  std::string db, run;
  BlessOptions options;
};

std::optional<BlessCommand> read_bless(const Args& args) {
  BlessCommand command;
  BlessOptions& options = command.options;
  std::optional<std::string> baselines;
  po::options_description flags("Options");
  flags.add(db_flag(command.db));
  flags.add(run_flag(command.run));
  flags.add_options()  //
      ("reason", po::value(&options.reason)->default_value("")->value_name("TEXT"),
       "why the baseline moves; goes into the ledger")  //
      ("baselines", into(baselines)->value_name("DIR"),
       "default: baselines/ of the tool's home")  //
      ("allow-dirty", po::bool_switch(&options.allow_dirty),
       "bless a build with uncommitted changes")  //
      ("accept-creep", po::bool_switch(&options.accept_creep),
       "bless rows that are slower than their best by more than 3% (host: 20%), or a suite by 1% "
       "(10%)")  //
      ("new-conditions", po::bool_switch(&options.new_conditions),
       "replace a baseline of another GPU, timer, protocol or flush; rows of unchanged machine "
       "code "
       "say what its anchors are worth now");
  if (!parse("moegate bless [options]", flags, args)) return std::nullopt;
  plain_name("--reason", options.reason);
  options.author = author();
  options.baselines = baselines ? std::filesystem::path(*baselines) : home() / "baselines";
  return command;
}

/// So that `moegate prune` leaves the run whole. A store may be read-only; what is blessed is blessed even
/// where this cannot be written.
void remember(const std::string& db, const RunInfo& run) {
  if (access(db.c_str(), W_OK) != 0) return;
  try {
    Store store = Store::open(db, Store::Mode::update);
    mark_blessed(store, run.id);
  } catch (const Error& error) {
    say("`moegate prune` will not know that {} is blessed: {}\n", describe(run), error.what());
  }
}

}  // namespace

int cmd_bless(const Args& args) {
  const auto command = read_bless(args);
  if (!command) return 0;
  Store store = Store::open(command->db, Store::Mode::read);
  store.check_intact(kQuicklyRead);
  const RunInfo run = store.run_info(store.find_run(command->run));
  const Sides sides = collect(store.each_level(run.id));
  fmt::print("{}", printable(bless(run, sides, command->options)));
  remember(command->db, run);
  return 0;
}

}  // namespace moegate
