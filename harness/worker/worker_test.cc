// SPDX-License-Identifier: Apache-2.0
// The runner's end, with programs that answer what a test has written down beforehand.
#include "harness/worker/worker.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "harness/base/test_fixture.h"
#include "harness/worker/protocol.h"

namespace moegate::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class WorkerTest : public testing::Test {
 protected:
  WorkerTest() : old_pipe_(std::signal(SIGPIPE, SIG_IGN)) {}
  ~WorkerTest() override { std::signal(SIGPIPE, old_pipe_); }

  static std::string bytes_of(const json& message) {
    const auto cbor = json::to_cbor(message);
    const auto size = static_cast<uint32_t>(cbor.size());
    std::string bytes(reinterpret_cast<const char*>(&size), sizeof size);
    return bytes.append(cbor.begin(), cbor.end());
  }

  /// Starts a program that sends these bytes, and then does the rest: it waits. Without bytes it
  /// ends.
  std::unique_ptr<Worker> start(const std::string& replies,
                                const std::string& rest = "exec cat <&3 >/dev/null",
                                const std::vector<int>& cpus = {}, double timeout_s = 60) {
    const fs::path script = folder_ / "program";
    std::ofstream(folder_ / "replies", std::ios::binary) << replies;
    std::ofstream(script) << fmt::format(
        "#!/bin/sh\ncd '{}'\n[ -s replies ] || exit 3\ncat replies >&4\n{}\n",
        folder_.path().string(), rest);
    fs::permissions(script, fs::perms::owner_all);
    WorkerOptions options{.program = script.string()};
    options.cpus = cpus;
    options.answer_timeout_s = timeout_s;
    return worker_processes().start(options);
  }

  static Hello hello() {
    Hello hello;
    hello.wire = kWire;
    hello.features = own_features();
    return hello;
  }

  static Measured measured() {
    Measured measured;
    measured.result.variant = "fast";
    measured.result.timer = "clock";
    measured.result.span_ns = 100;
    measured.cost.flops = 7;
    measured.result.samples = 10;
    return measured;
  }

  /// Runs variant "fast" with a worker that answers with these bytes.
  std::pair<Result, bool> run(const std::string& reply) {
    const auto worker = start(bytes_of(encode(hello())) + reply);
    Request request;
    request.variant = "fast";
    Result result = worker->run(request, {20}, data_);
    return {std::move(result), worker->alive()};
  }

  void expect_refused(const std::string& replies, Exit code, const std::string& part) {
    const std::string why = refusal_of([&] { start(replies); }, code);
    EXPECT_NE(why.find(part), std::string::npos) << why;
  }

  /// Waits for the program to have written it.
  std::string read(const std::string& name) const {
    std::string word;
    while (word.empty()) std::ifstream(folder_ / name) >> word;
    return word;
  }

  ScratchFolder folder_;
  CaseData data_;  // of the last run()
  void (*old_pipe_)(int);
};

TEST_F(WorkerTest, AResultComesBack) {
  const auto [result, alive] = run(bytes_of(encode(measured())));
  EXPECT_EQ(result.status, Status::ok) << result.why;
  EXPECT_EQ(result.span_ns, 100);
  EXPECT_EQ(data_.cost.flops, 7);
  EXPECT_TRUE(alive);
}

TEST_F(WorkerTest, NonsenseCostsTheRowAndTheWorker) {
  const json good = encode(measured());
  const auto with = [&](const char* path, const json& value) {
    json bad = good;
    bad[json::json_pointer(path)] = value;
    return bytes_of(bad);
  };
  const std::string garbage("\x04\x00\x00\x00\xff\xff\xff\xff", 8);
  const std::string deep = std::string("\x40\x42\x0f\x00", 4) + std::string(1000000, '\x81');
  for (const std::string& reply :
       {with("/result/status", 4), with("/result/status", "splendid"), with("/result", nullptr),
        with("/result/span_ns", "fast"), with("/result/span_ns", 9e18), with("/facts", 1),
        with("/result/variant", "slow"), with("/kind", "answers"), bytes_of(json::array()),
        std::string("\xff\xff\xff\xff", 4), garbage, deep}) {
    const auto [result, alive] = run(reply);
    EXPECT_EQ(result.status, Status::crashed);
    EXPECT_TRUE(result.why.starts_with("answered with nonsense: ")) << result.why;
    EXPECT_EQ(result.variant, "fast");
    EXPECT_FALSE(alive);
  }
}

/// The time of the row starts with a launch that compiles, which has a time of its own.
class FirstLaunchTest : public WorkerTest {
 protected:
  FirstLaunchTest() {
    hello_ = hello();
    hello_.variants = {{.op = "op", .name = "fast", .language = "Python"}};
  }
  /// Of a worker that greets, sends `soon`, and after a second `later`.
  Result run(const std::string& soon, const std::string& later, const RowTime& time,
             const std::string& variant = "fast") {
    std::ofstream(folder_ / "later", std::ios::binary) << later;
    const auto worker =
        start(bytes_of(encode(hello_)) + soon, "sleep 1; cat later >&4; exec cat <&3 >/dev/null");
    Request request;
    request.spec.op = "op";
    request.variant = variant;
    return worker->run(request, time, data_);
  }

  Hello hello_;
  const std::string launched_ = bytes_of({{"kind", "launched"}});
  const std::string measured_ = bytes_of(encode(measured()));
};

TEST_F(FirstLaunchTest, HasATimeOfItsOwn) {
  const Result result = run("", launched_ + measured_, {.row_s = 0.2, .first_launch_s = 60});
  EXPECT_EQ(result.status, Status::ok) << result.why;
  const Result wrong = run("", measured_, {.row_s = 0.2, .first_launch_s = 60});
  EXPECT_EQ(wrong.status, Status::ok) << "one that is not launched" << wrong.why;
  EXPECT_EQ(run("", launched_ + measured_, {.row_s = 60}).status, Status::ok)
      << "the row's at least";
}

TEST_F(FirstLaunchTest, AHangIsATimeout) {
  Result result = run("", measured_, {.row_s = 0.2, .first_launch_s = 0.3});
  EXPECT_EQ(result.status, Status::timeout);
  EXPECT_EQ(result.why,
            "no end of the first launch within 0.3 s; if it needs more, raise --case-timeout");
  result = run(launched_, measured_, {.row_s = 0.2, .first_launch_s = 60, .flag = "--budget"});
  EXPECT_EQ(result.status, Status::timeout);
  EXPECT_EQ(result.why, "no answer within 0.2 s; if it needs more, raise --budget");
}

TEST_F(FirstLaunchTest, IsOfPythonOnceARow) {
  const RowTime time{.row_s = 20, .first_launch_s = 20};
  EXPECT_EQ(run(launched_ + launched_, measured_, time).status, Status::crashed);
  hello_.variants[0].name = "family";
  hello_.variants.push_back({.op = "op", .name = "fast", .language = "C++"});
  EXPECT_EQ(run(launched_, measured_, time).status, Status::crashed);
  EXPECT_EQ(run("", measured_, {.row_s = 0.2, .first_launch_s = 60}).status, Status::timeout);
  // One of a family is described by the family's name alone.
  Result result = run("", measured_, {.row_s = 0.2, .first_launch_s = 60}, "family/block=32");
  EXPECT_EQ(result.status, Status::crashed) << "it is waited for, and is the answer to another";
  hello_.variants[0].name = "fast";
  hello_.variants.pop_back();
  std::erase(hello_.features, feature::kLaunched);
  EXPECT_EQ(run("", measured_, {.row_s = 0.2, .first_launch_s = 60}).status, Status::timeout)
      << "an older worker does not tell";
}

TEST_F(WorkerTest, AFaultOfAVariantCostsTheRow) {
  const auto [result, alive] = run(bytes_of(encode(Fault{.fault = "device gone", .exit = 21})));
  EXPECT_EQ(result.status, Status::crashed);
  EXPECT_EQ(result.why, "device gone");
  EXPECT_FALSE(alive);
}

TEST_F(WorkerTest, ACaseThatAnotherBuildCannotHaveIsUnsupportedThere) {
  const auto [result, alive] = run(bytes_of(encode(Fault{.fault = "no such dtype", .exit = 2})));
  EXPECT_EQ(result.status, Status::unsupported);
  EXPECT_EQ(result.why, "no such dtype");
}

TEST_F(WorkerTest, RefusesAnotherVersion) {
  Hello other = hello();
  other.wire = 3;
  expect_refused(bytes_of(encode(other)), Exit::usage, "version 3");
  // Version 1 has no kinds.
  expect_refused(bytes_of({{"fault", "the program to measure speaks version 1"}, {"exit", 2}}),
                 Exit::usage, "version 1");
}

TEST_F(WorkerTest, RefusesAProgramThatIsNone) {
  expect_refused("", Exit::usage, "does not answer like a moegate");
  expect_refused(std::string(64, 'x'), Exit::usage, "cannot be understood");
  expect_refused(bytes_of(json::array()), Exit::usage, "cannot be understood");
  expect_refused(bytes_of({{"kind", "hello"}, {"wire", "two"}}), Exit::usage,
                 "cannot be understood");
}

TEST_F(WorkerTest, AsksNothingThatIsNotNamed) {
  Hello plain = hello();
  plain.features.clear();
  const auto worker = start(bytes_of(encode(plain)));
  EXPECT_EQ(worker->throttle(), "");
  EXPECT_EQ(worker->check(std::vector<CaseQuestion>(2)).size(), 2u);
  CaseData data;
  Request request;
  request.canary.slow_by = 0.5;
  EXPECT_EQ(worker->run(request, {5}, data).status, Status::unsupported);
  EXPECT_TRUE(worker->alive());
}

TEST_F(WorkerTest, AsManyAnswersAsQuestions) {
  const auto worker =
      start(bytes_of(encode(hello())) + bytes_of(encode(Answers{.answers = {{}, {}}})));
  EXPECT_THROW(worker->check(std::vector<CaseQuestion>(3)), Error);
  EXPECT_FALSE(worker->alive());
}

TEST_F(WorkerTest, OneThatIsSilentIsCalledThat) {
  const auto worker = start(bytes_of(encode(hello())), "exec cat <&3 >/dev/null", {}, 0.2);
  std::string why = refusal_of([&] { worker->check({{}}); }, Exit::environment);
  EXPECT_EQ(why, "the worker did not check the cases: no answer in 0.2 s");
  EXPECT_FALSE(worker->alive());
  why = refusal_of([&] { start("x", "exec cat <&3 >/dev/null", {}, 0.2); }, Exit::usage);
  EXPECT_NE(why.find("no answer in 0.2 s"), std::string::npos) << why;
}

TEST_F(WorkerTest, WhatItLeftBehindEndsWithIt) {
  auto worker = start(bytes_of(encode(hello())),
                      "sleep 600 & echo $! >forked.tmp; mv forked.tmp forked\n"
                      "setsid sh -c 'echo $$ >left.tmp; mv left.tmp left; exec sleep 600' &\n"
                      "exec cat <&3 >/dev/null");
  const pid_t forked = std::stoi(read("forked")), left = std::stoi(read("left"));
  EXPECT_EQ(kill(forked, 0), 0);
  worker.reset();
  EXPECT_NE(kill(forked, 0), 0) << "a child in its process group";
  EXPECT_NE(kill(left, 0), 0) << "a child in a session of its own";
}

TEST_F(WorkerTest, ItsNeighbourIsLeftAlone) {
  auto worker = start(bytes_of(encode(hello())));
  const auto neighbour = start(bytes_of(encode(hello())) + bytes_of(encode(measured())));
  worker.reset();
  CaseData data;
  Request request;
  request.variant = "fast";
  EXPECT_EQ(neighbour->run(request, {20}, data).status, Status::ok);
}

TEST_F(WorkerTest, ItKeepsToTheCpusThatItIsBoundTo) {
  cpu_set_t usable;
  ASSERT_EQ(sched_getaffinity(0, sizeof usable, &usable), 0);
  int last = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &usable)) last = cpu;
  }
  const std::string look =
      "sed -n 's/^Cpus_allowed_list:[^0-9]*//p' /proc/self/status >cpus.tmp; mv cpus.tmp cpus\n"
      "exec cat <&3 >/dev/null";
  const auto worker = start(bytes_of(encode(hello())), look, {last});
  EXPECT_EQ(std::stoi(read("cpus")), last);
  EXPECT_EQ(read("cpus").find_first_of(",-"), std::string::npos) << "no other one";
}

TEST_F(WorkerTest, SeveralThreadsStartAndBuryTheirOwn) {
  const std::string replies = bytes_of(encode(hello())) + bytes_of(encode(measured()));
  start(replies);  // writes the program
  std::vector<std::jthread> lanes;
  std::atomic<int> ok = 0;
  for (int lane = 0; lane < 3; ++lane) {
    lanes.emplace_back([&] {
      for (int i = 0; i < 5; ++i) {
        const auto worker = worker_processes().start({.program = (folder_ / "program").string()});
        CaseData data;
        Request request;
        request.variant = "fast";
        ok += worker->run(request, {20}, data).status == Status::ok;
      }
    });
  }
  lanes.clear();
  EXPECT_EQ(ok, 15) << "none was taken for what another left behind";
}

TEST_F(WorkerTest, WhatItPrintsIsNoOutputOfThisProgram) {
  testing::internal::CaptureStdout();
  auto worker = start(bytes_of(encode(hello())),
                      "echo a kernel says hello; echo it >said; exec cat <&3 >/dev/null");
  read("said");
  worker.reset();
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

TEST_F(WorkerTest, WhatItPrintsIsNoCommandToWhoReadsIt) {
  testing::internal::CaptureStderr();
  auto worker = start(bytes_of(encode(hello())),
                      "printf 'so far\\n::error::gone\\n\\033]0;title\\007 and the rest' >&2; "
                      "echo printed; echo > done; exec cat <&3 >/dev/null");
  read("replies");
  while (!fs::exists(folder_ / "done")) std::this_thread::yield();
  worker.reset();
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("so far\n"), std::string::npos) << said;
  EXPECT_NE(said.find("error::gone"), std::string::npos) << said;
  EXPECT_EQ(said.find("\n::error"), std::string::npos) << said;
  EXPECT_EQ(said.find('\033'), std::string::npos) << said;
  EXPECT_NE(said.find(" and the restprinted\n"), std::string::npos)
      << "in order, to the end: " << said;
}

TEST_F(WorkerTest, AClosedPipeIsCalledThat) {
  const auto worker = start(bytes_of(encode(hello())), "exec 3<&- 4>&-; exit 126");
  CaseData data;
  const Result result = worker->run({}, {20}, data);
  EXPECT_EQ(result.status, Status::crashed);
  EXPECT_EQ(result.why, "the process closed its pipe to the runner (files 3 and 4)");
}

}  // namespace
}  // namespace moegate::test
