// SPDX-License-Identifier: Apache-2.0
// Variants that cheat on the host, each a kind that a timing loop praises: what is timed is not what
// was verified, work is done where nobody times it, or the others are robbed.
#include <gtest/gtest.h>
#include <omp.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <thread>

#include "harness/device/open.h"
#include "harness/worker/measure.h"
#include "kernels/check/testing.h"

namespace moegate {
namespace {

using Bytes = std::vector<uint8_t>;
using LaunchFn = std::function<void(Problem&, const Launch&)>;

Tensor& only(Problem& problem, Role role) {
  for (Tensor* tensor : problem.tensors()) {
    if (tensor->role() == role) return *tensor;
  }
  throw Error(Exit::internal, "no such tensor");
}

Tensor& output_of(Problem& problem) {
  return only(problem, Role::output);
}
Tensor& input_of(Problem& problem) {
  return only(problem, Role::activation);
}

class MisdeedTest : public ::testing::Test {
 protected:
  /// What becomes of a variant that launches `cheat` in place of `honest`.
  Result measured(LaunchFn cheat) {
    variant_.launch = std::move(cheat);
    Result result = bench_.verify(variant_);
    verified_ = result.status == Status::ok;
    if (!verified_) return result;
    const auto timer = make_host_timer(*device_);
    bench_.measure(variant_, *timer, conditions_, sampling_, result);
    return result;
  }
  void expect_wrong(const Result& result, const std::string& part) {
    EXPECT_EQ(result.status, Status::wrong) << result.why;
    EXPECT_NE(result.why.find(part), std::string::npos) << result.why;
    EXPECT_EQ(result.span_ns, 0) << "a wrong variant has no latency";
  }

  std::unique_ptr<Device> device_ = open_host_device();
  Bench bench_{*device_,
               check::case_of("moe_sum", {{"tokens", "64"}, {"topk", "8"}, {"hidden", "1024"}})};
  Variant variant_ = find_variant("moe_sum", Backend::host, "blocked");
  const LaunchFn honest_ = variant_.launch;
  Conditions conditions_{};
  Sampling sampling_{.min_samples = 100, .max_samples = 300, .precision = 1, .budget_s = 0.2};
  bool verified_ = false;
};

TEST_F(MisdeedTest, AnHonestVariantIsMeasured) {
  const Result result = measured(honest_);
  EXPECT_TRUE(result.measured()) << result.why;
  EXPECT_GT(result.span_ns, 0);
  EXPECT_TRUE(result.deterministic);
  EXPECT_FALSE(bench_.spoilt());
}

TEST_F(MisdeedTest, WorkSkippedWherePointersRepeat) {
  auto seen = std::make_shared<std::set<const void*>>();
  const Result result = measured([=, this](Problem& problem, const Launch& where) {
    if (seen->insert(output_of(problem).data()).second) honest_(problem, where);
  });
  EXPECT_TRUE(verified_);
  expect_wrong(result, "in timed launches");
}

TEST_F(MisdeedTest, HalfOfTheWorkSkippedAfterTheFirstLaunch) {
  auto seen = std::make_shared<std::set<const void*>>();
  const Result result = measured([=, this](Problem& problem, const Launch& where) {
    Tensor& out = output_of(problem);
    const bool first = seen->insert(out.data()).second;
    const Bytes before = out.download<uint16_t>().empty()
                             ? Bytes{}
                             : Bytes(out.data<uint8_t>(), out.data<uint8_t>() + out.bytes() / 2);
    honest_(problem, where);
    if (!first) std::memcpy(out.data(), before.data(), before.size());
  });
  EXPECT_TRUE(verified_);
  expect_wrong(result, "in timed launches");
}

TEST_F(MisdeedTest, WorkOnlyWhereTheOutputIsPoison) {
  const Result result = measured([this](Problem& problem, const Launch& where) {
    const auto* out = output_of(problem).data<uint16_t>();
    if (out[0] == 0xffff && out[1] == 0xffff) honest_(problem, where);
  });
  EXPECT_TRUE(verified_);
  expect_wrong(result, "in timed launches");
}

TEST_F(MisdeedTest, OutputsKeptByAHashOfTheInput) {
  auto kept = std::make_shared<std::map<uint64_t, Bytes>>();
  // Too little heap to be noted: what is caught is that repeated inputs are quicker, by so much that
  // it shows under load, too.
  const Result result = measured([=, this](Problem& problem, const Launch& where) {
    const Tensor& in = input_of(problem);
    Tensor& out = output_of(problem);
    uint64_t key = 0;
    for (size_t at = 0; at < in.bytes(); at += 4096) key = hash_bytes(in.data<char>() + at, 8, key);
    Bytes& bytes = (*kept)[key];
    if (bytes.empty()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      honest_(problem, where);
      bytes.assign(out.data<uint8_t>(), out.data<uint8_t>() + out.bytes());
    }
    std::memcpy(out.data(), bytes.data(), bytes.size());
  });
  EXPECT_EQ(result.status, Status::wrong) << result.why;
}

TEST_F(MisdeedTest, TheAnswerComputedInPrepare) {
  auto answers = std::make_shared<std::map<const Problem*, Bytes>>();
  variant_.prepare = [=, this](Problem& problem, const Launch& where) {
    honest_(problem, where);
    Tensor& out = output_of(problem);
    (*answers)[&problem].assign(out.data<uint8_t>(), out.data<uint8_t>() + out.bytes());
  };
  const Result result = measured([=](Problem& problem, const Launch&) {
    const Bytes& answer = (*answers)[&problem];
    std::memcpy(output_of(problem).data(), answer.data(), answer.size());
  });
  EXPECT_FALSE(verified_);
  EXPECT_EQ(result.status, Status::wrong);
}

TEST_F(MisdeedTest, APrivateCopyOfTheOperands) {
  auto copies = std::make_shared<std::map<const Problem*, Bytes>>();
  const Result result = measured([=, this](Problem& problem, const Launch& where) {
    const Tensor& in = input_of(problem);
    Bytes& copy = (*copies)[&problem];
    if (copy.empty()) copy.assign(in.data<uint8_t>(), in.data<uint8_t>() + in.bytes());
    honest_(problem, where);
  });
#if !defined(__SANITIZE_ADDRESS__) && !defined(__clang__)  // whose heap tells nothing
  expect_wrong(result, "of its own from launch to launch");
#endif
}

TEST_F(MisdeedTest, AnElementReadBeyondTheInput) {
  const Result result = measured([this](Problem& problem, const Launch& where) {
    honest_(problem, where);
    const Tensor& in = input_of(problem);
    const float beyond = bf16_to_float(in.data<uint16_t>()[in.size()]);
    auto* out = output_of(problem).data<uint16_t>();
    out[0] = float_to_bf16(bf16_to_float(out[0]) + beyond);
  });
  EXPECT_FALSE(verified_);
  expect_wrong(result, "not finite");
}

TEST_F(MisdeedTest, AChangedInputIsBlamedOnWhoChangedIt) {
  const Result result = measured([this](Problem& problem, const Launch& where) {
    honest_(problem, where);
    input_of(problem).data<uint16_t>()[7] ^= 1;
  });
  expect_wrong(result, "changed its input 'y'");
  EXPECT_TRUE(bench_.spoilt()) << "the next variant must not be measured with it";
}

TEST_F(MisdeedTest, ThreadsTakenFromTheOthers) {
  const int threads = omp_get_max_threads();
  const Result result = measured([this](Problem& problem, const Launch& where) {
    omp_set_num_threads(omp_get_max_threads() + 1);
    honest_(problem, where);
  });
  expect_wrong(result, "OpenMP");
  EXPECT_EQ(omp_get_max_threads(), threads) << "put back for the next";
}

TEST_F(MisdeedTest, WhatAWrongOneTookIsPutBackToo) {
  const int threads = omp_get_max_threads();
  auto seen = std::make_shared<std::set<const void*>>();
  const Result result = measured([=, this](Problem& problem, const Launch& where) {
    if (seen->insert(output_of(problem).data()).second) return honest_(problem, where);
    omp_set_num_threads(threads + 1);
  });
  EXPECT_TRUE(verified_);
  EXPECT_EQ(result.status, Status::wrong);
  EXPECT_EQ(omp_get_max_threads(), threads);
}

TEST_F(MisdeedTest, AThreadThatGoesOnAfterTheLaunch) {
  std::atomic<bool> stop = false;
  std::vector<std::thread> burners;
  const Result result = measured([&, this](Problem& problem, const Launch& where) {
    if (burners.empty()) {
      burners.emplace_back([&] {
        while (!stop) std::this_thread::yield();
      });
    }
    honest_(problem, where);
  });
  stop = true;
  for (std::thread& t : burners) t.join();
  expect_wrong(result, "still there");
}

TEST_F(MisdeedTest, FloatingPointModesLeftSet) {
#if defined(__x86_64__)
  const Result result = measured([this](Problem& problem, const Launch& where) {
    honest_(problem, where);
    unsigned modes = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(modes | 0x8040);  // denormals are zero, and flushed to it
  });
  expect_wrong(result, "floating-point modes");
#endif
}

TEST(FirstOnesAreSlower, BeyondDoubtOnly) {
  EXPECT_TRUE(first_ones_are_slower({30, 31, 32, 33}, {10, 11, 12, 13}));
  EXPECT_FALSE(first_ones_are_slower({30, 31, 32, 12}, {10, 11, 12, 13})) << "one is as quick";
  EXPECT_FALSE(first_ones_are_slower({14, 14, 14, 14}, {11, 11, 11, 13})) << "by a little";
  EXPECT_FALSE(first_ones_are_slower({30, 31, 32}, {10, 11, 12})) << "too few";
}

}  // namespace
}  // namespace moegate
