// SPDX-License-Identifier: Apache-2.0
// Facts of the schema that shape this: `performance` belongs to PASSED alone, `correctness` to PASSED and
// INCORRECT_NUMERICAL; elsewhere both are null. A latency that there is none of is 0, not null. A number that JSON has
// not is a text: "NaN", "Infinity".
#include "harness/report/flashinfer_trace.h"

#include <fmt/ranges.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>

#include "harness/base/sha256.h"
#include "harness/store/rows.h"
#include "harness/values/result_fields.h"
#include "harness/values/trace_case.h"

namespace moegate {
namespace {

using TraceJson = nlohmann::ordered_json;

/// What of a result stands in its trace. Whatever a result gets beside it is named in the notes.
constexpr auto kTraced = std::to_array<std::string_view>(
    {"variant", "status", "why", "path", "deterministic", "samples", "invalid", "span_ns",
     "impossible", "suspect_warm", "timer", "accuracy", "controls"});
constexpr auto kTracedAccuracy = std::to_array<std::string_view>(
    {"output", "mismatches", "nonfinite", "rel_l2", "max_abs", "max_rel", "worst_row"});

TraceJson any_number(double x) {
  if (std::isnan(x)) return "NaN";
  if (std::isinf(x)) return x > 0 ? "Infinity" : "-Infinity";
  return x;
}

bool has_latency(const Result& r) {
  return r.measured() && r.span_ns > 0;
}

/// Null where the schema has no word for it: nothing was evaluated, or not timed.
const char* trace_status(const Result& r) {
  switch (r.status) {
    case Status::ok:
    case Status::noisy:
      return has_latency(r) ? "PASSED" : nullptr;
    case Status::wrong:
      return "INCORRECT_NUMERICAL";
    case Status::crashed:
      return "RUNTIME_ERROR";
    case Status::timeout:
      return "TIMEOUT";
    case Status::unsupported:
    case Status::bad_timer:
      return nullptr;
  }
  return nullptr;
}

/// Of a case, the same in every store: a UUID of the version that is for one's own rules (8).
std::string uuid_of_case(const std::string& key) {
  std::string hex = sha256("moegate case " + key).substr(0, 32);
  hex[12] = '8';
  hex[16] = "89ab"[hex[16] % 4];
  return fmt::format("{}-{}-{}-{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 4),
                     hex.substr(16, 4), hex.substr(20));
}

/// What runtime the driver text of a GPU names: "driver 575.57, CUDA 12.9, runtime 12.4" -> "12.4".
std::string cuda_runtime_of(const std::string& driver) {
  const std::string mark = "runtime ";
  const size_t at = driver.find(mark);
  return at == std::string::npos ? "" : driver.substr(at + mark.size());
}

/// NaN is larger than all: an error that is no number is not small.
void raise_to(double& most, double value) {
  if (!std::isnan(most) && !(value <= most)) most = value;
}

TraceJson correctness_of(const Result& r) {
  // Wrong for another reason than its outputs, or of a program that stored none.
  double relative = r.accuracy.empty() ? NAN : 0, absolute = relative;
  double rel_l2 = relative, worst_row = relative;
  int64_t mismatches = 0, nonfinite = 0;
  std::vector<std::string> outputs;
  for (const Accuracy& a : r.accuracy) {
    raise_to(relative, a.max_rel);
    raise_to(absolute, a.max_abs);
    raise_to(rel_l2, a.rel_l2);
    raise_to(worst_row, a.worst_row);
    mismatches += a.mismatches;
    nonfinite += a.nonfinite;
    outputs.push_back(a.output);
  }
  return {{"max_relative_error", any_number(relative)},
          {"max_absolute_error", any_number(absolute)},
          {"extra",
           {{"outputs", outputs},
            {"rel_l2", any_number(rel_l2)},
            {"worst_row", any_number(worst_row)},
            {"mismatches", mismatches},
            {"nonfinite", nonfinite},
            {"deterministic", r.deterministic}}}};
}

std::string log_of(const RunInfo& run, const Level& level) {
  const Result& r = level.result;
  std::string log = fmt::format("moegate: {}", name_of(r.status));
  if (!r.why.empty()) log += ": " + r.why;
  if (!r.path.empty()) log += "\npath " + r.path;
  if (!r.timer.empty()) {
    log += fmt::format("\n{} valid samples, {} invalid, timer {}", r.samples, r.invalid, r.timer);
  }
  if (r.impossible) log += "\nthe span is below the roofline's floor on this device";
  if (r.suspect_warm) log += "\ncold about as fast as warm, though the data fits in the cache";
  return log + fmt::format("\nrun {}, round {}, suite {}, section {}", run.uuid, level.round,
                           level.suite, level.section);
}

class TraceWriter {
 public:
  TraceWriter(const RunInfo& run, const std::vector<Level>& levels,
              const std::map<int, std::string>& began)
      : run_(run), levels_(levels), began_(began), commit_(commit_of(run)) {
    for (const Level& l : levels) {
      if (has_latency(l.result)) timed_[{l.key, l.round, l.variant}] = &l;
    }
  }

  FlashinferTraces write() {
    FlashinferTraces traces;
    for (const Level& level : levels_) {
      const char* const status = trace_status(level.result);
      if (!status) {
        ++left_out_[level.result.measured() ? "not timed" : name_of(level.result.status)];
        continue;
      }
      traces.lines[level.op] +=
          trace_of(level, status).dump(-1, ' ', false, TraceJson::error_handler_t::replace) + "\n";
      ++traces.count;
    }
    traces.notes = notes();
    return traces;
  }

 private:
  static std::string commit_of(const RunInfo& run) {
    if (!run.git_sha.empty()) return run.git_sha + (run.dirty ? "-dirty" : "");
    return run.program.empty() ? "unknown" : "sha256:" + run.program;
  }

  TraceJson trace_of(const Level& level, const char* status) const {
    const TraceCase traced = trace_case(level.key);
    TraceJson inputs = {{"operands", {{"type", "random"}}}};
    for (const auto& [name, value] : traced.scalars) {
      inputs[name] = {{"type", "scalar"}, {"value", value}};
    }
    return {
        {"definition", traced.definition},
        {"workload",
         {{"axes", TraceJson(traced.axes)}, {"inputs", inputs}, {"uuid", uuid_of_case(level.key)}}},
        {"solution", level.variant + "@" + commit_},
        {"evaluation", evaluation_of(level, status)}};
  }

  TraceJson evaluation_of(const Level& level, const char* status) const {
    const auto began = began_.find(level.round);
    const bool passed = has_latency(level.result);
    const bool compared = passed || level.result.status == Status::wrong;
    return {{"status", status},
            {"environment", {{"hardware", hardware()}, {"libs", libs()}}},
            {"timestamp", began == began_.end() ? run_.started : began->second},
            {"log", log_of(run_, level)},
            {"correctness", compared ? correctness_of(level.result) : TraceJson()},
            {"performance", passed ? performance_of(level) : TraceJson()}};
  }

  std::string hardware() const {
    if (!run_.device.name.empty()) return run_.device.name;
    return run_.device.klass.empty() ? "unknown" : run_.device.klass;
  }

  TraceJson libs() const {
    TraceJson libs = TraceJson::object();
    const auto state = [&](const char* name, const std::string& value) {
      if (!value.empty()) libs[name] = value;
    };
    state("cuda", cuda_runtime_of(run_.device.driver));
    state("driver", run_.device.driver);
    state("moegate", commit_);
    state("moegate.build", run_.build);
    state("moegate.flush", run_.flush);
    state("moegate.protocol", std::to_string(run_.protocol));
    return libs;
  }

  TraceJson performance_of(const Level& level) const {
    constexpr double kMs = 1e-6;
    const Level* const reference = reference_of(level);
    const double latency = level.result.span_ns,
                 compared = reference ? reference->result.span_ns : 0;
    return {{"latency_ms", latency * kMs},
            {"reference_latency_ms", compared * kMs},
            {"speedup_factor", compared / latency}};
  }

  /// Timed in the same case and round; null: not there.
  const Level* timed(const Level& beside, const std::string& variant) const {
    const auto found = timed_.find({beside.key, beside.round, variant});
    return found == timed_.end() ? nullptr : found->second;
  }

  /// What the operator states the variant to be compared with; one that others are compared with is its own. Null:
  /// nothing, or it has no latency.
  const Level* reference_of(const Level& level) const {
    const auto op = std::ranges::find(run_.operators, level.op, &OperatorFacts::name);
    if (op == run_.operators.end()) return nullptr;
    if (std::ranges::count(op->before, level.variant, &Before::variant) > 0) return &level;
    for (const Before& before : op->before) {
      // As the reports match it, in SQL.
      if (sqlite3_strglob(before.after.c_str(), level.variant.c_str()) != 0) continue;
      if (const Level* const reference = timed(level, before.variant)) return reference;
    }
    return nullptr;
  }

  std::vector<std::string> notes() const {
    std::vector<std::string> notes;
    for (const auto& [what, count] : left_out_) {
      notes.push_back(fmt::format("{} {} left out, {}: the schema has no status for that", count,
                                  count == 1 ? "result is" : "results are", what));
    }
    std::vector<std::string> fields;
    const auto name = [&](const char* prefix, const auto& traced) {
      return [&fields, &traced, prefix](const auto& field) {
        if (std::ranges::count(traced, std::string_view(field.name)) > 0) return;
        fields.push_back(std::string(prefix) + field.name);
      };
    };
    for_each_field(kFields<Result>, name("", kTraced));
    for_each_field(kParts<Result>, name("", kTraced));
    for_each_field(kFields<Accuracy>, name("accuracy.", kTracedAccuracy));
    notes.push_back(fmt::format("the schema has no place for these fields of a result: {}",
                                fmt::join(fields, ", ")));
    return notes;
  }

  const RunInfo& run_;
  const std::vector<Level>& levels_;
  const std::map<int, std::string>& began_;
  const std::string commit_;
  std::map<std::tuple<std::string, int, std::string>, const Level*> timed_;
  std::map<std::string, size_t> left_out_;
};

}  // namespace

FlashinferTraces flashinfer_traces(const RunInfo& run, const std::vector<Level>& levels,
                                   const std::map<int, std::string>& began) {
  return TraceWriter(run, levels, began).write();
}

FlashinferTraces read_flashinfer_traces(Store& store, int64_t run) {
  std::map<int, std::string> began;
  Statement q(store.database(),
              "SELECT round, min(started) AS began FROM process WHERE run_id = ?1 GROUP BY round");
  q.bind(run);
  const Columns columns(q);
  while (q.step()) began[static_cast<int>(columns.integer("round"))] = columns.text("began");
  return flashinfer_traces(store.run_info(run), store.levels(run), began);
}

}  // namespace moegate
