// SPDX-License-Identifier: Apache-2.0
// Cold launches under the sampler until enough samples are the launch's own. The flush before each runs
// ten times as long as a small kernel: its samples are known by its name, and left out.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "harness/base/error.h"
#include "harness/device/cuda/captured_launch.h"
#include "harness/device/cuda/cuda_sequence.h"
#include "harness/timing/cuda/cupti_code.h"
#include "harness/timing/cuda/pc_sampler.h"
#include "harness/timing/profiler.h"
#include "harness/timing/sass.h"
#include "harness/timing/stall_tally.h"

namespace moegate {
namespace {

constexpr int64_t kEnoughSamples = 20'000;  // a share of 10 % is then known to 0.2 points
constexpr std::chrono::seconds kMostSampling{2};
constexpr int kFirstLaunches = 8;
constexpr int kMostLaunches = 1024;  // of one batch; fits what may be pending
constexpr size_t kMostRows = 200;    // of a kernel

/// Ends a batch also where a launch throws.
class SampledRange {
 public:
  explicit SampledRange(PcSampler& sampler) : sampler_(sampler) { sampler_.start(); }
  ~SampledRange() {
    if (!running_) return;
    try {
      sampler_.stop();
    } catch (const Error&) {
      // What was thrown before says more.
    }
  }
  SampledRange(const SampledRange&) = delete;
  SampledRange& operator=(const SampledRange&) = delete;

  void stop() {
    running_ = false;
    sampler_.stop();
  }

 private:
  PcSampler& sampler_;
  bool running_ = true;
};

/// What every launch runs, in order; nothing where that is unknown before it runs.
std::vector<KernelRow> operations_of(Device& device, const Subject& subject) {
  std::vector<KernelRow> operations;
  try {
    const CapturedLaunch launch(*subject.variant, *subject.sets.front(),
                                {device.stream(), device.facts()});
    operations = launch.operations();
  } catch (const Error&) {
    cudaGetLastError();  // a stream's launch may do what a graph cannot hold
  }
  const bool named = std::ranges::find(operations, "?", &KernelRow::name) == operations.end();
  return named ? operations : std::vector<KernelRow>();
}

struct Sampled {
  StallTally tally;
  int64_t dropped = 0;
  int launches = 0;
  bool full = false;
};

class StallProfiler final : public Profiler {
 public:
  explicit StallProfiler(Device& device) : device_(device) {
    CuptiCode::watch(true);  // before the modules of kernels are loaded
    device_.synchronize();
    sampler_.emplace();
  }

  void profile(const Subject& subject, const Conditions& conditions, Result& result) override {
    CudaSequence sequence(device_, subject, conditions);
    result.kernels = operations_of(device_, subject);
    std::vector<std::string> operations;
    for (const KernelRow& k : result.kernels) operations.push_back(k.name);
    const Sampled sampled = sample(sequence, operations);
    StallTable table = table_of(sampled.tally, operations);
    describe(table.kernels, table.rows);
    const auto add = [&](const char* name, int64_t value, const char* unit,
                         int ordinal = Metric::kWholeLaunch) {
      result.metrics.push_back(
          {.name = name, .unit = unit, .value = static_cast<double>(value), .ordinal = ordinal});
    };
    for (size_t k = 0; k < table.kernels.size(); ++k) {
      const PcFunction& kernel = table.kernels[k];
      if (k == result.kernels.size()) result.kernels.emplace_back().name = kernel.name;
      if (kernel.samples > 0) add("pc_samples", kernel.samples, "samples", static_cast<int>(k));
    }
    add("pc_samples", table.samples, "samples");
    add("pc_samples_dropped", sampled.dropped, "samples");
    add("pc_launches", sampled.launches, "launches");
    add("pc_period", PcSampler::kPeriodClocks, "clocks");
    if (sampled.full) add("pc_buffer_full", 1, "times");
    const auto unread = std::ranges::count(table.rows, "", &StallRow::instruction);
    if (unread > 0) add("pc_rows_without_sass", unread, "rows");
    result.stalls = std::move(table.rows);
  }

 private:
  static StallTable table_of(const StallTally& tally, const std::vector<std::string>& operations) {
    return tally.table(operations, &CudaSequence::is_around, kMostRows);
  }

  Sampled sample(CudaSequence& sequence, const std::vector<std::string>& operations) {
    using Clock = std::chrono::steady_clock;
    Sampled sampled;
    const auto start = Clock::now();
    for (int launches = kFirstLaunches; !sampled.full && Clock::now() - start < kMostSampling;
         launches = std::min(2 * launches, kMostLaunches)) {
      SampledRange range(*sampler_);
      for (int i = 0; i < launches; ++i) {
        sequence.prepare();
        sequence.launch();
        sequence.release();
      }
      sequence.readings();  // waits for the device
      range.stop();
      sampled.launches += launches;
      const PcSampler::Batch batch = sampler_->collect();
      for (const PcSample& one : batch.samples) sampled.tally.add(one);
      sampled.dropped += batch.dropped;
      sampled.full = batch.full;
      if (table_of(sampled.tally, operations).samples >= kEnoughSamples) break;
    }
    return sampled;
  }

  /// Gives rows their instructions and source lines, where these are known.
  void describe(const std::vector<PcFunction>& kernels, std::vector<StallRow>& rows) {
    const auto loaded = CuptiCode::cubins();
    for (; cubins_seen_ < loaded.size(); ++cubins_seen_) {
      cubins_.emplace(sampler_->crc(loaded[cubins_seen_]), loaded[cubins_seen_]);
    }
    for (StallRow& row : rows) {
      const PcFunction& kernel = kernels.at(static_cast<size_t>(row.ordinal));
      const auto cubin = cubins_.find(kernel.cubin);
      if (cubin == cubins_.end()) continue;
      const auto [sass, first] = sass_.try_emplace({kernel.cubin, kernel.function});
      if (first) {
        sass->second = disassemble(nvdisasm_, cubin->second, kernel.function, kernel.symbol);
      }
      const auto text = sass->second.find(row.offset);
      if (text != sass->second.end()) row.instruction = text->second;
      row.line = sampler_->line(cubin->second, kernel.function, row.offset);
    }
  }

  Device& device_;
  std::optional<PcSampler> sampler_;
  const std::string nvdisasm_ = find_nvdisasm();
  std::map<uint64_t, std::span<const uint8_t>> cubins_;  // by CRC
  size_t cubins_seen_ = 0;
  std::map<std::pair<uint64_t, std::string>, Sass> sass_;  // by cubin and function
};

}  // namespace

std::unique_ptr<Profiler> make_stall_profiler(Device& device, const Profiling&) {
  return std::make_unique<StallProfiler>(device);
}

}  // namespace moegate
