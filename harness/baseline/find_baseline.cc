// SPDX-License-Identifier: Apache-2.0
#include "harness/baseline/find_baseline.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/base/escape.h"

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

/// The run's program if it has all kernels: others may read what is no part of it.
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

void refuse_other(const Baseline& baseline, const fs::path& path, const RunInfo& run,
                  const std::string& suite) {
  if (baseline.header.suite != suite) {
    usage_error(
        "{}: this is the baseline of suite '{}', and the run has suite '{}'; give the folder of "
        "baselines, or the file of that suite",
        path.string(), baseline.header.suite, suite);
  }
  check_comparable(baseline.header, header_of(run, suite), path.string());
}

Expectation expectation(const Baseline& baseline, const fs::path& path, const RunInfo& run) {
  Expectation e;
  e.against = path.string();
  const bool same = baseline.header.gpu == uuids_of(run);
  const bool several = gpus_of(run).size() > 1;
  e.other_device =
      !baseline.ratios() && (several || !same_device(baseline.header.gpu, uuids_of(run)));
  if (e.other_device && same) {
    e.note = "recorded on the same GPUs, but a case perhaps on another of them";
  } else if (e.other_device) {
    e.note = "recorded on another device: " + baseline.header.gpu;
  }
  e.sides = collect(baseline);
  return e;
}

/// A row that spreads so much, or of one process, sees nothing: it would be left open every night.
void refuse_unfit_rows(const Baseline& baseline, const fs::path& path) {
  for (const auto& [key, row] : baseline.rows) {
    if (row.n >= 2 && row.sd <= kWidestSpread) continue;
    usage_error(
        "{}: {} {} has sd={:.3g}% n={}; a row must spread by at most {} and have two processes or "
        "more: bless a run that measured it better",
        path.string(), key.first, key.second, 100 * row.sd, row.n, limit(kWidestSpread));
  }
}

/// Of a run that was cut: a single process says nothing of a row's spread.
constexpr int kFewestOfCut = 2;

/// Why the run may not become what later ones are judged against; empty when it may.
std::string unfit(const RunInfo& run, const std::string& suite, const Sides& sides, bool cut) {
  if (run.status != "complete" && !cut) return fmt::format("the run is {}", run.status);
  if (is_partial(run) && !cut) {
    return "the run measured only a part of its suites (--filter, --variant, --axis or --shard)";
  }
  for (const auto& [id, side] : sides) {
    if (id.suite == suite && !side.measured() && !side.never_quiet() &&
        side.status != Status::unsupported)
      return fmt::format("{} {} is {}", id.key, id.variant, name_of(side.status));
  }
  return "";
}

/// What the first gate of a candidate says about it.
std::string record_note(const fs::path& path, const Baseline& candidate, const std::string& suite,
                        const Sides& sides) {
  int measured = 0, noisy = 0;
  for (const auto& [id, side] : sides) {
    if (id.suite != suite || (!side.measured() && !side.never_quiet())) continue;
    ++measured;
    noisy += !side.fit();
  }
  if (candidate.rows.empty()) {
    return fmt::format(
        "not recorded as candidate: {} of {} measured rows are too noisy; run again on a quiet "
        "machine",
        noisy, measured);
  }
  const std::string lacks =
      noisy == 0
          ? ""
          : fmt::format(" without {} of {} measured rows, which are too noisy", noisy, measured);
  return fmt::format("recorded as candidate in {}{}; later runs are judged against it",
                     path.string(), lacks);
}

/// blessings.tsv beside a baseline or a folder above. Throws Error(usage) where there is none.
fs::path ledger_of(const fs::path& baseline) {
  const fs::path folder = fs::absolute(baseline).parent_path();
  for (const fs::path& place : {folder, folder.parent_path()}) {
    if (is_file(place / "blessings.tsv")) return place / "blessings.tsv";
  }
  usage_error(
      "{}: nobody blessed this baseline, because there is no blessings.tsv beside it or one folder "
      "above; write baselines with `moegate bless`",
      baseline.string());
}

// What a run is judged against, read from files: a blessed baseline, or a candidate. A candidate
// stands in for a baseline that nobody blessed yet. The gate records it itself, and only rows that
// are fit for a baseline enter it.

/// Throws Error unless `path` is blessed, of this suite, and compares.
Expectation expect_baseline(const Baseline& baseline, const fs::path& path, const RunInfo& run,
                            const std::string& suite) {
  refuse_other(baseline, path, run, suite);
  check_recorded(path, baseline.header.klass, baseline.header.suite, ledger_of(path));
  refuse_unfit_rows(baseline, path);
  return expectation(baseline, path, run);
}

/// The rows that earlier runs left in the candidate file at `path`, as read from it; of a file that
/// is not there, none. This run's fit rows that the file lacks are written to it; a row that is
/// there stays as it is. Each row names its run in `by`, so no run is judged against its own rows.
/// Without rows of other runs there is nothing to compare with, and the note says what was recorded
/// or why not. An incomplete run, a run with a failed result, and another GPU of the class add
/// nothing. Of a run that only its time ended (`cut`) the rows of at least two processes are added,
/// so that the candidate grows from night to night; what was begun without any is a file without
/// rows, and a next such run is Expectation::stalled. Throws Error like expect_baseline().
Expectation expect_candidate(Baseline candidate, const fs::path& path, const RunInfo& run,
                             const std::string& suite, const Sides& sides,
                             const EnvironmentItems& environment, bool cut) {
  const bool begun = !candidate.header.suite.empty();
  // An empty file promises nothing, not even its conditions.
  if (candidate.rows.empty()) {
    candidate = {header_of(run, suite), {}, {}};
  } else {
    refuse_other(candidate, path, run, suite);
  }
  // A store that was started anew counts its runs from 1 again, so the time is part of the name.
  const std::string own = fmt::format("run{}@{}", run.id, run.started);
  Baseline others = candidate;
  std::erase_if(others.rows, [&](const auto& row) { return row.second.by == own; });

  const std::string why_not = unfit(run, suite, sides, cut);
  Baseline now = to_baseline(run, suite, sides, own, environment);
  if (cut) std::erase_if(now.rows, [](const auto& row) { return row.second.n < kFewestOfCut; });
  if (candidate.rows.empty()) candidate.header = now.header;
  int added = 0;
  if (why_not.empty() && candidate.header.gpu == now.header.gpu &&
      candidate.header.judged == now.header.judged) {
    for (const auto& [key, row] : now.rows) added += candidate.rows.emplace(key, row).second;
  }
  if (added > 0 || (cut && !begun && why_not.empty())) write_baseline(path, candidate);
  const bool stalled = cut && begun && added == 0;

  if (others.rows.empty()) {
    Expectation none;
    none.stalled = stalled;
    none.note = why_not.empty() ? record_note(path, candidate, suite, sides)
                                : "not recorded as candidate: " + why_not;
    return none;
  }
  Expectation e = expectation(others, path, run);
  e.stalled = stalled;
  e.note += (e.note.empty() ? "" : "; ") + std::string("candidate, not blessed");
  if (added > 0) e.note += fmt::format("; {} rows that it lacked were added", added);
  return e;
}

/// The file that a suite meets. A candidate's file may not be there yet: the first run makes it.
struct BaselineFile {
  std::filesystem::path path;  // empty: there is nothing to compare with
  bool blessed = false;
};

/// A blessed file, else a candidate's, else none.
BaselineFile find_baseline(const BaselinePlaces& places, const std::string& klass,
                           const std::string& suite) {
  const fs::path blessed = find_blessed(places.blessed, klass, suite);
  if (!blessed.empty()) return {blessed, true};
  if (places.candidates.empty()) return {};
  return {baseline_path(places.candidates, klass, suite), false};
}

}  // namespace

fs::path baseline_path(const fs::path& folder, const std::string& klass, const std::string& suite) {
  for (const std::string& name : {klass, suite}) {
    if (is_file_name(name)) continue;
    usage_error("'{}' cannot name a device class or a suite, because its path leaves {}; rename it",
                one_line(name), folder.string());
  }
  return folder / klass / (suite + ".tsv");
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
                        const EnvironmentItems& environment, const CutRun& cut) {
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
      e = expect_candidate(std::move(baseline), file.path, run, suite, sides, environment, cut.cut);
    }
    const auto header = expected.headers.find(suite);
    e.same_program =
        header != expected.headers.end() && is_same(header->second.program, whole_program(run));
  }
  return expected;
}

}  // namespace moegate
