// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/row_command.h"

#include <fmt/format.h>

#include <cstring>
#include <optional>

#include "harness/base/error.h"
#include "harness/base/text.h"
#include "harness/campaign/run_options.h"
#include "harness/worker/nvtx.h"

namespace moegate {
namespace {

/// Where the word that begins there ends: at a blank that no quotes hold.
size_t end_of_word(const std::string& text, size_t at) {
  bool quoted = false;
  for (; at < text.size() && (quoted || text[at] != ' '); ++at)
    quoted = quoted != (text[at] == '\'');
  return at;
}

/// A command line with another value of a flag, or with the flag.
std::string with_flag(std::string command, const std::string& flag, const std::string& value) {
  const size_t at = command.find(" " + flag);
  const size_t behind = at + 1 + flag.size();
  const bool there =
      at != std::string::npos && behind < command.size() && std::strchr(" =", command[behind]);
  if (!there) return fmt::format("{} {} {}", command, flag, value);
  command.replace(behind, end_of_word(command, behind + 1) - behind, " " + value);
  return command;
}

/// Whether a shell takes it for one command of moegate's: words as shell_word() writes them, a blank between.
bool is_plain_command(const std::string& text) {
  if (!text.starts_with("moegate ") && text.find("/moegate ") == std::string::npos &&
      !text.starts_with("ci/"))
    return false;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) return false;
    if (c == '\'') {
      quoted = !quoted;
    } else if (!quoted && c == '\\' && i + 1 < text.size() && text[i + 1] == '\'') {
      ++i;
    } else if (!quoted && c != ' ' && shell_word(std::string(1, c)) != std::string(1, c)) {
      return false;
    }
  }
  return !quoted;
}

std::optional<RunOptions> options_of(const RunInfo& run) {
  try {
    RunOptions options;
    options.from_json(run.options);
    return options;
  } catch (const Error&) {
    return std::nullopt;  // of another program
  }
}

}  // namespace

std::string repeat_command(const RunInfo& run, const std::string& db) {
  std::optional<RunOptions> options = options_of(run);
  if (options && run.task == "measure" && !run.tags.contains("ab")) {
    options->db = db;
    return run_command(*options);
  }
  return is_plain_command(run.command) ? run.command : "";
}

std::string absent_shard_command(const RunInfo& run, int shard) {
  if (is_plain_command(run.command)) return shard_command(run.command, shard, run.shards);
  const std::string repeat = repeat_command(run, "FILE");
  const std::string campaign = " --campaign " + shell_word(run.campaign);
  return repeat.empty() ? "" : shard_command(repeat + campaign, shard, run.shards);
}

std::string shard_command(const std::string& typed, int shard, int shards) {
  return with_flag(with_flag(typed, "--shard", fmt::format("{}/{}", shard, shards)), "--db",
                   "FILE");
}

std::string run_command(const RunOptions& options) {
  return fmt::format("moegate run{} --db {}", repeating_flags(options, ""), shell_word(options.db));
}

namespace {

/// The rows alone: the profiler decides how they are launched.
std::string profiled_command(const RunOptions& options) {
  return fmt::format("moegate run{} --profile", repeating_flags(options, kSelectionGroup));
}

}  // namespace

std::string nsys_command(const RunOptions& options, const std::string& report) {
  return fmt::format(
      "nsys profile --trace=cuda,nvtx --sample=none --cpuctxsw=none --force-overwrite=true "
      "--output={} {}",
      shell_word(report), profiled_command(options));
}

std::string ncu_command(const RunOptions& options, Cache cache, const std::string& report) {
  // The slash says that it is a range that is pushed and popped, as ours are.
  return fmt::format(
      "ncu --target-processes all --nvtx --nvtx-include {}/ --clock-control none "
      "--cache-control {} --set full --import-source yes --force-overwrite --export {} {}",
      kLaunchesRange, cache == Cache::warm ? "none" : "all", shell_word(report),
      profiled_command(options));
}

}  // namespace moegate
