// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/run_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <tuple>

#include "harness/base/environment.h"
#include "harness/base/error.h"
#include "harness/base/hash.h"
#include "harness/base/text.h"
#include "harness/worker/nvtx.h"

namespace moegate {
namespace {

constexpr std::string_view kGpu = "cuda:";

/// "cuda:1" of "cuda:1", "1" and "01".
std::string numbered_gpu(std::string_view name, const std::string& spec) {
  const std::string_view digits = name.starts_with(kGpu) ? name.substr(kGpu.size()) : name;
  constexpr size_t kMostDigits = 3;
  const auto number = parse_number<unsigned>(digits);
  if (!number || digits.size() > kMostDigits) {
    usage_error(
        "--device {}: a run on several devices needs numbered GPUs, and '{}' is none; write "
        "cuda:0,1, or name one device",
        spec, name);
  }
  return fmt::format("{}{}", kGpu, *number);
}

constexpr int kMostShards = 1000000;
constexpr size_t kIdDigits = 32;

int array_number(const char* flag, const char* name, const Environment& environment) {
  const std::string text = environment(name);
  if (text.empty()) {
    usage_error(
        "{} slurm: the variable {} is not set; submit the command as a job array (sbatch "
        "--array=1-N), or write --shard K/N",
        flag, name);
  }
  const auto number = parse_number<int>(text);
  if (!number || *number < 0)
    usage_error(
        "{} slurm: {}='{}' is not a number; submit the command as a job array (sbatch --array=1-N)",
        flag, name, text);
  return *number;
}

std::pair<int, int> shard_of_task(const Environment& environment) {
  const auto number = [&](const char* name) { return array_number("--shard", name, environment); };
  const int id = number("SLURM_ARRAY_TASK_ID"), first = number("SLURM_ARRAY_TASK_MIN"),
            last = number("SLURM_ARRAY_TASK_MAX"), count = number("SLURM_ARRAY_TASK_COUNT");
  constexpr const char* kStep = "SLURM_ARRAY_TASK_STEP";  // stated only where there is one
  const int step = environment(kStep).empty() ? 1 : std::max(1, number(kStep));
  const bool whole = first <= id && id <= last && (id - first) % step == 0 &&
                     (last - first) / step + 1 == count && count <= kMostShards;
  if (!whole) {
    usage_error(
        "--shard slurm: task {} is in an array from {} to {} in steps of {} with {} tasks, and an "
        "array with gaps lacks shards; submit --array=1-N, or write --shard K/N",
        id, first, last, step, count);
  }
  return {(id - first) / step, count};
}

using R = RunOptions;
using Words = std::vector<std::string>;

Words no_words(const R&, const FlagText&) {
  return {};
}

void read_axis(R& run, const FlagText&, const std::string& text) {
  const auto [name, list] = split_assignment("--axis", text);
  set_axis(run, "--axis", name, parse_list("--axis", list));
}

Words axis_words(const R& run, const FlagText&) {
  return mapped(run.axes, [](const auto& axis) {
    return fmt::format("{}={}", axis.first, fmt::join(axis.second, ","));
  });
}

/// --seed, --cache and --launch replace the parameter of their name.
void read_parameter(R& run, const FlagText& flag, const std::string& text) {
  const bool both = std::string_view(flag.name) == "cache" && text == "both";
  set_axis(run, ("--" + std::string(flag.name)).c_str(), flag.name,
           both ? Words{"cold", "warm"} : Words{text});
}

void read_shard(R& run, const FlagText&, const std::string& text) {
  std::tie(run.shard, run.shards) = parse_shard(text, environment);
}

Option<R> parameter_row(FlagText flag, const char* group) {
  return {flag, group, "", "", Repeat::never, read_parameter, no_words, nullptr, nullptr};
}

/// Whether a shell takes it for one command of moegate's, of words as shell_word() writes them.
bool is_plain_command(const std::string& text) {
  if (!text.starts_with("moegate ") && text.find("/moegate ") == std::string::npos &&
      !text.starts_with("ci/"))
    return false;
  static const Pattern words =
      compile_pattern("a command", R"((?:[\w./=,:@%+ -]|\\'|'[^'\x00-\x1f\x7f]*')*)");
  return words.matches(text);
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

/// The rows alone: the profiler decides how they are launched.
std::string profiled_command(RunOptions options) {
  options.case_timeout_s = RunOptions().case_timeout_s;  // a profiler makes them take longer
  return fmt::format("moegate run{} --profile", repeating_flags(options, kSelectionGroup));
}

}  // namespace

std::pair<int, int> parse_shard(const std::string& text, const Environment& environment) {
  if (text == "slurm") return shard_of_task(environment);
  const size_t slash = text.find('/');
  if (slash != std::string::npos) {
    const auto k = parse_number<int>(text.substr(0, slash));
    const auto n = parse_number<int>(text.substr(slash + 1));
    if (k && n && 1 <= *k && *k <= *n && *n <= kMostShards) return {*k - 1, *n};
  }
  usage_error("--shard '{}': write K/N with 1 <= K <= N, or slurm", text);
}

std::string parse_campaign(const std::string& text, const Environment& environment) {
  if (text == "slurm") {
    const int job = array_number("--campaign", "SLURM_ARRAY_JOB_ID", environment);
    return sha256("slurm " + environment("SLURM_CLUSTER_NAME") + " " + std::to_string(job))
        .substr(0, kIdDigits);
  }
  std::string digits = text;
  std::erase(digits, '-');
  std::ranges::transform(digits, digits.begin(), [](unsigned char c) { return std::tolower(c); });
  const bool hex = std::ranges::all_of(digits, [](unsigned char c) { return std::isxdigit(c); });
  if (hex && digits.size() == kIdDigits) return digits;
  usage_error(
      "--campaign '{}': write a uuid, the same for all shards (`uuidgen` makes one), or slurm",
      text);
}

std::span<const Option<RunOptions>> run_options() {
  using K = ValueKind;
  static constexpr const char* where = kSelectionGroup;
  static constexpr const char* how = kMeasuringGroup;
  static const std::array rows = {
      option_row<R, &R::suites>(
          {"suite", "S", K::suite, "a suite by its name or path; may be repeated"}, where, "suites",
          "", Repeat::if_set),
      option_row<R, &R::filter>({"filter", "RE", K::filter, "only cases whose key matches"}, where,
                                "filter", "", Repeat::if_set),
      option_row<R, &R::variant>({"variant", "RE", K::variant, "only variants whose name matches"},
                                 where, "kernel", "", Repeat::if_set),
      Option<R>{
          {"axis", "P=V,V", K::axis, "replace a parameter's values: tokens=1,8; may be repeated"},
          where,
          "axes",
          "",
          Repeat::if_set,
          read_axis,
          axis_words,
          [](const R& run) -> nlohmann::json { return run.axes; },
          [](R& run, const nlohmann::json& json) { run.axes = json.get<Axes>(); }},
      parameter_row({"seed", "N", K::number, "seed of every input"}, where),
      option_row<R, &R::invariance>(
          {"invariance", "N", K::number,
           "also ask whether a token's output bits depend on its batch: the number of tokens, the "
           "other tokens, the place in it; with batches of up to N tokens (0: do not ask)",
           "", 0, 1e6},
          where, "invariance", "", Repeat::if_set),
      option_row<R, &R::case_timeout_s>(
          {"case-timeout", "T", K::time, "a row that takes longer is recorded as a timeout"}, where,
          "case_timeout_s", "", Repeat::if_set),
      Option<R>{{"shard", "K/N", K::text,
                 "measure part K of N of the cases; slurm takes K and N from the job array"},
                where,
                "shard",
                "",
                Repeat::never,
                read_shard,
                no_words,
                [](const R& run) -> nlohmann::json { return run.shard; },
                [](R& run, const nlohmann::json& json) { read_number(json, run.shard); }},
      option_row<R, &R::shards>({}, "", "shards", "", Repeat::never),
      parameter_row({"cache", "C", K::choice,
                     "cold, warm, both or cold-weights (default: as the suite says, else cold)",
                     "cold,warm,both,cold-weights"},
                    how),
      parameter_row({"launch", "L", K::choice,
                     "stream or graph (default: as the suite says, else stream)", "stream,graph"},
                    how),
      option_row<R, &R::rounds>(
          {"rounds", "N", K::number, "worker processes; each one measures every row", "", 1,
           kMostRounds},
          "", "rounds", "", Repeat::always),
      option_row<R, &R::ops>({}, "", "ops", "", Repeat::never),
      option_row<R, &R::canary_slow_by>({}, "", "canary_slow_by", "", Repeat::never),
      option_row<R, &R::canary_scale>({}, "", "canary_scale", "", Repeat::never),
      option_row<R, &R::order_seed>({}, "", "order_seed", "", Repeat::never)};
  return rows;
}

std::string repeating_flags(const RunOptions& run, const std::string& group) {
  static const RunOptions unset;
  std::string text;
  const auto add = [&](const auto& row, const auto& options, const auto& defaults) {
    if (row.repeat == Repeat::never || (!group.empty() && group != row.group)) return;
    const Words words = row.words(options, row.flag);
    if (row.repeat == Repeat::if_set && words == row.words(defaults, row.flag)) return;
    for (const std::string& word : words) {
      text += fmt::format(" --{} {}", row.flag.name, shell_word(word));
    }
  };
  for (const auto& row : run_options()) add(row, run, unset);
  for (const auto& row : worker_options()) add(row, run.worker, unset.worker);
  return text;
}

void set_axis(RunOptions& run, const char* flag, const std::string& name, Words values) {
  if (run.axes.emplace(name, std::move(values)).second) return;
  if (std::string_view(flag) == "--axis") {
    usage_error("--axis {} is given twice; write its values in one list", name);
  }
  usage_error("{} and --axis {} are both given; keep one", flag, name);
}

std::pair<std::string, std::string> split_assignment(const std::string& flag,
                                                     const std::string& text) {
  const size_t at = text.find('=');
  if (at == std::string::npos || at == 0 || at + 1 == text.size()) {
    usage_error("{} '{}' is not of the form name=value", flag, text);
  }
  return {text.substr(0, at), text.substr(at + 1)};
}

Words parse_list(const std::string& flag, const std::string& text) {
  Words parts = split_list(text);
  for (const std::string& part : parts) {
    if (part.empty()) usage_error("{} '{}' has an empty part", flag, text);
  }
  return parts;
}

std::vector<std::string> devices_of(const std::string& spec) {
  if (spec.find(',') == std::string::npos) return {spec};
  std::vector<std::string> devices;
  std::istringstream parts(spec + ',');
  for (std::string part; std::getline(parts, part, ',');) {
    const std::string gpu = numbered_gpu(part, spec);
    if (std::ranges::count(devices, gpu) > 0) {
      usage_error("--device {}: names {} twice; name each GPU once", spec, gpu);
    }
    devices.push_back(gpu);
  }
  return devices;
}

std::string device_list(const std::vector<std::string>& devices) {
  std::string list;
  for (const std::string& device : devices) {
    list += list.empty() ? device : "," + device.substr(kGpu.size());
  }
  return list;
}

int gpu_number(const std::string& device) {
  return std::stoi(device.substr(kGpu.size()));
}

std::string RunOptions::to_json() const {
  nlohmann::json j = {{"filtered", filtered()}, {"narrowed", narrowed()}};
  for_each_option(*this, [&](const auto& row, const auto& options) {
    if (*row.key != 0) j[row.key] = row.get(options);
  });
  // A path may be any bytes.
  return j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void RunOptions::from_json(const std::string& text) {
  try {
    const auto j = nlohmann::json::parse(text);
    for_each_option(*this, [&](const auto& row, auto& options) {
      if (*row.key != 0) row.set(options, j.at(row.key));
    });
    const bool possible = shard >= 0 && shard < shards && rounds >= 0 && case_timeout_s > 0 &&
                          worker.sampling.min_samples >= 1 && worker.sampling.budget_s > 0;
    if (!possible) throw std::invalid_argument("no run can have them");
  } catch (const std::exception& e) {  // whatever it is, no run has written it
    give_up(Exit::store,
            "the options that a run was stored with cannot be read ({}): the store is damaged; "
            "restore a copy",
            e.what());
  }
}

std::string repeat_command(const RunInfo& run, const std::string& db) {
  std::optional<RunOptions> options = options_of(run);
  if (options && run.task == "measure" && !run.tags.contains("ab")) {
    options->db = db;
    return run_command(*options);
  }
  return is_plain_command(run.command) ? run.command : "";
}

std::string absent_shard_command(const RunInfo& run, int shard) {
  if (!options_of(run)) return "";  // what somebody typed names a shard already
  std::string command = repeat_command(run, "FILE");
  command +=
      fmt::format(" --shard {}/{} --campaign {}", shard, run.shards, shell_word(run.campaign));
  return run.label.empty() ? command : command + " --label " + shell_word(run.label);
}

std::string run_command(const RunOptions& options) {
  return fmt::format("moegate run{} --db {}", repeating_flags(options, ""), shell_word(options.db));
}

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
