// SPDX-License-Identifier: Apache-2.0
// A worker source without processes, devices or kernels, for tests of the campaign: what its
// workers say and measure is a script, and what they were asked is a journal.
//
//   FakePrograms fake;
//   fake.program("head.out").spans["fused"] = 1100;               // ns; 1000 where none is given
//   fake.program("").at("fused", 2) = Status::timeout;            // in its third process
//   run_suites(options, 0, fake);
//   EXPECT_EQ(fake.journal, ...);                                 // "start", "run op/rows=1 fused"
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/base/rng.h"
#include "harness/worker/worker.h"

namespace moegate::test {

/// What a program does: one of its workers per process, counted from 0 at its first start.
struct FakeProgram {
  Hello hello;
  std::map<std::string, double> spans;       // ns, by variant
  std::map<std::string, std::string> codes;  // of what a variant launches; others have none
  double noise = 0;                          // standard deviation of a process's log span
  std::map<std::pair<std::string, int>, Status> statuses;  // by variant and process
  std::function<void(const Request&, Result&)> touch;      // the last word on a result
  std::function<double(const Request&)> seconds;  // that a row takes; beyond its time-out it is one
  std::function<void(double)> pass;               // gets the seconds that went by
  /// The same for several devices, which may call it at the same time.
  std::function<void(const std::string& device, const Request&, Result&)> on_device;
  std::function<void(const std::string& device)> start;   // whenever a worker does; may throw
  std::map<std::string, std::string> uuids, classes;      // by device, where they are not hello's
  std::function<CaseAnswer(const CaseQuestion&)> answer;  // absent: every case is all right
  std::optional<std::string> dies_at_start;               // Error(environment) with this text
  std::map<std::string, std::vector<Metric>> counters;    // of Task::counters, by variant
  std::optional<std::string> cannot_count;  // Error(environment) with this text, of Task::counters
  std::function<EnvironmentItems(int process)> environment;  // absent: none is told
  int processes = 0;                                         // started so far

  Status& at(const std::string& variant, int process) { return statuses[{variant, process}]; }
};

/// One operator "fake" with the parameters rows (required) and unit (default 32), and the variants
/// "plain" and "fused", on a GPU that is none.
inline Hello fake_hello() {
  Hello hello;
  hello.device.backend = Backend::cuda;
  hello.device.name = "fake GPU";
  hello.device.klass = "fake-gpu";
  hello.device.uuid = "GPU-fake";
  hello.device.processors = 100;
  hello.timer = "fake";
  hello.git_sha = "0123abc";
  hello.build = "fake build";
  hello.operators = {{.name = "fake",
                      .help = "no operator at all",
                      .params = {{"rows", "", "rows"}, {"unit", "32", "unit"}},
                      .yardstick = ""}};
  for (const char* name : {"fused", "plain"}) {
    hello.variants.push_back({.op = "fake",
                              .name = name,
                              .backend = Backend::cuda,
                              .language = "CUDA",
                              .help = "launches nothing"});
  }
  return hello;
}

/// What was asked of all of them, in order; several may be asked at once.
class FakeJournal {
 public:
  void add(const std::string& entry, const std::string& device) {
    const std::lock_guard lock(mutex_);
    entries.push_back(entry);
    by_device[device].push_back(entry);
  }
  std::vector<std::string> entries;
  std::map<std::string, std::vector<std::string>> by_device;

 private:
  std::mutex mutex_;
};

class FakeWorker : public Worker {
 public:
  /// `process`: of its program, counted from 0.
  FakeWorker(const FakeProgram& program, const WorkerOptions& options, int process,
             FakeJournal& journal)
      : program_(program),
        hello_(program.hello),
        name_(options.program),
        device_(options.device),
        task_(options.task),
        journal_(journal),
        process_(process),
        pid_(next_pid()) {
    const auto uuid = program.uuids.find(device_);
    if (uuid != program.uuids.end()) hello_.device.uuid = uuid->second;
    const auto klass = program.classes.find(device_);
    if (klass != program.classes.end()) hello_.device.klass = klass->second;
  }

  const Hello& hello() const override { return hello_; }
  pid_t pid() const override { return pid_; }
  bool alive() const override { return alive_; }

  std::vector<CaseAnswer> check(const std::vector<CaseQuestion>& questions) override {
    std::vector<CaseAnswer> answers;
    for (const CaseQuestion& question : questions) {
      answers.push_back(program_.answer ? program_.answer(question) : CaseAnswer{});
    }
    return answers;
  }

  Result run(const Request& request, const RowTime& time, CaseData& data) override {
    journal_.add(
        fmt::format("{}{} {} {}", name_.empty() ? "" : name_ + ": ",
                    task_ == Task::counters ? "count" : "run", request.spec.key(), request.variant),
        device_);
    data.cost = {.flops = 1e6, .read_bytes = 1e3, .write_bytes = 1e3};
    Result result = task_ == Task::counters ? counted(request) : measured(request);
    const auto scripted = program_.statuses.find({request.variant, process_});
    if (scripted != program_.statuses.end()) result = ended(request, scripted->second);
    const double seconds = program_.seconds ? program_.seconds(request) : 0;
    if (seconds > time.row_s) {
      result = ended(request, Status::timeout);
      result.why += fmt::format("; raise {}", time.flag);
    }
    if (program_.pass) program_.pass(std::min(seconds, time.row_s));
    if (program_.touch) program_.touch(request, result);
    if (program_.on_device) program_.on_device(device_, request, result);
    alive_ = result.status != Status::crashed && result.status != Status::timeout;
    return result;
  }

  std::string throttle() override { return ""; }
  EnvironmentItems environment() override {
    return program_.environment ? program_.environment(process_) : EnvironmentItems();
  }

 private:
  static pid_t next_pid() {
    static std::atomic<pid_t> last = 0;
    return ++last;
  }

  static Result ended(const Request& request, Status status) {
    Result result;
    result.variant = request.variant;
    result.status = status;
    if (status != Status::ok) result.why = fmt::format("{} by the script", name_of(status));
    return result;
  }

  Result counted(const Request& request) const {
    Result result = ended(request, Status::ok);
    const auto counters = program_.counters.find(request.variant);
    if (counters != program_.counters.end()) result.metrics = counters->second;
    return result;
  }

  Result measured(const Request& request) const {
    Result result = ended(request, Status::ok);
    const auto span = program_.spans.find(request.variant);
    const auto code = program_.codes.find(request.variant);
    const double slow = request.canary.delays() ? 1 + request.canary.slow_by : 1;
    const double level = span == program_.spans.end() ? 1000 : span->second;
    result.span_ns = level * slow * std::exp(program_.noise * deviate(request));
    result.median_ns = result.low_ns = result.high_ns = result.min_ns = result.span_ns;
    result.busy_ns = result.sum_ns = result.span_ns;
    result.judged = Judged::span;
    result.timer = program_.hello.timer;
    result.samples = 200;
    result.code = code == program_.codes.end() ? "" : code->second;
    if (program_.hello.device.backend == Backend::host) {
      add_ratio(request, result);
    }
    return result;
  }

  /// To the operator's yardstick, measured in the same moment; without one, to 1000 ns.
  void add_ratio(const Request& request, Result& result) const {
    const std::string& yardstick = program_.hello.operators[0].yardstick;
    const auto span = program_.spans.find(yardstick);
    const auto code = program_.codes.find(yardstick);
    result.judged = request.variant == yardstick ? Judged::is_yardstick : Judged::ratio;
    result.ratio = result.span_ns / (span == program_.spans.end() ? 1000 : span->second);
    if (result.judged == Judged::is_yardstick) result.ratio = 1;
    result.ratio_low = result.ratio_high = result.ratio;
    result.yardstick = yardstick;
    result.yardstick_code = code == program_.codes.end() ? "" : code->second;
  }

  /// About normal, the same for the same program, row and process.
  double deviate(const Request& request) const {
    const std::string row = name_ + " " + request.spec.key() + " " + request.variant;
    const uint64_t seed = hash_bytes(row.data(), row.size());
    double sum = 0;
    for (uint64_t i = 0; i < 12; ++i) {
      sum += static_cast<double>(random_bits(seed, static_cast<uint64_t>(process_), i) >> 11) *
             0x1p-53;
    }
    return sum - 6;
  }

  const FakeProgram& program_;
  Hello hello_;
  const std::string name_, device_;
  const Task task_;
  FakeJournal& journal_;
  const int process_;
  const pid_t pid_;
  bool alive_ = true;
};

class FakePrograms : public WorkerSource {
  FakeJournal log_;  // first: what is public refers to it

 public:
  /// The script of a program, by the path that options name; "" is this program.
  FakeProgram& program(const std::string& path) {
    return programs_.try_emplace(path, FakeProgram{.hello = fake_hello()}).first->second;
  }

  std::unique_ptr<Worker> start(const WorkerOptions& options) override {
    const std::lock_guard lock(mutex_);
    FakeProgram& started = program(options.program);
    variables = options.variables;
    log_.add(options.program.empty() ? "start" : options.program + ": start", options.device);
    if (started.start) started.start(options.device);
    if (started.dies_at_start) throw Error(Exit::environment, *started.dies_at_start);
    if (options.task == Task::counters && started.cannot_count) {
      throw Error(Exit::environment, *started.cannot_count);
    }
    return std::make_unique<FakeWorker>(started, options, started.processes++, log_);
  }

  /// What was asked, in order: "start", "run fake/rows=1 plain"; another program than "" comes
  /// first: "base.out: start".
  std::vector<std::string>& journal = log_.entries;
  /// The same by the device that was asked.
  std::map<std::string, std::vector<std::string>>& by_device = log_.by_device;
  /// What the last worker was to have in its environment.
  std::map<std::string, std::string> variables;

 private:
  std::mutex mutex_;
  std::map<std::string, FakeProgram> programs_;
};

}  // namespace moegate::test
