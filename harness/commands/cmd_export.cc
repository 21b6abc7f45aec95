// SPDX-License-Identifier: Apache-2.0
// moegate export: a run's results in a format of other tools.
#include <filesystem>

#include "harness/base/error.h"
#include "harness/base/files.h"
#include "harness/base/notes.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"
#include "harness/commands/flags.h"
#include "harness/report/flashinfer_trace.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;

struct ExportCommand {
  std::string format, db, run, out;
  bool folder = false;  // whether `out` is one
};

std::optional<ExportCommand> read_export(const Args& args) {
  ExportCommand command;
  po::options_description flags("Options");
  flags.add_options()  //
      ("what", po::value(&command.format)->default_value("")->value_name("FORMAT"),
       "flashinfer-trace: JSON lines of FlashInfer-Bench's trace schema (positional)")  //
      ("out", po::value(&command.out)->default_value("")->value_name("PATH"),
       "a file; - is standard output; a folder, there or ending in '/', gets traces/OPERATOR/, as "
       "a "
       "data set has it");
  flags.add(db_flag(command.db));
  flags.add(run_flag(command.run));
  if (!parse("moegate export flashinfer-trace --out PATH [options]", flags, args, {"what"})) {
    return std::nullopt;
  }
  if (command.format != "flashinfer-trace") {
    usage_error("moegate export: there is no format '{}'; use flashinfer-trace", command.format);
  }
  if (command.out.empty()) usage_error("moegate export: give --out FILE, --out FOLDER/ or --out -");
  std::error_code ignored;  // then it is no folder
  command.folder = command.out.ends_with('/') || fs::is_directory(command.out, ignored);
  if (!command.folder) check_output(command.out);
  return command;
}

/// One file for each operator. Its name is the run's, so that those of several runs lie side by side.
void write_into_folder(const ExportCommand& command, const RunInfo& run,
                       const FlashinferTraces& traces) {
  for (const auto& [op, lines] : traces.lines) {
    const fs::path folder = fs::path(command.out) / "traces" / class_name(op);
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) usage_error("--out {}: {}", folder.string(), error.message());
    write_file_atomically(folder / ("moegate-" + class_name(run.uuid) + ".jsonl"), lines);
  }
}

}  // namespace

int cmd_export(const Args& args) {
  const auto command = read_export(args);
  if (!command) return 0;
  Store store = Store::open(command->db, Store::Mode::read);
  const RunInfo run = store.run_info(store.find_run(command->run));
  const FlashinferTraces traces = read_flashinfer_traces(store, run.id);
  for (const std::string& note : traces.notes) say("{}\n", note);
  if (traces.count == 0) {
    throw Error(Exit::coverage, fmt::format("{} has no result that a trace can hold; `moegate list "
                                            "runs` shows the runs",
                                            describe(run)));
  }
  if (command->folder) {
    write_into_folder(*command, run, traces);
  } else {
    std::string all;
    for (const auto& [op, lines] : traces.lines) all += lines;
    write_output(command->out, all);
  }
  if (command->out != "-")
    fmt::print("{} traces of {} in {}\n", traces.count, describe(run), command->out);
  return 0;
}

}  // namespace moegate
