// SPDX-License-Identifier: Apache-2.0
// The timer of GPU measurements: CUPTI activity records, attributed to samples by id, never by time
// or name. harness/README.md says what makes a sample valid.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <iterator>
#include <set>
#include <span>
#include <thread>
#include <unordered_set>

#include "harness/base/stats.h"
#include "harness/device/cuda/cuda_sequence.h"
#include "harness/device/open.h"
#include "harness/kernel/cuda_check.h"
#include "harness/kernel/object_code.h"
#include "harness/timing/cuda/cupti_code.h"
#include "harness/timing/cuda/cupti_lib.h"
#include "harness/timing/cuda/cupti_log.h"
#include "harness/timing/cupti_loan.h"
#include "harness/timing/timer.h"

namespace moegate {
namespace {

constexpr uint64_t kSlackNs = 1'000'000'000;  // the clocks agree to microseconds; corrupt
                                              // timestamps were seen 1e14 ns off
constexpr int kDrainAttempts = 20;            // of 1 ms: records are there at the first, as a rule
constexpr double kUsualTickNs = 32;           // measured on an H200
constexpr uint64_t kIdsPerSample = 2;         // of the flush, the launch
constexpr uint64_t kSelfTestSamples = 96;
constexpr double kEmptyKernelMostNs = 1e6;  // an empty kernel takes about 1 us

double measured_tick_ns = kUsualTickNs;  // by the self-test

/// `count` ids that no other sample of the process has.
uint64_t fresh_ids(uint64_t count) {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(count);
}

/// Every tagged call has its operation: nothing is still on its way.
bool complete(const CuptiBatch& batch) {
  std::unordered_set<uint32_t> seen;
  for (const Activity& a : batch.operations) seen.insert(a.correlation);
  for (const auto& [correlation, id] : batch.tags) {
    if (!seen.contains(correlation)) return false;
  }
  return !batch.tags.empty();
}

CuptiBatch drain_all(ShapeTable& shapes) {
  CuptiBatch batch;
  for (int attempt = 0; attempt < kDrainAttempts; ++attempt) {
    CuptiLog::drain(batch, shapes);
    if (complete(batch)) break;
    // A call that rightly has no operation (a fill of 0 bytes) ends up here too; it costs time
    // only.
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return batch;
}

/// Duration of the longest operation; of those before a sample that is the flush.
double longest(std::span<const Activity> operations) {
  uint64_t most = 0;
  for (const Activity& a : operations) most = std::max(most, a.end_ns - a.start_ns);
  return static_cast<double>(most);
}

class CuptiSession final : public Session {
 public:
  CuptiSession(Device& device, const Subject& subject, const Subject*, const Conditions& conditions)
      : sequence_(device, subject, conditions),
        variant_(*subject.variant),
        enqueues_(conditions.launch == LaunchMode::stream),
        problem_sets_(subject.sets.size()) {
    CuptiLog::discard();  // checks, fills and captures before this session
  }

  void enqueue() override {
    if (sets_.empty()) opened_ns_ = CuptiLog::now_ns();
    const uint64_t id = base_ + kIdsPerSample * sets_.size();
    const size_t set = sequence_.next_set();
    {
      const CuptiTag flush(id);
      sequence_.prepare();
    }
    {
      const CuptiTag launch(id + 1);
      const auto start = std::chrono::steady_clock::now();
      sequence_.launch();
      const std::chrono::duration<double, std::nano> took =
          std::chrono::steady_clock::now() - start;
      if (enqueues_) enqueue_ns_.push_back(took.count());
    }
    sequence_.look();
    sequence_.release();
    sets_.push_back(set);
  }

  std::vector<Sample> collect() override {
    if (sets_.empty()) return {};
    const std::vector<SampleReading> readings = sequence_.readings();  // waits for the device
    const CuptiBatch batch = drain_all(shapes_);
    std::vector<Recorded> recorded = attribute(batch);
    const TimeWindow window{opened_ns_ - kSlackNs, CuptiLog::now_ns() + kSlackNs};
    const auto is_flush = [&](const Activity& a) { return flush_shapes_.contains(a.shape); };
    std::vector<Sample> samples;
    samples.reserve(recorded.size());
    for (size_t i = 0; i < recorded.size(); ++i) {
      Sample& s = samples.emplace_back(summarise(recorded[i], window));
      s.sm_mhz = sm_mhz(readings.at(i));
      s.set = sets_[i];
      s.outputs = readings.at(i).outputs;
      s.cold_ns = longest(recorded[i].flush) - static_cast<double>(readings.at(i).wait_ns);
      // Without the flush's record nobody knows that the sample started after it.
      if (recorded[i].flush.empty() || batch.dropped > 0) s.flags |= kMissingRecord;
      if (std::ranges::any_of(recorded[i].launch, is_flush)) s.flags |= kOverlapsFlush;
    }
    flag_foreign_work(samples, recorded, untagged(batch));
    kernel_sets_.flag(samples, recorded);
    clock_.flag(samples);
    for (size_t i = 0; i < samples.size(); ++i) {
      if (samples[i].flags != 0) continue;
      log_.add(recorded[i].launch);
      launches_.add(sets_[i], recorded[i].launch);
    }
    sets_.clear();
    base_ = fresh_ids(kIdsPerSample * CudaSequence::kMostPending);
    return samples;
  }

  double enqueue_ns() const override { return enqueue_ns_.empty() ? 0 : median(enqueue_ns_); }

  std::string misdeed() const override { return sequence_.misdeed(); }

  std::vector<KernelRow> kernels() const override { return log_.rows(shapes_); }

  std::string code() const override {
    const std::string ran = launches_.code(problem_sets_, shapes_, &CuptiCode::of);
    // Between the operations of a stream's launch is what the host takes to enqueue them.
    const bool alone = !enqueues_ || launches_.most_operations() == 1;
    const bool known = alone && !sequence_.given().empty();
    return joined_code(ran, known ? sequence_.given() : launch_code(variant_));
  }

 private:
  std::vector<Recorded> attribute(const CuptiBatch& batch) {
    std::vector<Recorded> recorded(sets_.size());
    for (const Activity& a : batch.operations) {
      const auto tag = batch.tags.find(a.correlation);
      if (tag == batch.tags.end() || tag->second < base_) continue;
      const uint64_t sample = (tag->second - base_) / kIdsPerSample;
      const uint64_t part = (tag->second - base_) % kIdsPerSample;
      if (sample >= recorded.size()) continue;
      Recorded& r = recorded[sample];
      if (part == 0) flush_shapes_.insert(a.shape);
      (part == 0 ? r.flush : r.launch).push_back(a);
    }
    return recorded;
  }

  /// Operations that no call of ours made: of another thread, or behind a launch's back.
  static std::vector<Activity> untagged(const CuptiBatch& batch) {
    std::vector<Activity> all;
    std::ranges::copy_if(batch.operations, std::back_inserter(all),
                         [&](const Activity& a) { return !batch.tags.contains(a.correlation); });
    return all;
  }

  CudaSequence sequence_;
  const Variant& variant_;
  const bool enqueues_;
  std::vector<double> enqueue_ns_;
  size_t problem_sets_;
  uint64_t base_ = fresh_ids(kIdsPerSample * CudaSequence::kMostPending);
  std::vector<size_t> sets_;  // problem set of every pending sample
  uint64_t opened_ns_ = 0;    // when the first of them was enqueued
  ShapeTable shapes_;
  std::set<int> flush_shapes_;
  KernelSets kernel_sets_;
  ClockWatch clock_;
  OperationLog log_;
  LaunchLog launches_;
};

/// Times empty kernels; returns what is wrong with their records. The first session of a process
/// may come back empty, so this one is thrown away.
std::string run_self_test(std::vector<double>& durations) {
  const uint64_t base = fresh_ids(kSelfTestSamples);
  const TimeWindow window{CuptiLog::now_ns(), UINT64_MAX};
  for (uint64_t i = 0; i < kSelfTestSamples; ++i) {
    const CuptiTag tag(base + i);
    launch_empty_kernel(nullptr);
  }
  MOEGATE_CUDA_CHECK(cudaDeviceSynchronize());
  ShapeTable shapes;
  const CuptiBatch batch = drain_all(shapes);
  if (batch.dropped > 0) return fmt::format("CUPTI dropped {} records", batch.dropped);
  std::set<uint64_t> seen;
  for (const Activity& a : batch.operations) {
    const auto tag = batch.tags.find(a.correlation);
    if (tag == batch.tags.end() || tag->second < base) continue;
    seen.insert(tag->second);
    Recorded one{{}, {a}};
    const Sample s = summarise(one, {window.low_ns - kSlackNs, CuptiLog::now_ns() + kSlackNs});
    if (s.flags != 0 || s.span_ns > kEmptyKernelMostNs) {
      return fmt::format("CUPTI gives an empty kernel the times {} to {} ns", a.start_ns, a.end_ns);
    }
    durations.push_back(s.span_ns);
  }
  if (seen.size() == kSelfTestSamples) return "";
  return fmt::format("CUPTI attributes {} of {} launches", seen.size(), kSelfTestSamples);
}

std::string self_test() {
  std::vector<double> durations;
  std::string why = run_self_test(durations);
  if (!why.empty()) {
    CuptiLog::record_all_calls();
    durations.clear();
    why = run_self_test(durations);
  }
  const double tick = measured_tick(durations);
  if (tick > 0) measured_tick_ns = tick;
  return why;
}

/// CUPTI's clock counts nanoseconds unless another tool gave it its own.
std::string clock_fault() {
  constexpr auto kWhile = std::chrono::milliseconds(2);
  constexpr double kShare = 0.25;
  const auto began = std::chrono::steady_clock::now();
  const uint64_t first = CuptiLog::now_ns();
  std::this_thread::sleep_for(kWhile);
  const auto counted = static_cast<double>(CuptiLog::now_ns() - first);
  const std::chrono::duration<double, std::nano> passed = std::chrono::steady_clock::now() - began;
  if (std::abs(counted - passed.count()) <= kShare * passed.count()) return "";
  return "another tool has given CUPTI a clock that does not count nanoseconds";
}

std::atomic<bool> lent{false};  // to a guest, whose CuptiLoan lives

/// Why CuptiCode watches nothing.
std::string why_unwatched() {
  const std::string missing = CuptiLib().why();
  if (!missing.empty()) return missing;
  return "CUPTI serves one tool at a time, and another one holds it (torch.profiler since its "
         "first use, Nsight, a debugger)";
}

std::string take_loan(int ordinal) {
  std::string why = other_profiler();
  if (!why.empty()) return why;
  if (!CuptiCode::watch()) return why_unwatched();
  why = CuptiLog::open_as_guest();
  if (why.empty()) {
    MOEGATE_CUDA_CHECK(cudaSetDevice(ordinal));
    why = clock_fault();
    if (why.empty() && !self_test().empty()) {
      why = CuptiLog::register_buffers();
      if (why.empty()) why = self_test();
    }
    if (!why.empty()) CuptiLog::close();
  }
  if (!why.empty()) CuptiCode::stop();
  return why;
}

std::string prepare_once(int ordinal) {
  std::string why = other_profiler();
  if (!why.empty()) return why;
  if (cuda_devices(&why).empty()) return why;
  CuptiCode::watch();
  why = CuptiLog::open();
  if (!why.empty()) {
    CuptiCode::stop();
    return why;
  }
  try {
    MOEGATE_CUDA_CHECK(cudaSetDevice(ordinal));
    why = self_test();
  } catch (const Error& error) {
    why = error.what();
  }
  if (!why.empty()) {
    CuptiLog::close();
    CuptiCode::stop();
  }
  return why;
}

}  // namespace

std::string prepare_cupti(int ordinal) {
  static const std::string why = prepare_once(ordinal);
  return why;
}

std::string keep_cupti() {
  if (cuda_devices(nullptr).empty()) return "";
  const std::string why = other_profiler();
  if (!why.empty()) return why;
  return CuptiCode::watch_for_good() ? "" : why_unwatched();
}

CuptiLoan::CuptiLoan(int ordinal) {
  if (lent.exchange(true)) {
    why_ = "another measurement of this process holds it";
    return;
  }
  try {
    why_ = take_loan(ordinal);
  } catch (const Error& error) {
    CuptiLog::close();
    CuptiCode::stop();
    why_ = error.what();
  }
  if (!why_.empty()) lent = false;
}

CuptiLoan::~CuptiLoan() {
  if (!why_.empty()) return;
  try {
    CuptiLog::discard();
  } catch (const Error&) {
    // What it could not flush is nobody's.
  }
  CuptiLog::close();
  CuptiCode::stop();
  lent = false;
}

std::unique_ptr<Timer> make_cupti_timer(Device& device) {
  const std::string why = lent ? "" : prepare_cupti(0);  // asked before: make sure it went well
  if (!why.empty()) throw Error(Exit::environment, why);
  return std::make_unique<TimerOf<CuptiSession>>(device, "cupti", measured_tick_ns);
}

}  // namespace moegate
