// SPDX-License-Identifier: Apache-2.0
// Cold launches under the sampler until enough samples are the launch's own. The flush before each
// runs ten times as long as a small kernel: its samples are known by its name, and left out.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "harness/base/deadline.h"
#include "harness/base/error.h"
#include "harness/device/cuda/captured_launch.h"
#include "harness/device/cuda/cuda_sequence.h"
#include "harness/kernel/driver_entry.h"
#include "harness/timing/cuda/cupti_code.h"
#include "harness/timing/cuda/cupti_lib.h"
#include "harness/timing/profiler.h"
#include "harness/timing/sass.h"
#include "harness/timing/stall_tally.h"

namespace moegate {
namespace {

// CUPTI's sampling of the program counter in the context of the open device.
// Continuous collection: the other mode runs one kernel at a time, and would hold every launch back
// until the flush before it had given up waiting for that launch.

constexpr size_t kPcRecords = 8192;  // instructions in one call; more come with the next
constexpr size_t kPcReasons = 128;   // more than any chip has
constexpr size_t kPcHardwareBytes = size_t{128} << 20;
constexpr size_t kPcScratchBytes = size_t{16} << 20;
constexpr int kMostPcCalls = 1024;  // a report that says "more" for ever

CUcontext context_of_thread() {
  pc_cupti();  // what is missing is said before memory is taken
  auto* current = of_driver<decltype(cuCtxGetCurrent)>("cuCtxGetCurrent", 12000);
  CUcontext context = nullptr;
  if (!current || current(&context) != CUDA_SUCCESS || !context) {
    throw Error(Exit::internal, "stalls: the thread that samples has no CUDA context");
  }
  return context;
}

template <class Params>
Params pc_params(size_t size, CUcontext context) {
  Params params{};
  params.size = size;
  params.ctx = context;
  return params;
}

/// One per process. Kernels run as they would without it, also side by side and in graphs: what was
/// sampled is known by the function, not by the launch.
class PcSampler {
 public:
  /// SM clocks from one sample of a warp scheduler to the next. Less than the shortest kernels
  /// take, and enough for the host to keep up with 132 multiprocessors.
  static constexpr uint32_t kPeriodLog2 = 12;
  static constexpr int64_t kPeriodClocks = int64_t{1} << kPeriodLog2;

  /// Of the calling thread's CUDA context. Throws Error(environment) where CUPTI is missing.
  PcSampler() = default;
  ~PcSampler() {
    auto params =
        pc_params<CUpti_PCSamplingDisableParams>(CUpti_PCSamplingDisableParamsSize, context_);
    if (enabled_) pc_cupti().cuptiPCSamplingDisable(&params);
  }
  PcSampler(PcSampler&&) = delete;

  /// Needs a device without work. Starts and stops once, since only that tells whether one may.
  /// Throws Error(environment) naming the remedy.
  void open() {
    enable();
    configure();
    read_reasons();
    sample([] {});
    collect();
  }

  /// What `work` runs is sampled. The device must be idle before and after it. Throws
  /// Error(environment), and what `work` throws.
  template <class Work>
  void sample(const Work& work) {
    start();
    try {
      work();
    } catch (...) {
      try {
        stop();
      } catch (const Error&) {
        // What was thrown before says more.
      }
      throw;
    }
    stop();
  }

  struct Batch {
    std::vector<PcSample> samples;
    int64_t dropped = 0;  // by the hardware
    bool full = false;    // its buffer: an unknown number is missing
  };
  /// What was sampled since the last call. Throws Error(environment).
  Batch collect() {
    auto params =
        pc_params<CUpti_PCSamplingGetDataParams>(CUpti_PCSamplingGetDataParamsSize, context_);
    CUpti_PCSamplingData* data = &read_.data;
    params.pcSamplingData = data;
    Batch batch;
    for (int call = 0; call < kMostPcCalls; ++call) {
      read_.clear();
      const CUptiResult result = pc_cupti().cuptiPCSamplingGetData(&params);
      if (result == CUPTI_ERROR_OUT_OF_MEMORY) {
        batch.full = true;
      } else {
        require_pc(result, "cuptiPCSamplingGetData");
      }
      batch.dropped += static_cast<int64_t>(data->droppedSamples);
      for (size_t i = 0; i < data->totalNumPcs; ++i) take(data->pPcData[i], batch.samples);
      if (data->totalNumPcs == 0) break;
    }
    return batch;
  }

  /// What PcSample::cubin says of this cubin; 0 for what is none.
  static uint64_t crc(std::span<const uint8_t> cubin) {
    CUpti_GetCubinCrcParams params{};
    params.size = CUpti_GetCubinCrcParamsSize;
    params.cubin = cubin.data();
    params.cubinSize = cubin.size();
    return pc_cupti().cuptiGetCubinCrc(&params) == CUPTI_SUCCESS ? params.cubinCrc : 0;
  }

  /// "file.cu:12"; empty for what was built without line information.
  static std::string line(std::span<const uint8_t> cubin, const std::string& function,
                          int64_t offset) {
    // Asking CUPTI takes longer than a look for a table of source lines.
    const std::string_view bytes(reinterpret_cast<const char*>(cubin.data()), cubin.size());
    if (bytes.find(".debug_line") == std::string_view::npos) return "";
    CUpti_GetSassToSourceCorrelationParams params{};
    params.size = CUpti_GetSassToSourceCorrelationParamsSize;
    params.cubin = cubin.data();
    params.cubinSize = cubin.size();
    params.functionName = function.c_str();
    params.pcOffset = static_cast<uint64_t>(offset);
    std::string text;
    const CUptiResult result = pc_cupti().cuptiGetSassToSourceCorrelation(&params);
    if (result == CUPTI_SUCCESS && params.fileName && params.lineNumber > 0) {
      text = fmt::format("{}:{}", std::filesystem::path(params.fileName).filename().string(),
                         params.lineNumber);
    }
    std::free(params.fileName);
    std::free(params.dirName);
    return text;
  }

 private:
  /// Where CUPTI writes records.
  struct Buffer {
    std::vector<CUpti_PCSamplingStallReason> reasons;
    std::vector<CUpti_PCSamplingPCData> records;
    CUpti_PCSamplingData data{};

    Buffer() : reasons(kPcRecords * kPcReasons), records(kPcRecords) { clear(); }
    void clear() {
      for (size_t i = 0; i < records.size(); ++i) {
        records[i] = {};
        records[i].size = sizeof(CUpti_PCSamplingPCData);
        records[i].stallReasonCount = kPcReasons;
        records[i].stallReason = &reasons[i * kPcReasons];
      }
      data = {};
      data.size = sizeof data;
      data.collectNumPcs = records.size();
      data.pPcData = records.data();
    }
  };

  void enable() {
    auto params =
        pc_params<CUpti_PCSamplingEnableParams>(CUpti_PCSamplingEnableParamsSize, context_);
    require_pc(pc_cupti().cuptiPCSamplingEnable(&params), "cuptiPCSamplingEnable");
    enabled_ = true;
  }

  void start() {
    auto params = pc_params<CUpti_PCSamplingStartParams>(CUpti_PCSamplingStartParamsSize, context_);
    require_pc(pc_cupti().cuptiPCSamplingStart(&params), "cuptiPCSamplingStart");
  }

  void stop() {
    auto params = pc_params<CUpti_PCSamplingStopParams>(CUpti_PCSamplingStopParamsSize, context_);
    require_pc(pc_cupti().cuptiPCSamplingStop(&params), "cuptiPCSamplingStop");
  }

  void configure() {
    std::array<CUpti_PCSamplingConfigurationInfo, 6> all{};
    all[0].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE;
    all[0].attributeData.collectionModeData.collectionMode =
        CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS;
    all[1].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD;
    all[1].attributeData.samplingPeriodData.samplingPeriod = kPeriodLog2;
    all[2].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_ENABLE_START_STOP_CONTROL;
    all[2].attributeData.enableStartStopControlData.enableStartStopControl = 1;
    all[3].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER;
    all[3].attributeData.samplingDataBufferData.samplingDataBuffer = &kept_.data;
    all[4].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_HARDWARE_BUFFER_SIZE;
    all[4].attributeData.hardwareBufferSizeData.hardwareBufferSize = kPcHardwareBytes;
    all[5].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SCRATCH_BUFFER_SIZE;
    all[5].attributeData.scratchBufferSizeData.scratchBufferSize = kPcScratchBytes;
    auto params = pc_params<CUpti_PCSamplingConfigurationInfoParams>(
        CUpti_PCSamplingConfigurationInfoParamsSize, context_);
    params.numAttributes = all.size();
    params.pPCSamplingConfigurationInfo = all.data();
    const CUptiResult result = pc_cupti().cuptiPCSamplingSetConfigurationAttribute(&params);
    for (const CUpti_PCSamplingConfigurationInfo& one : all) {
      if (result == CUPTI_SUCCESS || one.attributeStatus == CUPTI_SUCCESS) continue;
      require_pc(one.attributeStatus, fmt::format("setting attribute {} of the sampling",
                                                  static_cast<int>(one.attributeType)));
    }
    require_pc(result, "cuptiPCSamplingSetConfigurationAttribute");
  }

  void read_reasons() {
    size_t count = 0;
    auto number = pc_params<CUpti_PCSamplingGetNumStallReasonsParams>(
        CUpti_PCSamplingGetNumStallReasonsParamsSize, context_);
    number.numStallReasons = &count;
    require_pc(pc_cupti().cuptiPCSamplingGetNumStallReasons(&number),
               "cuptiPCSamplingGetNumStallReasons");
    if (count == 0 || count > kPcReasons) {
      give_up(Exit::environment,
              "stalls cannot be sampled: CUPTI names {} reasons on this GPU; use the CUPTI of a "
              "toolkit that knows the driver and the GPU",
              count);
    }
    std::vector<uint32_t> indices(count);
    std::vector<std::array<char, CUPTI_STALL_REASON_STRING_SIZE>> texts(count);
    std::vector<char*> names;
    for (auto& text : texts) names.push_back(text.data());
    auto params = pc_params<CUpti_PCSamplingGetStallReasonsParams>(
        CUpti_PCSamplingGetStallReasonsParamsSize, context_);
    params.numStallReasons = count;
    params.stallReasonIndex = indices.data();
    params.stallReasons = names.data();
    require_pc(pc_cupti().cuptiPCSamplingGetStallReasons(&params),
               "cuptiPCSamplingGetStallReasons");
    for (size_t i = 0; i < count; ++i) {
      texts[i].back() = '\0';
      if (const auto reason = stall_reason(names[i])) reasons_[indices[i]] = *reason;
    }
  }

  /// The names of functions are CUPTI's and shared between records: they are left to it.
  void take(const CUpti_PCSamplingPCData& pc, std::vector<PcSample>& samples) const {
    PcSample one;
    one.cubin = pc.cubinCrc;
    one.function = pc.functionName ? pc.functionName : "?";
    one.symbol = pc.functionIndex;
    one.offset = static_cast<int64_t>(pc.pcOffset);
    for (size_t i = 0; i < pc.stallReasonCount && i < kPcReasons; ++i) {
      const CUpti_PCSamplingStallReason& state = pc.stallReason[i];
      const auto reason = reasons_.find(state.pcSamplingStallReasonIndex);
      if (state.samples == 0 || reason == reasons_.end()) continue;
      one.reason = reason->second;
      one.samples = state.samples;
      samples.push_back(one);
    }
  }

  const CUcontext context_ = context_of_thread();
  Buffer kept_;  // CUPTI's own
  Buffer read_;
  std::map<uint32_t, std::string> reasons_;  // by CUPTI's index; only those that count
  bool enabled_ = false;
};

constexpr int64_t kEnoughSamples = 20'000;  // a share of 10 % is then known to 0.2 points
constexpr double kMostSeconds = 2;
constexpr int kFirstLaunches = 8;
constexpr int kMostLaunches = 1024;  // of one batch; fits what may be pending
constexpr size_t kMostRows = 200;    // of a kernel

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
    sampler_->open();
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
      result.metrics.push_back({name, unit, static_cast<double>(value), ordinal});
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
    Sampled sampled;
    const Deadline until(kMostSeconds);
    for (int launches = kFirstLaunches; !sampled.full && !until.passed();
         launches = std::min(2 * launches, kMostLaunches)) {
      sampler_->sample([&] {
        for (int i = 0; i < launches; ++i) {
          sequence.prepare();
          sequence.launch();
          sequence.release();
        }
        sequence.readings();  // waits for the device
      });
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
