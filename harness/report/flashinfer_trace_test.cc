// SPDX-License-Identifier: Apache-2.0
#include "harness/report/flashinfer_trace.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "harness/base/scratch_fixture.h"

namespace moegate {
namespace {

using nlohmann::json;

constexpr const char* kTracedKey = "topk_sort/experts=256,routing=zipf:0.67,scale=2.5,tokens=8";

class FlashinferTraceTest : public ::testing::Test {
 protected:
  FlashinferTraceTest() {
    run_.uuid = "0123";
    run_.started = "2026-11-21T20:00:00Z";
    run_.device = {Backend::cuda, "NVIDIA H200", "nvidia-h200", "GPU-1"};
    run_.device.driver = "driver 575.57, CUDA 12.9, runtime 12.4";
    run_.git_sha = "abc123";
    run_.protocol = 1;
    run_.flush = "read";
    run_.operators = {{"topk_sort", "", {{"chain3", "fused*"}, {"chain2"}}}};
  }

  /// Adds a result; ok and timed unless `change` says otherwise.
  template <class Change>
  void add(const std::string& variant, double us, Change&& change, int round = 0) {
    Level level{.key = kTracedKey, .op = "topk_sort", .suite = "s", .section = "x"};
    level.variant = variant;
    level.round = round;
    Result& r = level.result;
    r.variant = variant;
    r.timer = "cupti";
    r.samples = 200;
    r.span_ns = us * 1000;
    r.accuracy.resize(2);
    r.accuracy[0].output = "ids";
    r.accuracy[1].output = "weights";
    r.accuracy[1].max_rel = 1e-7;
    r.accuracy[1].max_abs = 2e-7;
    change(r);
    levels_.push_back(level);
  }
  void add(const std::string& variant, double us) {
    add(variant, us, [](Result&) {});
  }
  void add(const std::string& variant, Status status) {
    add(variant, 0, [&](Result& r) {
      r.status = status;
      r.why = "because";
    });
  }

  /// The traces by solution.
  std::map<std::string, json> traces() {
    written_ = flashinfer_traces(run_, levels_, {{1, "2026-11-21T20:10:00Z"}});
    std::map<std::string, json> by_solution;
    std::istringstream in(written_.lines["topk_sort"]);
    for (std::string line; std::getline(in, line);) {
      const json trace = json::parse(line);
      by_solution[trace["solution"]] = trace;
    }
    return by_solution;
  }

  RunInfo run_;
  std::vector<Level> levels_;
  FlashinferTraces written_;
};

TEST_F(FlashinferTraceTest, OneResultIsOneTraceOfTheSchema) {
  add("fused", 8);
  const json trace = traces().at("fused@abc123");
  EXPECT_EQ(written_.count, 1u);
  EXPECT_EQ(trace["definition"], "moegate.topk_sort,experts=256,routing=zipf%3A0.67,scale=2.5");
  EXPECT_EQ(trace["workload"]["axes"], json({{"experts", 256}, {"tokens", 8}}));
  EXPECT_EQ(trace["workload"]["inputs"]["operands"], json({{"type", "random"}}));
  EXPECT_EQ(trace["workload"]["inputs"]["scale"], json({{"type", "scalar"}, {"value", 2.5}}));
  const json& evaluation = trace["evaluation"];
  EXPECT_EQ(evaluation["status"], "PASSED");
  EXPECT_EQ(evaluation["environment"]["hardware"], "NVIDIA H200");
  EXPECT_EQ(evaluation["environment"]["libs"]["cuda"], "12.4");
  EXPECT_EQ(evaluation["environment"]["libs"]["moegate"], "abc123");
  EXPECT_EQ(evaluation["environment"]["libs"]["moegate.protocol"], "1");
  EXPECT_EQ(evaluation["timestamp"], "2026-11-21T20:00:00Z");
  EXPECT_EQ(evaluation["correctness"]["max_relative_error"], 1e-7);
  EXPECT_EQ(evaluation["correctness"]["max_absolute_error"], 2e-7);
  EXPECT_EQ(evaluation["performance"]["latency_ms"], 0.008);
  EXPECT_EQ(evaluation["performance"]["reference_latency_ms"], 0) << "nothing was timed beside it";
  EXPECT_EQ(evaluation["performance"]["speedup_factor"], 0);
}

TEST_F(FlashinferTraceTest, AWorkloadHasOneUuidInEveryRun) {
  add("fused", 8);
  add("chain3", 10);
  const auto first = traces();
  const std::string uuid = first.at("fused@abc123")["workload"]["uuid"];
  EXPECT_EQ(first.at("chain3@abc123")["workload"]["uuid"], uuid);
  run_.git_sha = "def456";
  run_.dirty = true;
  EXPECT_EQ(traces().at("fused@def456-dirty")["workload"]["uuid"], uuid);
  EXPECT_EQ(uuid.size(), 36u);
  EXPECT_EQ(uuid[14], '8') << uuid;
}

TEST_F(FlashinferTraceTest, TheReferenceIsWhatTheOperatorStates) {
  add("chain2", 12);
  add("chain3", 10);
  add("fused_a", 8);
  add("other", 6);
  const auto performance = [all = traces()](const std::string& variant) {
    return all.at(variant + "@abc123")["evaluation"]["performance"];
  };
  EXPECT_EQ(performance("fused_a")["reference_latency_ms"], 0.01);
  EXPECT_EQ(performance("fused_a")["speedup_factor"], 1.25);
  EXPECT_EQ(performance("other")["speedup_factor"], 2.0);
  EXPECT_EQ(performance("chain3")["speedup_factor"], 1.0) << "a before is its own reference";
}

TEST_F(FlashinferTraceTest, TheReferenceIsOfTheSameRoundAndTimed) {
  add("fused", 8);
  add(
      "chain3", 10, [](Result&) {}, 1);
  EXPECT_EQ(traces().at("fused@abc123")["evaluation"]["performance"]["speedup_factor"], 0);
  EXPECT_EQ(traces().at("chain3@abc123")["evaluation"]["timestamp"], "2026-11-21T20:10:00Z");
  add("chain3", Status::crashed);
  add("chain2", 12);
  EXPECT_EQ(traces().at("fused@abc123")["evaluation"]["performance"]["speedup_factor"], 1.5)
      << "the next one that was measured";
}

TEST_F(FlashinferTraceTest, EveryStatusIsOneOfTheSchemaOrIsCounted) {
  add("a", 8);
  add("b", 8, [](Result& r) { r.status = Status::noisy; });
  add("c", Status::wrong);
  add("d", Status::crashed);
  add("e", Status::timeout);
  add("f", Status::unsupported);
  add("g", Status::bad_timer);
  add("h", 0);
  const auto all = traces();
  const std::map<std::string, std::string> expected = {{"a", "PASSED"},
                                                       {"b", "PASSED"},
                                                       {"c", "INCORRECT_NUMERICAL"},
                                                       {"d", "RUNTIME_ERROR"},
                                                       {"e", "TIMEOUT"}};
  ASSERT_EQ(all.size(), expected.size());
  for (const auto& [variant, status] : expected) {
    const json& evaluation = all.at(variant + "@abc123")["evaluation"];
    EXPECT_EQ(evaluation["status"], status) << variant;
    const bool passed = status == "PASSED", wrong = status == "INCORRECT_NUMERICAL";
    EXPECT_EQ(evaluation["correctness"].is_null(), !passed && !wrong) << variant;
    EXPECT_EQ(evaluation["performance"].is_null(), !passed) << variant;
  }
  const std::string log = all.at("d@abc123")["evaluation"]["log"];
  EXPECT_NE(log.find("crashed: because"), std::string::npos) << log;
  EXPECT_NE(std::string(all.at("b@abc123")["evaluation"]["log"]).find("noisy"), std::string::npos);
  ASSERT_EQ(written_.notes.size(), 4u);
  EXPECT_EQ(written_.notes[0],
            "1 result is left out, bad_timer: the schema has no status for that");
  EXPECT_NE(written_.notes[1].find("not timed"), std::string::npos);
  EXPECT_NE(written_.notes[2].find("unsupported"), std::string::npos);
}

TEST_F(FlashinferTraceTest, NumbersThatJsonHasNotAreTexts) {
  add("c", 0, [](Result& r) {
    r.status = Status::wrong;
    r.accuracy[0].max_rel = NAN;
    r.accuracy[0].max_abs = INFINITY;
  });
  add("d", 0, [](Result& r) {
    r.status = Status::wrong;
    r.accuracy.clear();
    r.why = "spoilt\xff";
  });
  const auto all = traces();
  const json& c = all.at("c@abc123")["evaluation"]["correctness"];
  EXPECT_EQ(c["max_relative_error"], "NaN");
  EXPECT_EQ(c["max_absolute_error"], "Infinity");
  EXPECT_EQ(all.at("d@abc123")["evaluation"]["correctness"]["max_relative_error"], "NaN")
      << "unknown is not 0";
}

TEST_F(FlashinferTraceTest, NamesTheFieldsThatTheSchemaHasNoPlaceFor) {
  add("a", 8);
  traces();
  const std::string& note = written_.notes.back();
  for (const char* field : {"median_ns", "ratio", "kernels", "spans_ns", "accuracy.cosine"}) {
    EXPECT_NE(note.find(field), std::string::npos) << note;
  }
  EXPECT_EQ(note.find("span_ns,"), std::string::npos) << note;
}

TEST_F(FlashinferTraceTest, ReadsTheStore) {
  const ScratchFolder folder;
  Store store = Store::open((folder / "r.sqlite").string(), Store::Mode::write);
  const int64_t run = store.begin_run(run_);
  const int64_t process = store.begin_process(run, 0, 1);
  Result r;
  r.variant = "fused";
  r.timer = "cupti";
  r.samples = 1;
  r.span_ns = r.median_ns = r.low_ns = r.high_ns = r.min_ns = 8000;
  store.add_result(process, {"s", "x", "topk_sort", {{"tokens", "8"}}, {}}, {}, {}, r);
  const FlashinferTraces read = read_flashinfer_traces(store, run);
  EXPECT_EQ(read.count, 1u);
  const json trace = json::parse(read.lines.at("topk_sort"));
  EXPECT_EQ(trace["definition"], "moegate.topk_sort");
  EXPECT_EQ(std::string(trace["evaluation"]["timestamp"]).substr(0, 2), "20");
}

}  // namespace
}  // namespace moegate
