// SPDX-License-Identifier: Apache-2.0
#include "harness/values/run.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace moegate {

bool same_device(const std::string& a, const std::string& b) {
  return a == b && !a.starts_with(kSeveralDevices);
}

bool is_partial(const RunInfo& run) {
  if (run.status != "complete") return true;
  const auto options = nlohmann::json::parse(run.options, nullptr, /*allow_exceptions=*/false);
  return options.is_object() && options.value("filtered", false);
}

std::string measured_commit(const RunInfo& run) {
  const auto tag = run.tags.find(kCommitTag);
  if (tag == run.tags.end()) return run.git_sha + (run.dirty ? "+dirty" : "");
  constexpr std::string_view kDirty = "-dirty";
  const std::string& commit = tag->second;
  if (!commit.ends_with(kDirty)) return commit;
  return commit.substr(0, commit.size() - kDirty.size()) + "+dirty";
}

std::string short_measured_commit(const RunInfo& run) {
  constexpr size_t kShort = 12;
  const std::string commit = measured_commit(run);
  const size_t end = std::min(commit.find('+'), commit.size());
  return commit.empty() ? "unknown" : commit.substr(0, std::min(end, kShort)) + commit.substr(end);
}

std::map<int, std::string> gpus_of(const RunInfo& run) {
  std::map<int, std::string> uuids;
  const auto tag = run.tags.find(kGpusTag);
  std::istringstream text(tag == run.tags.end() ? "" : tag->second);
  int number = 0;
  char equals = 0;
  for (std::string uuid; text >> number >> equals >> uuid && equals == '=';) uuids[number] = uuid;
  return uuids;
}

std::string gpus_text(const std::map<int, std::string>& uuids) {
  std::string text;
  for (const auto& [number, uuid] : uuids) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", number, uuid);
  }
  return text;
}

std::string uuids_of(const RunInfo& run) {
  std::string all;
  for (const auto& [number, uuid] : gpus_of(run)) all += (all.empty() ? "" : ",") + uuid;
  return all.empty() ? run.device.uuid : all;
}

std::string uuid_of(const RunInfo& run, int gpu) {
  const std::map<int, std::string> uuids = gpus_of(run);
  const auto at = uuids.find(gpu);
  return at == uuids.end() ? run.device.uuid : at->second;
}

std::string describe(const RunInfo& run) {
  return run.label.empty() ? fmt::format("run {}", run.id)
                           : fmt::format("run {} '{}'", run.id, run.label);
}

}  // namespace moegate
