// SPDX-License-Identifier: Apache-2.0
// moegate bless: make a run the baseline.
#include <fmt/format.h>
#include <unistd.h>

#include <map>

#include "harness/base/escape.h"
#include "harness/base/notes.h"
#include "harness/baseline/bless.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/flags.h"
#include "harness/commands/project.h"
#include "harness/commands/resources.h"
#include "harness/store/prune.h"
#include "harness/store/store.h"

namespace moegate {
namespace {

struct BlessCommand {
  std::string db, run;
  BlessOptions options;
  bool resources = false;
  ResourcesCommand of_kernels;
};

/// What a baseline is refused for unless it is accepted.
void accept(const std::string& list, BlessOptions& options) {
  const std::map<std::string, bool*> known = {{"dirty", &options.allow_dirty},
                                              {"creep", &options.accept_creep},
                                              {"conditions", &options.new_conditions}};
  for (const std::string& what : parse_list("--accept", list)) {
    if (!known.contains(what)) usage_error("--accept '{}'; use dirty, creep or conditions", what);
    *known.at(what) = true;
  }
}

std::optional<BlessCommand> read_bless(const Args& args) {
  BlessCommand command;
  BlessOptions& options = command.options;
  std::optional<std::string> baselines;
  Flags flags;
  flags.add(db_flag(command.db)).add(run_flag(command.run));
  flags.add(flag("reason", options.reason));
  flags.add(flag("baselines", baselines,
                 "folder of baselines (default: baselines/ of the project, or here)"));
  flags.add(flag("accept", [&](const std::string& list) { accept(list, options); }));
  Flags kernels("Or the resources of kernels");
  kernels.add(flag("resources", command.resources,
                   "write CLASS/resources.tsv, of the program's kernels, and the ledger"));
  kernels.add(flag("program", command.of_kernels.program)).add(class_flag(command.of_kernels));
  kernels.add(module_flag(command.of_kernels.modules));
  flags.add(kernels);
  std::set<std::string> given;
  if (!parse("bless", flags, args, {}, &given)) return std::nullopt;
  if (!baselines) baselines = find_project().baselines().string();
  if (command.resources) {
    refuse_flags(given, {"accept"},
                 "belongs to the baseline of a run; leave it out beside --resources");
    command.of_kernels.take(given, command.db, command.run, baselines);
    command.of_kernels.reason = plain_name("--reason", options.reason);
    return command;
  }
  refuse_flags(given, {"program", "class", "module"}, "needs --resources");
  plain_name("--reason", options.reason);
  options.author = author();
  options.baselines = *baselines;
  return command;
}

/// So that `moegate store prune` keeps it whole; where this cannot be written it is blessed, too.
void remember(const std::string& db, const RunInfo& run) {
  if (access(db.c_str(), W_OK) != 0) return;
  try {
    Store store = Store::open(db, Store::Mode::update);
    mark_blessed(store, run.id);
  } catch (const Error& error) {
    say("`moegate store prune` will not know that {} is blessed: {}\n", describe(run),
        error.what());
  }
}

}  // namespace

int cmd_bless(const Args& args) {
  auto command = read_bless(args);
  if (!command) return 0;
  if (command->resources) return bless_resources_of(command->of_kernels);
  Store store = Store::open(command->db, Store::Mode::read);
  store.check_intact(kQuicklyRead);
  const RunInfo run = store.run_info(store.find_run(command->run));
  const Sides sides = collect(store.each_level(run.id));
  command->options.environment = store.environment(run.id);
  fmt::print("{}", printable(bless(run, sides, command->options)));
  remember(command->db, run);
  return 0;
}

}  // namespace moegate
