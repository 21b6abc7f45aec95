// SPDX-License-Identifier: Apache-2.0
// moegate tune: find the fastest tile configurations.
#include "harness/base/notes.h"
#include "harness/campaign/runner.h"
#include "harness/campaign/tuning.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/flags.h"

namespace moegate {
namespace {

std::optional<TuneOptions> read_tune(const Args& args) {
  RunOptions run;
  run.db = "out/tune.sqlite";
  std::string ops, routing, out = "out/tiles";
  std::optional<std::string> resume;
  Flags flags("What to tune");
  flags.add(
      flag("op", ops,
           "operators to tune; they share one block (default: all that have tile configurations)"));
  flags.add(flag("routing", routing));
  flags.add(flag(
      "out", out,
      "folder of the files PATH/CLASS/SHAPE.ini; tuned entries are replaced, other entries stay"));
  flags.add(flag("rounds", run.rounds,
                 "worker processes; the first measures every candidate, the others measure "
                 "candidates within 10 % of the best"));
  flags.add(flag("db", run.db, "the store of the candidates; keep it apart from measurements"));
  flags.add(flag("resume", resume, "finish an interrupted tuning; options come from the run"));
  flags.add(selection_flags(run)).add(measuring_flags(run));
  std::set<std::string> given;
  if (!parse("tune", flags, args, {}, &given)) return std::nullopt;
  if (resume) {
    refuse_beside_resume(given, {"db", "out", "module"});
    Store store = Store::open(run.db, Store::Mode::read);
    const int64_t id = store.find_resumable(*resume);
    RunOptions stored;
    stored.from_json(store.run_info(id).options);
    use_named_kernels(stored, run.worker.kernels, fmt::format("run {}", id));
    stored.db = run.db;
    return TuneOptions{stored, id, out};
  }
  require_suite(run);
  check_measuring(run);
  within("--rounds", run.rounds, 1, kMostRounds);
  run.command = command_line("tune", args);
  if (!routing.empty()) set_axis(run, "--routing", "routing", {routing});
  return TuneOptions{tuning_run(run, ops.empty() ? Args{} : parse_list("--op", ops)), 0, out};
}

/// Of the entries of a file that there was: "(entries: 2 replaced, 1 new, 3 kept)".
std::string what_became_of(const MergedTiles& merged) {
  if (merged.replaced + merged.kept == 0) return "";
  return fmt::format(" (entries: {} replaced, {} new, {} kept)", merged.replaced, merged.added,
                     merged.kept);
}

void print(const Tuned& tuned, const std::string& db) {
  const Tally& tally = tuned.tally;
  fmt::print("{}\n\n", summary(tally, fmt::format("run {} in {}", tally.run, db)));
  for (const TunedFile& file : tuned.files) {
    fmt::print("{}{}\n{}\n", file.path.string(), what_became_of(file.merged),
               render(tune_table(file.picks), Format::text));
    for (const TunedTile& tile : file.merged.apart) {
      say("{} keeps block {} at {} tokens; a layer needs one for all its operators: tune them "
          "together\n",
          tile.op, tile.config.block, tile.tokens);
    }
  }
  for (const TileTask& task : tuned.missing) {
    say("no configuration for {} at {} tokens of {}\n", task.op, task.tokens, task.shape);
  }
}

}  // namespace

int cmd_tune(const Args& args) {
  const auto options = read_tune(args);
  if (!options) return 0;
  const Tuned tuned = tune(*options, worker_processes());
  print(tuned, options->run.db);
  return static_cast<int>(tune_exit(tuned));
}

}  // namespace moegate
