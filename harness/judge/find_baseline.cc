// SPDX-License-Identifier: Apache-2.0
#include "harness/judge/find_baseline.h"

#include "harness/base/error.h"
#include "harness/base/files.h"
#include "harness/judge/gate_candidate.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;

fs::path find_blessed(const fs::path& given, const std::string& klass, const std::string& suite) {
  std::error_code ignored;
  if (fs::exists(given, ignored) && !fs::is_directory(given, ignored)) return given;
  for (const fs::path& path : {given / (suite + ".tsv"), baseline_path(given, klass, suite)}) {
    if (is_file(path)) return path;
  }
  return {};
}

}  // namespace

fs::path baseline_path(const fs::path& folder, const std::string& klass, const std::string& suite) {
  return folder / klass / (suite + ".tsv");
}

fs::path ledger_of(const fs::path& baseline) {
  const fs::path folder = fs::absolute(baseline).parent_path();
  for (const fs::path& place : {folder, folder.parent_path()}) {
    if (is_file(place / "blessings.tsv")) return place / "blessings.tsv";
  }
  usage_error(
      "{}: no blessings.tsv beside it or one folder above, so nobody blessed it; a baseline "
      "moves only by `moegate bless`",
      baseline.string());
}

BaselineFile find_baseline(const BaselinePlaces& places, const std::string& klass,
                           const std::string& suite) {
  const fs::path blessed = find_blessed(places.blessed, klass, suite);
  if (!blessed.empty()) return {blessed, true};
  if (places.candidates.empty()) return {};
  return {baseline_path(places.candidates, klass, suite), false};
}

Expected find_baselines(const BaselinePlaces& places, const RunInfo& run, const Sides& sides) {
  Expected expected;
  for (const auto& [id, side] : sides) {
    if (expected.suites.count(id.suite) > 0) continue;
    const BaselineFile file = find_baseline(places, run.device.klass, id.suite);
    expected.all_blessed = expected.all_blessed && file.blessed;
    Baseline baseline;
    if (is_file(file.path)) {
      baseline = read_baseline(file.path);
      expected.headers[id.suite] = baseline.header;
    }
    Expectation& e = expected.suites[id.suite];
    if (file.blessed) {
      e = expect_baseline(baseline, file.path, run, id.suite);
    } else if (!file.path.empty()) {
      e = expect_candidate(std::move(baseline), file.path, run, id.suite, sides);
    }
  }
  return expected;
}

}  // namespace moegate
