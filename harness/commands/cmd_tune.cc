// SPDX-License-Identifier: Apache-2.0
// moegate tune: measures every tile configuration at the shapes and token counts of a suite, into a
// store of its own, and writes the fastest into files that variant `tuned` reads.
#include <algorithm>
#include <filesystem>

#include "harness/base/files.h"
#include "harness/base/interrupt.h"
#include "harness/base/pattern.h"
#include "harness/campaign/runner.h"
#include "harness/campaign/tune.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/run_flags.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;

/// After the first process only what is within this share of the best is measured again: more than
/// processes differ by, on a GPU and, quiet, on a host.
constexpr double kSlack = 0.1;

po::options_description tune_flags() {
  po::options_description flags("What to tune");
  flags.add_options()  //
      ("op", po::value<std::string>()->default_value("")->value_name("OP,OP"),
       "operators to tune; together they get one block (default: all that can be)")  //
      ("routing", po::value<std::string>()->default_value("")->value_name("R"),
       "replaces the suite's; of several, the mean time decides")  //
      ("rounds", po::value<int>()->default_value(3)->value_name("N"),
       "worker processes; the first measures every candidate, the others those within 10 % of the "
       "best")  //
      ("out", po::value<std::string>()->default_value("out/tiles")->value_name("DIR"),
       "folder of the files: DIR/CLASS/SHAPE.ini, written anew")  //
      ("db", po::value<std::string>()->default_value("out/tune.sqlite")->value_name("PATH"),
       "the store of the candidates; keep it apart from measurements")  //
      ("resume", po::value<std::string>()->value_name("RUN"),
       "finish an interrupted tuning; options come from the run");
  return flags;
}

std::set<std::string> tunable_ops() {
  std::set<std::string> ops;
  for (const Variant& v : all_variants()) {
    if (is_tile_variant(v.name)) ops.insert(v.op);
  }
  return ops;
}

/// The user's filter, and that the case is one of these operators'.
std::string filter_of(const std::string& ops, const std::string& filter) {
  compile_pattern("--filter", filter);
  if (ops.empty()) return filter;
  const auto known = tunable_ops(), asked = [&] {
    const auto list = split_list("--op", ops);
    return std::set<std::string>(list.begin(), list.end());
  }();
  for (const std::string& op : asked) {
    if (known.contains(op)) continue;
    usage_error("--op {}: has no tile configurations to tune; those that have: {}", op,
                fmt::join(known, ", "));
  }
  return fmt::format("^(?=(?:{})/)(?=.*(?:{}))", fmt::join(asked, "|"), filter);
}

RunOptions read_options(const po::variables_map& values, const Args& args) {
  RunOptions options = read_selection(values);
  read_measuring(values, options);
  options.rounds = values["rounds"].as<int>();
  at_least("--rounds", options.rounds, 1);
  options.command = command_line("tune", args);
  options.label = "tune";
  compile_pattern("--kernel", options.kernel);
  options.kernel = fmt::format("^{}.*(?:{})", kTilePrefix, options.kernel);
  options.filter = filter_of(values["op"].as<std::string>(), options.filter);
  const auto routing = values["routing"].as<std::string>();
  if (!routing.empty() && !options.axes.emplace("routing", Axes::mapped_type{routing}).second) {
    usage_error("--routing and --axis routing are both given; keep one");
  }
  options.axes.try_emplace("block", Axes::mapped_type{"16", "32", "64", "128"});
  options.axes.try_emplace("cache", Axes::mapped_type{"cold"});
  return options;
}

/// The run's candidates and their cases.
class Tuning {
 public:
  Tuning(Prepared prepared, int64_t resume)
      : prepared_(std::move(prepared)),
        options_(prepared_.options),
        store_(Store::open(options_.db, Store::Mode::write)),
        resume_(resume) {
    for (const PlannedCase& c : prepared_.plan.cases) cases_.emplace(c.spec.key(), c.spec);
  }

  Tally measure();
  RunInfo info() { return store_.run_info(run_); }
  /// All results so far.
  std::vector<TileRow> rows();
  /// "routing: uniform; launch: graph": what the cases of a shape have in common.
  std::string conditions(const std::string& shape) const;

 private:
  TileRow row_of(const Case& c, const std::string& variant) const;
  std::set<RowName> contending(const std::vector<RowName>& planned);

  Prepared prepared_;
  const RunOptions options_;
  Store store_;
  const int64_t resume_;
  int64_t run_ = 0;
  std::map<std::string, Case> cases_;  // by key
};

TileRow Tuning::row_of(const Case& c, const std::string& variant) const {
  const auto block = static_cast<int>(c.get_int("block", 1, std::numeric_limits<int>::max()));
  const auto tokens = static_cast<int>(c.get_int("tokens", 1, std::numeric_limits<int>::max()));
  Case base = c;
  base.params.erase("block");
  return {{tile_shape(c).name(), tokens, c.op}, base.key(), config_of_variant(variant, block)};
}

std::vector<TileRow> Tuning::rows() {
  std::vector<TileRow> rows;
  for (const Level& level : store_.levels(run_)) {
    TileRow row = row_of(cases_.at(level.key), level.variant);
    row.measured = level.result.measured();
    row.us = level.result.span_ns / 1e3;
    rows.push_back(std::move(row));
  }
  return rows;
}

std::set<RowName> Tuning::contending(const std::vector<RowName>& planned) {
  std::set<std::pair<TileTask, std::string>> left;
  for (const TileTime& time : contenders(candidate_times(rows()), kSlack)) {
    left.insert({time.task, time.config.text()});
  }
  std::set<RowName> again;
  for (const RowName& name : planned) {
    const TileRow row = row_of(cases_.at(name.first), name.second);
    if (left.contains({row.task, row.config.text()})) again.insert(name);
  }
  return again;
}

Tally Tuning::measure() {
  const InterruptGuard guard;
  Recording recording(store_, std::move(prepared_));
  recording.begin(resume_);
  run_ = recording.run();
  const std::vector<RowName> rows = recording.plan().rows();
  std::set<RowName> names(rows.begin(), rows.end());
  for (int round = 0; round < options_.rounds && !InterruptGuard::interrupted(); ++round) {
    Progress progress(names.size());
    recording.round(round, names, progress);
    if (round == 0) names = contending(rows);
  }
  recording.finish(InterruptGuard::interrupted());
  return recording.tally();
}

std::string Tuning::conditions(const std::string& shape) const {
  std::map<std::string, std::set<std::string>> values;
  for (const auto& [key, c] : cases_) {
    if (!tunable_ops().contains(c.op) || tile_shape(c).name() != shape) continue;
    for (const char* name : {"routing", "launch", "cache"}) values[name].insert(c.get(name));
  }
  std::string text;
  for (const auto& [name, all] : values) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", name, fmt::join(all, ", "));
  }
  return text;
}

void make_folder(const fs::path& folder, const char* flag) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    usage_error("{} {}: cannot make this folder: {}", flag, folder.string(), error.message());
}

/// One file and one table per shape.
void publish(Tuning& tuning, const std::vector<TilePick>& picks, const fs::path& out) {
  const RunInfo run = tuning.info();
  std::map<std::string, std::vector<TilePick>> shapes;
  for (const TilePick& pick : picks) shapes[pick.best.task.shape].push_back(pick);
  for (const auto& [shape, its] : shapes) {
    std::vector<TunedTile> tiles;
    for (const TilePick& pick : its) {
      tiles.push_back(
          {pick.best.task.op, pick.best.task.tokens, pick.best.config, pick.best.us, ""});
    }
    std::ranges::stable_sort(tiles, {}, &TunedTile::op);
    const std::vector<std::string> about = {
        "Fastest tile configurations by [operator.tokens]; see suites/tiles/README.md",
        fmt::format("{} ({}), {}, {}, commit {}{}, protocol {}, {}, at most {} processes",
                    run.device.name, run.device.uuid, run.device.driver, run.started.substr(0, 10),
                    run.git_sha.empty() ? "unknown" : run.git_sha, run.dirty ? " (dirty)" : "",
                    run.protocol, run.timer, run.rounds),
        tuning.conditions(shape), run.command};
    const fs::path path = out / run.device.klass / (shape + ".ini");
    make_folder(path.parent_path(), "--out");
    write_file_atomically(path, format_tiles(about, tiles));
    fmt::print("{}\n{}\n", path.string(), render(tune_table(its), Format::md));
  }
}

/// Says which tasks got no configuration; whether there are any.
bool report_missing(const std::vector<TileRow>& rows, const std::vector<TilePick>& picks) {
  std::set<TileTask> missing;
  for (const TileRow& row : rows) missing.insert(row.task);
  for (const TilePick& pick : picks) missing.erase(pick.best.task);
  for (const TileTask& task : missing) {
    fmt::print(stderr, "no configuration for {} at {} tokens of {}\n", task.op, task.tokens,
               task.shape);
  }
  return !missing.empty();
}

}  // namespace

int cmd_tune(const std::vector<std::string>& args) {
  po::options_description flags = tune_flags();
  flags.add(selection_flags()).add(measuring_flags());
  const auto values = parse("moegate tune --suite S [options]", flags, args);
  if (!values) return 0;
  const auto db = (*values)["db"].as<std::string>();
  const fs::path out = (*values)["out"].as<std::string>();
  RunOptions options;
  int64_t resume = 0;
  if (values->count("resume") != 0) {
    Store store = Store::open(db, Store::Mode::read);
    resume = store.find_run((*values)["resume"].as<std::string>());
    options.from_json(store.run_info(resume).options);
  } else {
    options = read_options(*values, args);
  }
  options.db = db;
  Prepared prepared = prepare(options, worker_processes());  // a bad suite must leave nothing behind
  make_folder(out, "--out");  // not only when hours have been measured
  if (fs::path(db).has_parent_path()) make_folder(fs::path(db).parent_path(), "--db");
  Tuning tuning(std::move(prepared), resume);
  const Tally tally = tuning.measure();
  fmt::print("{}\n\n", summary(tally, fmt::format("run {} in {}", tally.run, db)));
  if (tally.interrupted) return static_cast<int>(Exit::interrupted);
  const std::vector<TileRow> rows = tuning.rows();
  const std::vector<TilePick> picks = pick_tiles(candidate_times(rows));
  publish(tuning, picks, out);
  const bool missing = report_missing(rows, picks);
  const Exit exit = tally.exit();
  return static_cast<int>(exit == Exit::ok && missing ? Exit::coverage : exit);
}

}  // namespace moegate
