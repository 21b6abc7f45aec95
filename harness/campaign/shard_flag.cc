// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/shard_flag.h"

#include <algorithm>
#include <cctype>

#include "harness/base/environment.h"
#include "harness/base/error.h"
#include "harness/base/hash.h"
#include "harness/base/text.h"

namespace moegate {
namespace {

constexpr int kMostShards = 1000000;
constexpr size_t kIdDigits = 32;

int array_number(const char* flag, const char* name, const Environment& environment) {
  const std::string text = environment(name);
  if (text.empty()) {
    usage_error(
        "{} slurm: {} is not set; submit it as a job array (sbatch --array=1-N), or write --shard "
        "K/N",
        flag, name);
  }
  const auto number = parse_number<int>(text);
  if (!number || *number < 0) usage_error("{} slurm: {}='{}' is no number", flag, name, text);
  return *number;
}

/// Slurm states the step of an array only where it has one.
int array_step(const Environment& environment) {
  constexpr const char* kStep = "SLURM_ARRAY_TASK_STEP";
  if (environment(kStep).empty()) return 1;
  return std::max(1, array_number("--shard", kStep, environment));
}

std::pair<int, int> shard_of_task(const Environment& environment) {
  const auto number = [&](const char* name) { return array_number("--shard", name, environment); };
  const int id = number("SLURM_ARRAY_TASK_ID"), first = number("SLURM_ARRAY_TASK_MIN"),
            last = number("SLURM_ARRAY_TASK_MAX"), count = number("SLURM_ARRAY_TASK_COUNT");
  const int step = array_step(environment);
  const bool whole = first <= id && id <= last && (id - first) % step == 0 &&
                     (last - first) / step + 1 == count && count <= kMostShards;
  if (!whole) {
    usage_error(
        "--shard slurm: task {} of an array from {} to {} in steps of {} that has {} tasks: with "
        "gaps it is not all shards; submit --array=1-N, or write --shard K/N",
        id, first, last, step, count);
  }
  return {(id - first) / step, count};
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
  usage_error("--shard '{}' is neither K/N with 1 <= K <= N nor slurm", text);
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
      "--campaign '{}' is neither a uuid (`uuidgen` makes one, the same for all shards) nor slurm",
      text);
}

}  // namespace moegate
