// SPDX-License-Identifier: Apache-2.0
#include "harness/baseline/find_baseline.h"

#include <nlohmann/json.hpp>

#include "harness/base/error.h"
#include "harness/base/escape.h"
#include "harness/base/files.h"
#include "harness/baseline/blessing.h"
#include "harness/baseline/gate_candidate.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;

fs::path find_blessed(const fs::path& given, const std::string& klass, const std::string& suite) {
  std::error_code ignored;
  if (fs::exists(given, ignored) && !fs::is_directory(given, ignored)) return given;
  const fs::path path_of_class = baseline_path(given, klass, suite);
  for (const fs::path& path : {given / path_of_class.filename(), path_of_class}) {
    if (is_file(path)) return path;
  }
  return {};
}

/// The run's program, if all its kernels are in it: those from elsewhere may read what is no part of it.
std::string whole_program(const RunInfo& run) {
  const auto options = nlohmann::json::parse(run.options, nullptr, /*allow_exceptions=*/false);
  const bool own = options.is_object() && options.value("kernels", nlohmann::json()).empty();
  return own ? run.program : "";
}

bool is_same(const std::string& a, const std::string& b) {
  return !a.empty() && a == b;
}

/// Of a file of baselines, of its class's folder, or of the folder of all.
void finish_blessings_of(const BaselinePlaces& places) {
  if (places.blessed.empty()) return;
  const fs::path folder = fs::absolute(places.blessed);
  for (const fs::path& place : {folder, folder.parent_path(), folder.parent_path().parent_path()}) {
    if (is_file(place / "blessings.tsv")) return finish_blessings(place / "blessings.tsv");
  }
}

}  // namespace

fs::path baseline_path(const fs::path& folder, const std::string& klass, const std::string& suite) {
  for (const std::string& name : {klass, suite}) {
    if (is_file_name(name)) continue;
    usage_error("'{}' is no name of a device class or a suite: it would lead out of {}",
                one_line(name), folder.string());
  }
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

Expectation known_rows(const BaselinePlaces& places, const std::string& klass,
                       const std::string& suite, const std::string& program) {
  if (klass.empty()) return {};  // no device has answered
  const BaselineFile file = find_baseline(places, klass, suite);
  Expectation known;
  try {
    if (!is_file(file.path)) return known;
    const Baseline baseline = read_baseline(file.path);
    known.sides = collect(baseline);
    known.same_program = is_same(baseline.header.program, program);
  } catch (const Error&) {
    return {};
  }
  return known;
}

Expected find_baselines(const BaselinePlaces& places, const RunInfo& run, const Sides& sides,
                        const CutRun& cut) {
  finish_blessings_of(places);
  std::set<std::string> suites = cut.suites;
  for (const auto& [id, side] : sides) suites.insert(id.suite);
  Expected expected;
  for (const std::string& suite : suites) {
    const BaselineFile file = find_baseline(places, run.device.klass, suite);
    expected.all_blessed = expected.all_blessed && file.blessed;
    Baseline baseline;
    if (is_file(file.path)) {
      baseline = read_baseline(file.path);
      expected.headers[suite] = baseline.header;
    }
    Expectation& e = expected.suites[suite];
    if (file.blessed) {
      e = expect_baseline(baseline, file.path, run, suite);
    } else if (!file.path.empty()) {
      e = expect_candidate(std::move(baseline), file.path, run, suite, sides, cut.cut);
    }
    const auto header = expected.headers.find(suite);
    e.same_program =
        header != expected.headers.end() && is_same(header->second.program, whole_program(run));
  }
  return expected;
}

}  // namespace moegate
