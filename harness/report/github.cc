// SPDX-License-Identifier: Apache-2.0
#include "harness/report/github.h"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>

#include "harness/base/environment.h"
#include "harness/base/error.h"
#include "harness/base/escape.h"
#include "harness/base/notes.h"
#include "harness/report/page_markdown.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;

constexpr size_t kErrors = 10;  // a step shows ten errors and ten warnings

const char* title_of(const CaseVerdict& v) {
  switch (v.outcome) {
    case Outcome::regressed:
      return "latency regression";
    case Outcome::wrong:
      return v.drift ? "accuracy regression" : "wrong output";
    case Outcome::missing:
      return "no result";
    default:
      return "not comparable";
  }
}

/// "file=baselines/nvidia-h200/nightly.tsv,line=4,"; empty where the case has no such row.
std::string anchor_of(const CaseVerdict& v, const fs::path& workspace) {
  const int line = v.against.empty() ? 0 : baseline_line(v.against, v.id);
  if (line == 0) return "";
  std::error_code ignored;
  const std::string file = fs::relative(v.against, workspace, ignored).generic_string();
  if (file.empty() || file.compare(0, 2, "..") == 0) return "";  // not of the repository
  return fmt::format("file={},line={},", workflow_property(file), line);
}

}  // namespace

std::string annotations(const GateReport& report, const fs::path& workspace) {
  const auto failures = worst_first(report.result, kFailures);
  std::string text;
  for (size_t i = 0; i < std::min(failures.size(), kErrors); ++i) {
    const CaseVerdict& v = *failures[i];
    text += fmt::format("::error {}title={}::{}\n", anchor_of(v, workspace),
                        workflow_property(title_of(v)),
                        workflow_escaped(v.id.key + " " + v.id.variant + ": " + v.why +
                                         (v.cause ? "\ncause: " + v.cause->sentence : "")));
  }
  std::string rest;
  if (failures.size() > kErrors)
    rest = fmt::format("{} more failures, see the summary\n", failures.size() - kErrors);
  for (const std::string& problem : report.result.waiver_problems) rest += problem + "\n";
  if (rest.empty()) return text;
  rest.pop_back();
  return text + "::warning title=moegate::" + workflow_escaped(rest) + "\n";
}

int baseline_line(const fs::path& baseline, const CaseId& id) {
  std::ifstream in(baseline);
  const std::string key = id.key + " " + id.variant;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line == key) return number + 1;
  }
  return 0;
}

void append_summary(const GateReport& report, const fs::path& summary) {
  std::error_code missing;
  const auto size = fs::file_size(summary, missing);
  const size_t used = missing ? 0 : static_cast<size_t>(size);
  const size_t left = used < kSummaryBytes ? kSummaryBytes - used : 0;
  const std::string text = to_markdown(gate_page(report), left);
  if (text.empty()) return;  // not even the verdict fits
  std::ofstream out(summary, std::ios::app | std::ios::binary);
  out << text;
  if (!out.flush())
    usage_error("{}: cannot be appended to (GITHUB_STEP_SUMMARY)", summary.string());
}

void publish_to_github(const GateReport& report) {
  const std::string workspace = environment("GITHUB_WORKSPACE");
  say_raw(annotations(report, workspace.empty() ? fs::current_path() : fs::path(workspace)));
  const std::string summary = environment("GITHUB_STEP_SUMMARY");
  if (!summary.empty()) append_summary(report, summary);
}

}  // namespace moegate
