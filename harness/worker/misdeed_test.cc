// SPDX-License-Identifier: Apache-2.0
// What a variant that cheats leaves behind for the next one. That each kind of cheat is caught is
// what the saboteurs show (tests/saboteurs).
#include <gtest/gtest.h>
#include <omp.h>
#include <sys/mman.h>
#include <sys/time.h>

#include <cstring>
#include <list>
#include <map>

#include "harness/device/cannot_capture.h"
#include "harness/device/open.h"
#include "harness/kernel/only_tensor_fixture.h"
#include "harness/worker/measure.h"
#include "kernels/check/testing.h"

namespace moegate::test {
namespace {

using LaunchFn = std::function<void(Problem&, const Launch&)>;

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

/// A GPU's, of a launch that cannot be captured, or that leaves nothing to time.
template <class Refusal>
class RefusingTimer : public Timer {
 public:
  explicit RefusingTimer(Refusal refusal) : refusal_(std::move(refusal)) {}
  std::string name() const override { return "cupti"; }
  double tick_ns() const override { return 32; }
  std::unique_ptr<Session> open(const Subject&, const Subject*, const Conditions&) override {
    throw refusal_;
  }

 private:
  const Refusal refusal_;
};

TEST_F(MisdeedTest, WhatCannotBeCapturedIsUnsupportedAndNoCrash) {
  RefusingTimer timer{CannotCapture("cannot be captured as a graph: it allocates")};
  Result result = bench_.verify(variant_);
  ASSERT_EQ(result.status, Status::ok) << result.why;
  bench_.measure(variant_, timer, conditions_, sampling_, result);
  EXPECT_EQ(result.status, Status::unsupported);
  EXPECT_EQ(result.why, "cannot be captured as a graph: it allocates");
  EXPECT_EQ(result.span_ns, 0);
}

TEST_F(MisdeedTest, ALaunchThatLeavesAGraphEmptyIsNamed) {
  RefusingTimer timer{EmptyCapture()};
  Result result = bench_.verify(variant_);
  bench_.measure(variant_, timer, conditions_, sampling_, result);
  EXPECT_EQ(result.status, Status::wrong);
  EXPECT_NE(result.why.find("holds no kernel, copy or fill: was it launched on another stream"),
            std::string::npos)
      << result.why;
}

/// A host's session of one problem, in which the third launch of a batch and those behind it leave
/// their output in another order than others, as blocks that race do.
class RacingSession : public Session {
 public:
  explicit RacingSession(std::unique_ptr<Session> session) : session_(std::move(session)) {}
  void enqueue() override { session_->enqueue(); }
  std::vector<Sample> collect() override {
    std::vector<Sample> batch = session_->collect();
    for (size_t i = 2; i < batch.size(); ++i) batch[i].outputs ^= 1;
    return batch;
  }
  Judged judged() const override { return session_->judged(); }
  std::string code() const override { return session_->code(); }

 private:
  const std::unique_ptr<Session> session_;
};

class RacingTimer : public Timer {
 public:
  explicit RacingTimer(Timer& host) : host_(host) {}
  std::string name() const override { return host_.name(); }
  double tick_ns() const override { return host_.tick_ns(); }
  std::unique_ptr<Session> open(const Subject& subject, const Subject* yardstick,
                                const Conditions& conditions) override {
    return std::make_unique<RacingSession>(host_.open(subject, yardstick, conditions));
  }

 private:
  Timer& host_;
};

TEST_F(MisdeedTest, WhatRacesInABatchIsComparedThere) {
  conditions_.cache = Cache::warm;  // one problem
  Result result = bench_.verify(variant_);
  ASSERT_EQ(result.status, Status::ok) << result.why;
  const auto host = make_host_timer(*device_);
  RacingTimer timer{*host};
  bench_.measure(variant_, timer, conditions_, sampling_, result);
  EXPECT_TRUE(result.measured()) << result.why;
}

TEST(CannotCapture, SaysWhatToDoInstead) {
  const auto says = [](const char* why, const char* part) {
    EXPECT_NE(capture_advice(why).find(part), std::string::npos) << why;
  };
  says("AcceleratorError: CUDA error: operation not permitted when stream is capturing", ".item()");
  says("operation failed due to a previous error during capture", "cudaMalloc");
  says("capturing stream has unjoined work", "stream of its own");
  says("operation would make the legacy stream depend on a capturing blocking stream",
       "default stream");
  says("KeyError: 'x'", "neither wait nor allocate");
}

TEST_F(MisdeedTest, TheShortestBatchReachesEveryProblem) {
  sampling_.min_samples = sampling_.max_samples = 1;
  EXPECT_TRUE(measured(honest_).measured()) << "no output is left poisoned";
}

TEST_F(MisdeedTest, AChangedInputIsBlamedOnWhoChangedIt) {
  const Result result = measured([this](Problem& problem, const Launch& where) {
    honest_(problem, where);
    only(problem, Role::activation).data<uint16_t>()[7] ^= 1;
  });
  expect_wrong(result, "changed its input 'y'");
  EXPECT_TRUE(bench_.spoilt()) << "the next variant must not be measured with it";
}

/// What a variant that allocates has between its launches; a test's is in the host's memory.
class Pool : public MisdeedTest {
 protected:
  Pool() {
    variant_.pool = [this] {
      std::vector<PoolSegment> all;
      for (auto& [bytes, kept] : segments_) all.push_back({bytes.data(), bytes.size(), kept});
      return all;
    };
  }
  std::vector<std::byte>& allocate(size_t bytes, size_t kept) {
    return segments_.emplace_back(std::vector<std::byte>(bytes), kept).first;
  }

  std::list<std::pair<std::vector<std::byte>, size_t>> segments_;
};

TEST_F(Pool, ThatLaunchesWriteBeforeTheyReadIsTheirOwn) {
  const Result result = measured([this](Problem& problem, const Launch& where) {
    if (segments_.empty()) allocate(512, 0);
    honest_(problem, where);
  });
  EXPECT_TRUE(result.measured()) << result.why;
  EXPECT_EQ(segments_.front().first, std::vector(512, std::byte{Tensor::kPoisonByte}));
}

TEST_F(Pool, WhatALaunchFindsThereOfTheOneBeforeIsPoison) {
  for (const size_t kept : {size_t{0}, size_t{64} * 1024 * 2}) {  // freed or not
    segments_.clear();
    std::map<const void*, std::byte*> results;
    const Result result = measured([&, this](Problem& problem, const Launch& where) {
      Tensor& out = only(problem, Role::output);
      auto [found, first] = results.try_emplace(out.data());
      if (first) {
        honest_(problem, where);
        found->second = allocate(out.bytes(), kept).data();
        std::memcpy(found->second, out.data(), out.bytes());
      }
      std::memcpy(out.data(), found->second, out.bytes());
    });
    expect_wrong(result, fmt::format("; its pool of 131072 bytes, of which launches kept {}, was "
                                     "poisoned before: a launch that reads there what it did not "
                                     "write is wrong; allocate what must last in prepare()",
                                     kept));
    EXPECT_FALSE(verified_);
  }
}

TEST_F(Pool, IsNotToBlameForWrongNumbers) {
  const Result result = measured([this](Problem& problem, const Launch& where) {
    if (segments_.empty()) allocate(512, 0);
    honest_(problem, where);
    only(problem, Role::output).data<uint16_t>()[7] ^= 0x8000;  // its sign
  });
  EXPECT_FALSE(verified_);
  expect_wrong(result, "1 of ");
  EXPECT_EQ(result.why.find("poisoned"), std::string::npos) << result.why;
}

TEST_F(Pool, MayNotGrowWhileLaunchesAreTimed) {
  const Result result =
      measured([this, launches = 0](Problem& problem, const Launch& where) mutable {
        if (launches++ % 50 == 0) allocate(4096, 4096);
        honest_(problem, where);
      });
  EXPECT_TRUE(verified_);
  expect_wrong(result, " bytes from the GPU (cudaMalloc) in timed launches; allocate as much");
  EXPECT_EQ(result.why.find("poisoned"), std::string::npos) << result.why;
}

TEST(GrownPool, IsWhatWasNotThereBefore) {
  std::byte memory[8];
  EXPECT_EQ(grown_pool({{memory, 4, 0}, {memory + 4, 4, 0}}, {{memory, 4, 4}}), "");
  EXPECT_NE(grown_pool({{memory, 4, 0}}, {{memory, 8, 0}}).find("took 8 bytes"), std::string::npos);
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

TEST_F(MisdeedTest, RowsThatLookRightAreSpoiltToo) {
  // 4 MiB of output, of which rows of 4 KiB are left as they are unless their first or last word
  // is spoilt.
  constexpr int kTokens = 1024, kHidden = 2048;
  Bench bench(*device_,
              check::case_of("moe_sum", {{"tokens", "1024"}, {"topk", "1"}, {"hidden", "2048"}}));
  variant_.launch = [this](Problem& problem, const Launch& where) {
    auto* out = only(problem, Role::output).data<uint16_t>();
    const std::vector<uint16_t> before(out, out + kTokens * kHidden);
    honest_(problem, where);
    for (int row = 0; row < kTokens; ++row) {
      const uint16_t* was = before.data() + row * kHidden;
      const auto is_spoilt = [](uint16_t bits) {
        return (bits & 0x7f80) == 0x7f80 || bits == 0x5555;
      };
      if (is_spoilt(was[0]) || is_spoilt(was[kHidden - 1])) continue;
      std::copy_n(was, kHidden, out + row * kHidden);
    }
  };
  Result result = bench.verify(variant_);
  ASSERT_EQ(result.status, Status::ok) << result.why;
  bench.measure(variant_, *make_host_timer(*device_), conditions_, sampling_, result);
  expect_wrong(result, "in timed launches");
}

TEST_F(MisdeedTest, APendingTimerIsSeenAndStopped) {
  for (const auto which : {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF}) {
    const Result result = measured([&, this](Problem& problem, const Launch& where) {
      const itimerval later{{}, {3600, 0}};
      setitimer(which, &later, nullptr);
      honest_(problem, where);
    });
    expect_wrong(result, "left a timer pending");
    itimerval left{};
    getitimer(which, &left);
    EXPECT_EQ(left.it_value.tv_sec, 0) << "it would go off in another's launch";
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(__clang__)
TEST_F(MisdeedTest, MemoryThatTheHeapDoesNotCount) {
  constexpr size_t kBytes = size_t{32} << 20;
  void* kept = nullptr;
  const Result result = measured([&, this](Problem& problem, const Launch& where) {
    if (kept == nullptr) {
      kept = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      std::memset(kept, 1, kBytes);
    }
    honest_(problem, where);
  });
  munmap(kept, kBytes);
  expect_wrong(result, "of its own from launch to launch");
}
#endif

TEST_F(MisdeedTest, WhatAWrongOneTookIsPutBackToo) {
  const int threads = omp_get_max_threads();
  auto seen = std::make_shared<std::map<const void*, int>>();
  const Result result = measured([=, this](Problem& problem, const Launch& where) {
    if (++(*seen)[only(problem, Role::output).data()] <= 2) return honest_(problem, where);
    omp_set_num_threads(threads + 1);
  });
  EXPECT_TRUE(verified_);
  EXPECT_EQ(result.status, Status::wrong);
  EXPECT_EQ(omp_get_max_threads(), threads);
}

TEST_F(MisdeedTest, OutputsThatVaryAndAreRightAreNoCheat) {
  int launches = 0;
  const Result result = measured([&, this](Problem& problem, const Launch& where) {
    honest_(problem, where);
    auto* out = only(problem, Role::output).data<uint16_t>();
    if (++launches > 200 && launches % 5 == 0) out[0] ^= 1;  // the last bit of one sum
  });
  EXPECT_TRUE(verified_);
  EXPECT_TRUE(result.measured()) << result.why;
}

TEST(FirstOnesAreSlower, BeyondDoubtOnly) {
  EXPECT_TRUE(first_ones_are_slower({30, 31, 32, 33}, {10, 11, 12, 13}, 1.3));
  EXPECT_FALSE(first_ones_are_slower({30, 31, 32, 12}, {10, 11, 12, 13}, 1.3)) << "one is as quick";
  EXPECT_FALSE(first_ones_are_slower({14, 14, 14, 14}, {11, 11, 11, 13}, 1.3)) << "by a little";
  EXPECT_FALSE(first_ones_are_slower({30, 31, 32}, {10, 11, 12}, 1.3)) << "too few";
}

}  // namespace
}  // namespace moegate::test
