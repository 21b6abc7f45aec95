// SPDX-License-Identifier: Apache-2.0
// moegate import: workloads of other tools as a suite.
#include <filesystem>

#include "harness/base/error.h"
#include "harness/base/escape.h"
#include "harness/base/files.h"
#include "harness/base/home.h"
#include "harness/campaign/trace_import.h"
#include "harness/commands/cli.h"
#include "harness/commands/commands.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;

struct ImportCommand {
  std::string format, from, out, name = "flashinfer-trace";
};

std::optional<ImportCommand> read_import(const Args& args) {
  ImportCommand command;
  po::options_description flags("Options");
  flags.add_options()  //
      ("what", po::value(&command.format)->default_value("")->value_name("FORMAT"),
       "flashinfer-trace: definitions, workloads and traces of FlashInfer-Bench (positional)")  //
      ("from", po::value(&command.from)->default_value("")->value_name("PATH"),
       "the data set's folder, or one file of traces (positional)")  //
      ("out", po::value(&command.out)->default_value("")->value_name("FOLDER"),
       "gets NAME.suite, and data/ with recorded expert ids; made where it is missing")  //
      ("name", po::value(&command.name)->default_value(command.name)->value_name("NAME"),
       "of the suite");
  if (!parse("moegate import flashinfer-trace PATH --out FOLDER [options]", flags, args,
             {"what", "from"})) {
    return std::nullopt;
  }
  if (command.format != "flashinfer-trace") {
    usage_error("moegate import: there is no format '{}'; use flashinfer-trace", command.format);
  }
  if (command.from.empty()) usage_error("moegate import: give the folder of the data set");
  if (command.out.empty()) usage_error("moegate import: give --out FOLDER, for the suite");
  if (command.name.empty()) usage_error("--name is empty; give the suite a name");
  if (fs::path(plain_name("--name", command.name)).filename() != command.name) {
    usage_error("--name '{}' is no file's name; --out has its folder", command.name);
  }
  return command;
}

/// Empty where there is none, which an import can do without.
fs::path home_if_any() {
  try {
    return home();
  } catch (const Error&) {
    return {};
  }
}

/// What a suite says of a folder: `replay:` finds it from everywhere below the tool's home, else as it was typed.
std::string as_suites_name(const fs::path& folder) {
  std::error_code ignored;  // then it stays as it was typed
  const fs::path whole = fs::weakly_canonical(folder, ignored);
  const fs::path home = fs::weakly_canonical(home_if_any(), ignored);
  const fs::path below = whole.lexically_relative(home);
  const bool inside = !home.empty() && !below.empty() && *below.begin() != "..";
  return (inside ? below : folder.lexically_normal()).string();
}

void make_suite_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) usage_error("--out {}: {}", folder.string(), error.message());
}

}  // namespace

int cmd_import(const Args& args) {
  const auto command = read_import(args);
  if (!command) return 0;
  const fs::path folder = command->out, data = folder / "data";
  const ImportedSuite imported = import_trace_set(
      command->from,
      fmt::format("Workloads of {}, FlashInfer-Bench's trace schema; made by `moegate import`.",
                  command->from),
      as_suites_name(data));
  for (const std::string& note : imported.notes) fmt::print("- {}\n", printable(note));
  if (imported.cases == 0) {
    throw Error(Exit::coverage,
                fmt::format("{}: no workload is one of an operator that is here", command->from));
  }
  make_suite_folder(imported.recordings.empty() ? folder : data);
  for (const auto& [name, bytes] : imported.recordings) write_file_atomically(data / name, bytes);
  const fs::path suite = folder / (command->name + ".suite");
  write_file_atomically(suite, imported.text);
  fmt::print("{} cases, {} recorded routings in {}; `moegate list cases --suite {}`\n",
             imported.cases, imported.recordings.size(), suite.string(), suite.string());
  return 0;
}

}  // namespace moegate
