// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "harness/device/open.h"
#include "harness/inprocess/callers_problem.h"
#include "harness/inprocess/moegate.h"

namespace moegate::test {
namespace {

using nlohmann::json;

/// A caller with an input, an output and a truth.
class InProcessTest : public testing::Test {
 protected:
  ~InProcessTest() override { moegate_close(session_); }

  static int launch(void* user, void*) { return static_cast<InProcessTest*>(user)->launch_(); }

  json question() const {
    const auto address = [](const void* data) { return reinterpret_cast<uintptr_t>(data); };
    const size_t bytes = in_.size() * sizeof(float);
    const json tolerance = {1e-5, 1e-5, 1e-5, 1e-5, 1e-5, -1.0, 0.0};
    return {{"name", "double it"},
            {"params", {{"n", "64"}}},
            {"cache", "cold"},
            {"launch", "stream"},
            {"min_samples", 20},
            {"max_samples", 100},
            {"budget_s", 0.2},
            {"timer", "auto"},
            {"timed", true},
            {"stream", 0},
            {"inputs", {{{"name", "in"}, {"data", address(in_.data())}, {"bytes", bytes}}}},
            {"outputs",
             {{{"name", "out"},
               {"format", "fp32"},
               {"elements", out_.size()},
               {"row", 8},
               {"data", address(out_.data())},
               {"bytes", bytes},
               {"truth", address(truth_.data())},
               {"tolerance", tolerance}}}}};
  }

  json ask(const char* what, const json& question) {
    return json::parse(moegate_ask(session_, what, question.dump().c_str(), launch, this));
  }

  /// On a busy machine a right function's times are noisy.
  static bool is_right(const json& answer) {
    const std::string status = answer.value("status", "none");
    return status == "ok" || status == "noisy";
  }

  int doubles() {
    ++calls_;
    for (size_t i = 0; i < in_.size(); ++i) out_[i] = 2 * in_[i];
    return 0;
  }

  std::vector<float> in_ = std::vector<float>(64, 1), out_ = std::vector<float>(64);
  std::vector<double> truth_ = std::vector<double>(64, 2);
  int calls_ = 0;
  std::function<int()> launch_ = [this] { return doubles(); };
  moegate_session* session_ = moegate_open(R"({"device": "host"})", nullptr);
};

TEST_F(InProcessTest, ARightFunctionIsVerifiedAndTimed) {
  const json answer = ask("bench", question());
  ASSERT_FALSE(answer.contains("error")) << answer;
  EXPECT_TRUE(answer.at("verified"));
  EXPECT_GT(answer.at("median_ns"), 0);
  EXPECT_GE(answer.at("spans_ns").size(), 20u);
  EXPECT_EQ(out_, std::vector<float>(64, 2)) << "the last launch's output stays";
}

TEST_F(InProcessTest, MemoryBesideATensorIsNotTouched) {
  std::vector<float> three(3 * 64, 7);
  json asked = question();
  asked["outputs"][0]["data"] = reinterpret_cast<uintptr_t>(&three[64]);
  launch_ = [&] {
    std::fill(three.begin() + 64, three.begin() + 128, 2.0f);
    return 0;
  };
  EXPECT_TRUE(is_right(ask("bench", asked)));
  EXPECT_EQ(three[63], 7);
  EXPECT_EQ(three[128], 7);
}

/// Whether one of the tensors has an address.
bool covers(const Problem& problem, const void* address) {
  const auto* p = static_cast<const char*>(address);
  return std::ranges::any_of(problem.tensors(), [&](const Tensor* tensor) {
    const auto* begin = tensor->data<char>();
    return begin <= p && p < begin + tensor->bytes();
  });
}

TEST_F(InProcessTest, WhatIsMadeColdIsTheCallersMemory) {
  const std::unique_ptr<Device> host = open_guest_host_device();
  CallersMemory memory(*host);
  const CallersProblem problem(memory, question());
  EXPECT_EQ(problem.tensors().size(), 2u);
  for (const auto* array : {&in_, &out_}) {
    for (const float& element : *array) ASSERT_TRUE(covers(problem, &element));
  }
  EXPECT_FALSE(covers(problem, &truth_[0]));
}

TEST_F(InProcessTest, WrongOutputsAndChangedInputsAreWrong) {
  truth_[9] = 3;
  EXPECT_EQ(ask("bench", question()).at("status"), "wrong");
  truth_[9] = 2;
  launch_ = [this] { return doubles() + 0 * static_cast<int>(in_[5] += 1); };
  const json answer = ask("bench", question());
  EXPECT_EQ(answer.at("status"), "wrong");
}

TEST_F(InProcessTest, AFailingFunctionIsNotCalledAgain) {
  launch_ = [this] { return ++calls_ == 5; };
  json asked = question();
  asked["outputs"] = json::array();
  EXPECT_EQ(ask("bench", asked).at("error"), "the function failed");
  EXPECT_EQ(calls_, 5);
}

TEST_F(InProcessTest, AnInputThatIsWrittenIsAnOutput) {
  json asked = question();
  asked["inputs"].push_back(asked["outputs"][0]);
  EXPECT_TRUE(is_right(ask("bench", asked)));
}

TEST_F(InProcessTest, TheHashOfAnInputIsThatOfItsBytes) {
  const json before = ask("hash", question());
  EXPECT_EQ(ask("hash", question()), before);
  in_[63] = 5;
  EXPECT_NE(ask("hash", question()), before);
}

TEST_F(InProcessTest, NonsenseIsAnswered) {
  EXPECT_EQ(ask("sing", {}).at("exit"), 2);
  EXPECT_TRUE(ask("bench", {}).contains("error"));
  const char* error = nullptr;
  EXPECT_EQ(moegate_open("{", &error), nullptr);
  EXPECT_NE(error, nullptr);
}

}  // namespace
}  // namespace moegate::test
