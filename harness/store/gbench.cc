// SPDX-License-Identifier: Apache-2.0
#include "harness/store/gbench.h"

#include <benchmark/benchmark.h>
#include <re2/re2.h>

#include <map>
#include <sstream>
#include <utility>
#include <vector>

#include "harness/base/files.h"
#include "harness/base/stats.h"
#include "harness/store/store.h"

namespace moegate {
namespace {

using Run = benchmark::BenchmarkReporter::Run;

/// What a file that is passed around has to say of itself. Kept by the library, for the process.
void state_context(const RunInfo& run) {
  const auto state = [](const char* name, const std::string& value) {
    if (!value.empty()) benchmark::AddCustomContext(name, value);
  };
  state("moegate_run", describe(run));
  state("device", run.device.name);
  state("device_uuid", run.device.uuid);
  state("driver", run.device.driver);
  state("commit", run.git_sha + (run.dirty ? " (dirty)" : ""));
  state("build", run.build);
  state("protocol", std::to_string(run.protocol));
  state("timer", run.timer);
  state("flush", run.flush);
}

Run run_of(const Level& level, int64_t family, int rounds) {
  Run r;
  r.run_name.function_name = level.key + "/" + level.variant;
  r.family_index = family;
  r.per_family_instance_index = 0;
  r.repetitions = rounds;
  r.repetition_index = level.round;
  r.time_unit = benchmark::kNanosecond;
  r.iterations = level.result.samples;
  // The reporter divides by the iterations.
  r.real_accumulated_time = level.result.span_ns * 1e-9 * level.result.samples;
  r.cpu_accumulated_time = level.result.busy_ns * 1e-9 * level.result.samples;
  r.report_label = level.result.timer;
  if (level.result.status != Status::ok) {
    r.report_label += fmt::format(", {}", name_of(level.result.status));
  }
  return r;
}

/// What the library writes behind repetitions.
void add_aggregates(const std::vector<Run>& repetitions, std::vector<Run>& runs) {
  if (repetitions.size() < 2) return;
  std::vector<double> real, cpu;  // seconds
  for (const Run& r : repetitions) {
    real.push_back(r.real_accumulated_time / static_cast<double>(r.iterations));
    cpu.push_back(r.cpu_accumulated_time / static_cast<double>(r.iterations));
  }
  const auto add = [&](const char* name, double of_real, double of_cpu,
                       benchmark::StatisticUnit unit = benchmark::kTime) {
    Run r = repetitions.front();
    r.run_type = Run::RT_Aggregate;
    r.aggregate_name = name;
    r.aggregate_unit = unit;
    r.repetition_index = Run::no_repetition_index;
    r.iterations = static_cast<benchmark::IterationCount>(repetitions.size());
    r.real_accumulated_time = of_real * static_cast<double>(r.iterations);
    r.cpu_accumulated_time = of_cpu * static_cast<double>(r.iterations);
    runs.push_back(r);
  };
  add("mean", mean(real), mean(cpu));
  add("median", median(real), median(cpu));
  add("stddev", stddev(real), stddev(cpu));
  add("cv", stddev(real) / mean(real), stddev(cpu) / mean(cpu), benchmark::kPercentage);
}

/// The library states how it was built itself, and Debian's says debug; what is measured is what
/// the run's program is.
std::string with_build_type(std::string json, const RunInfo& run) {
  const bool release = run.build.find("Release") != std::string::npos;
  RE2::Replace(&json, R"re(("library_build_type": ")[^"]*)re", release ? "\\1release" : "\\1debug");
  return json;
}

}  // namespace

void write_benchmark_json(const std::string& db, int64_t run, const std::string& path) {
  Store store = Store::open(db, Store::Mode::read);
  const RunInfo info = store.run_info(run);
  state_context(info);
  std::ostringstream file;
  benchmark::JSONReporter reporter;
  reporter.SetOutputStream(&file);
  reporter.SetErrorStream(&file);
  const benchmark::BenchmarkReporter::Context context;
  reporter.ReportContext(context);
  std::map<std::pair<std::string, std::string>, std::vector<Level>> rows;
  for (const Level& level : store.levels(run)) {
    if (level.result.measured()) rows[{level.key, level.variant}].push_back(level);
  }
  std::vector<Run> runs;
  int64_t family = 0;
  for (const auto& [row, levels] : rows) {
    std::vector<Run> repetitions;
    for (const Level& level : levels) repetitions.push_back(run_of(level, family, info.rounds));
    runs.insert(runs.end(), repetitions.begin(), repetitions.end());
    add_aggregates(repetitions, runs);
    ++family;
  }
  reporter.ReportRuns(runs);
  reporter.Finalize();
  write_output(path, with_build_type(file.str(), info));
}

}  // namespace moegate
