// SPDX-License-Identifier: Apache-2.0
// moegate tune: find the fastest tile configurations, or check what others chose.
#include "harness/base/notes.h"
#include "harness/baseline/waivers.h"
#include "harness/campaign/choice_check.h"
#include "harness/campaign/runner.h"
#include "harness/campaign/tuning.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/flags.h"
#include "harness/commands/project.h"
#include "harness/plugin/plugin.h"

namespace moegate {
namespace {

/// What the user asked for: a search, or with `check` a check.
struct TuneArgs {
  TuneOptions tune;
  bool check = false;
  double limit = 0.05;
  std::optional<std::string> waivers;  // as typed
};

std::optional<TuneArgs> read_tune(const Args& args) {
  RunOptions run;
  TuneArgs asked;
  std::string limit;
  run.db = "out/tune.sqlite";
  std::string ops, routing, out = "out/tiles";
  std::optional<std::string> resume;
  Flags flags("What to tune");
  flags.add(
      flag("op", ops, "operators to tune (default: all that can be); grouped GEMMs share a block"));
  flags.add(flag("routing", routing));
  flags.add(flag(
      "out", out,
      "folder of the files PATH/CLASS/SHAPE.ini; tuned entries are replaced, other entries stay"));
  flags.add(flag("rounds", run.rounds,
                 "worker processes; the first measures every candidate, the others measure "
                 "candidates within 10 % of the best. Of --check (default: 6): those after the "
                 "first"));
  flags.add(flag("check", asked.check));
  flags.add(
      flag("margin", limit,
           "of --check: a choice may be slower than the best one by this much (default: 5%)"));
  flags.add(flag("waivers", asked.waivers));
  flags.add(flag("db", run.db, "the store of the candidates; keep it apart from measurements"));
  flags.add(flag("resume", resume, "finish an interrupted tuning; options come from the run"));
  flags.add(selection_flags(run)).add(measuring_flags(run));
  std::set<std::string> given;
  if (!parse("tune", flags, args, {}, &given)) return std::nullopt;
  if (!limit.empty()) asked.limit = parse_share("--margin", limit);
  if (resume) {
    refuse_beside_resume(given, {"db", "out", "module", "check", "margin", "waivers"});
    Store store = Store::open(run.db, Store::Mode::read);
    const int64_t id = store.find_resumable(*resume);
    const RunInfo info = store.run_info(id);
    RunOptions stored;
    stored.from_json(info.options);
    use_named_kernels(stored, run.worker.modules, fmt::format("run {}", id));
    stored.db = run.db;
    asked.check = info.label == kCheckLabel;
    stored.label = info.label;
    asked.tune = {stored, id, out};
    return asked;
  }
  require_suite(run);
  check_measuring(run);
  if (!asked.check) refuse_flags(given, {"margin", "waivers"}, "is for --check; add --check");
  if (asked.check && given.contains("out")) usage_error("--check writes no file; leave --out out");
  if (asked.check && !given.contains("rounds")) run.rounds = kCheckRounds;
  within("--rounds", run.rounds, asked.check ? kFewestRegretRounds : 1, kMostRounds);
  run.command = command_line("tune", args);
  if (!routing.empty()) set_axis(run, "--routing", "routing", {routing});
  const Args list = ops.empty() ? Args{} : parse_list("--op", ops);
  if (asked.check) {
    run.ops = list;
    run.order_seed = draw_order_seed();
    asked.tune.run = run;
  } else {
    asked.tune = {tuning_run(run, list), 0, out};
  }
  return asked;
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

Table choice_table(const ChoiceReport& report) {
  Table table{{"tokens", "outcome", "variant", "shipped us", "best us", "found"}, {}};
  for (const CheckedCell& cell : report.cells) {
    const bool timed = cell.regret.shipped_us > 0;
    const auto us = [&](double value) {
      return timed ? Table::number("{:.2f}", value) : Table::number("");
    };
    const char* outcome = cell.is_waived() ? name_of(Outcome::waived) : name_of(cell.finding);
    table.add(cell.tokens, outcome, cell.id.variant, us(cell.regret.shipped_us),
              us(cell.regret.best_us), cell.why);
  }
  return table;
}

void print(const ChoiceReport& report, const std::string& db) {
  const Tally& tally = report.tally;
  fmt::print("{}\n\n", summary(tally, fmt::format("run {} in {}", tally.run, db)));
  if (!report.cells.empty()) fmt::print("{}", render(choice_table(report), Format::text));
  for (const CheckedCliff& cliff : report.cliffs) {
    const std::string& waiver = report.cells[cliff.cell].waiver;
    fmt::print("{}: {} {}: {}\n", waiver.empty() ? "cliff" : "cliff waived by " + waiver,
               cliff.id.key, cliff.id.variant, cliff.why);
  }
  for (const std::string& mean : report.means) fmt::print("best of the mean: {}\n", mean);
  std::set<std::string> stale;
  for (const CheckedCell& cell : report.cells) {
    if (!cell.stale.empty()) stale.insert(cell.id.variant + ": " + cell.stale);
  }
  for (const std::string& one : stale) fmt::print("stale: {}\n", one);
  for (const std::string& problem : report.waiver_problems) fmt::print("{}\n", problem);
  for (const std::string& note : report.notes) say("{}\n", note);
}

/// What lets known regrets pass: the waivers that were typed, else those that a gate would read.
auto waiving(const TuneArgs& asked) {
  const std::filesystem::path file =
      asked.waivers ? std::filesystem::path(*asked.waivers)
                    : find_project().waivers(asked.tune.run.worker.modules.empty());
  return [waivers = read_waivers(file, /*of_choices=*/true)](GateResult& rows,
                                                             const std::string& klass) {
    apply_waivers(rows, waivers, klass, today(), /*full=*/false);
  };
}

}  // namespace

int cmd_tune(const Args& args) {
  const auto asked = read_tune(args);
  if (!asked) return 0;
  const TuneOptions& options = asked->tune;
  if (asked->check) {
    const CheckOptions check{options.run, options.resume, asked->limit, waiving(*asked)};
    std::optional<PreparedCheck> prepared;
    with_kernels(check.run.worker.modules, [&](const Registry& registry) {
      prepared = prepare_check(check, registry, worker_processes());
    });
    const ChoiceReport report = check_choices(std::move(*prepared), check);
    print(report, options.run.db);
    return static_cast<int>(check_exit(report));
  }
  const Tuned tuned = tune(options, worker_processes());
  print(tuned, options.run.db);
  return static_cast<int>(tune_exit(tuned));
}

}  // namespace moegate
