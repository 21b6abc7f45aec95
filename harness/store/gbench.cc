// SPDX-License-Identifier: Apache-2.0
#include "harness/store/gbench.h"

#include <benchmark/benchmark.h>

#include <sstream>

#include "harness/base/files.h"
#include "harness/store/store.h"

namespace moegate {

void write_benchmark_json(const std::string& db, int64_t run, const std::string& path) {
  Store store = Store::open(db, Store::Mode::read);
  const RunInfo info = store.run_info(run);
  std::ostringstream file;
  benchmark::JSONReporter reporter;
  reporter.SetOutputStream(&file);
  reporter.SetErrorStream(&file);
  const benchmark::BenchmarkReporter::Context context;
  reporter.ReportContext(context);
  std::vector<benchmark::BenchmarkReporter::Run> runs;
  for (const Level& level : store.levels(run)) {
    if (!level.result.measured()) continue;
    benchmark::BenchmarkReporter::Run r;
    r.run_name.function_name = level.key + "/" + level.variant;
    r.repetitions = info.rounds;
    r.repetition_index = level.round;
    r.time_unit = benchmark::kNanosecond;
    r.iterations = level.result.samples;
    // The reporter divides by the iterations.
    r.real_accumulated_time = level.result.span_ns * 1e-9 * level.result.samples;
    r.cpu_accumulated_time = level.result.busy_ns * 1e-9 * level.result.samples;
    r.report_label = level.result.timer;
    runs.push_back(r);
  }
  reporter.ReportRuns(runs);
  reporter.Finalize();
  write_output(path, file.str());
}

}  // namespace moegate
