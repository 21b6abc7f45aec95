// SPDX-License-Identifier: Apache-2.0
// Continuous collection: the other mode runs one kernel at a time, and would hold every launch back
// until the flush before it had given up waiting for that launch.
#include "harness/timing/cuda/pc_sampler.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string_view>

#include "harness/base/error.h"
#include "harness/device/cuda/driver_entry.h"
#include "harness/timing/cuda/cupti_lib.h"

namespace moegate {
namespace {

constexpr size_t kPcRecords = 8192;  // instructions in one call; more come with the next
constexpr size_t kPcReasons = 128;   // more than any chip has
constexpr size_t kPcHardwareBytes = size_t{128} << 20;
constexpr size_t kPcScratchBytes = size_t{16} << 20;
constexpr int kMostPcCalls = 1024;  // a report that says "more" for ever

CUcontext context_of_thread() {
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

/// Whether a cubin has a table of source lines; asking CUPTI for every instruction takes longer.
bool has_lines(std::span<const uint8_t> cubin) {
  const std::string_view bytes(reinterpret_cast<const char*>(cubin.data()), cubin.size());
  return bytes.find(".debug_line") != std::string_view::npos;
}

}  // namespace

struct PcSampler::Session {
  /// Where CUPTI writes records.
  class Buffer {
   public:
    Buffer() : reasons_(kPcRecords * kPcReasons), records_(kPcRecords) { clear(); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

    void clear() {
      for (size_t i = 0; i < records_.size(); ++i) {
        records_[i] = {};
        records_[i].size = sizeof(CUpti_PCSamplingPCData);
        records_[i].stallReasonCount = kPcReasons;
        records_[i].stallReason = &reasons_[i * kPcReasons];
      }
      data_ = {};
      data_.size = sizeof data_;
      data_.collectNumPcs = records_.size();
      data_.pPcData = records_.data();
    }
    CUpti_PCSamplingData* data() { return &data_; }

   private:
    std::vector<CUpti_PCSamplingStallReason> reasons_;
    std::vector<CUpti_PCSamplingPCData> records_;
    CUpti_PCSamplingData data_{};
  };

  CUcontext context = context_of_thread();
  Buffer kept;  // CUPTI's own
  Buffer read;
  std::map<uint32_t, std::string> reasons;  // by CUPTI's index; only those that count
  bool enabled = false;

  ~Session() {
    auto params =
        pc_params<CUpti_PCSamplingDisableParams>(CUpti_PCSamplingDisableParamsSize, context);
    if (enabled) pc_cupti().cuptiPCSamplingDisable(&params);
  }

  void enable() {
    auto params =
        pc_params<CUpti_PCSamplingEnableParams>(CUpti_PCSamplingEnableParamsSize, context);
    require_pc(pc_cupti().cuptiPCSamplingEnable(&params), "cuptiPCSamplingEnable");
    enabled = true;
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
    all[3].attributeData.samplingDataBufferData.samplingDataBuffer = kept.data();
    all[4].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_HARDWARE_BUFFER_SIZE;
    all[4].attributeData.hardwareBufferSizeData.hardwareBufferSize = kPcHardwareBytes;
    all[5].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SCRATCH_BUFFER_SIZE;
    all[5].attributeData.scratchBufferSizeData.scratchBufferSize = kPcScratchBytes;
    auto params = pc_params<CUpti_PCSamplingConfigurationInfoParams>(
        CUpti_PCSamplingConfigurationInfoParamsSize, context);
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
        CUpti_PCSamplingGetNumStallReasonsParamsSize, context);
    number.numStallReasons = &count;
    require_pc(pc_cupti().cuptiPCSamplingGetNumStallReasons(&number),
               "cuptiPCSamplingGetNumStallReasons");
    if (count == 0 || count > kPcReasons) {
      throw Error(
          Exit::environment,
          fmt::format("stalls cannot be sampled: CUPTI names {} reasons on this GPU; use the "
                      "CUPTI of a toolkit that knows the driver and the GPU",
                      count));
    }
    std::vector<uint32_t> indices(count);
    std::vector<std::array<char, CUPTI_STALL_REASON_STRING_SIZE>> texts(count);
    std::vector<char*> names;
    for (auto& text : texts) names.push_back(text.data());
    auto params = pc_params<CUpti_PCSamplingGetStallReasonsParams>(
        CUpti_PCSamplingGetStallReasonsParamsSize, context);
    params.numStallReasons = count;
    params.stallReasonIndex = indices.data();
    params.stallReasons = names.data();
    require_pc(pc_cupti().cuptiPCSamplingGetStallReasons(&params),
               "cuptiPCSamplingGetStallReasons");
    for (size_t i = 0; i < count; ++i) {
      texts[i].back() = '\0';
      if (const auto reason = stall_reason(names[i])) reasons[indices[i]] = *reason;
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
      const auto reason = reasons.find(state.pcSamplingStallReasonIndex);
      if (state.samples == 0 || reason == reasons.end()) continue;
      one.reason = reason->second;
      one.samples = state.samples;
      samples.push_back(one);
    }
  }
};

PcSampler::PcSampler() {
  pc_cupti();                              // what is missing is said before memory is taken
  session_ = std::make_unique<Session>();  // with its memory: nothing comes between these two
  session_->enable();
  session_->configure();
  session_->read_reasons();
  start();
  stop();
  collect();
}

PcSampler::~PcSampler() = default;

void PcSampler::start() {
  auto params =
      pc_params<CUpti_PCSamplingStartParams>(CUpti_PCSamplingStartParamsSize, session_->context);
  require_pc(pc_cupti().cuptiPCSamplingStart(&params), "cuptiPCSamplingStart");
}

void PcSampler::stop() {
  auto params =
      pc_params<CUpti_PCSamplingStopParams>(CUpti_PCSamplingStopParamsSize, session_->context);
  require_pc(pc_cupti().cuptiPCSamplingStop(&params), "cuptiPCSamplingStop");
}

PcSampler::Batch PcSampler::collect() {
  auto params = pc_params<CUpti_PCSamplingGetDataParams>(CUpti_PCSamplingGetDataParamsSize,
                                                         session_->context);
  CUpti_PCSamplingData* data = session_->read.data();
  params.pcSamplingData = data;
  Batch batch;
  for (int call = 0; call < kMostPcCalls; ++call) {
    session_->read.clear();
    const CUptiResult result = pc_cupti().cuptiPCSamplingGetData(&params);
    if (result == CUPTI_ERROR_OUT_OF_MEMORY) {
      batch.full = true;
    } else {
      require_pc(result, "cuptiPCSamplingGetData");
    }
    batch.dropped += static_cast<int64_t>(data->droppedSamples);
    for (size_t i = 0; i < data->totalNumPcs; ++i) session_->take(data->pPcData[i], batch.samples);
    if (data->totalNumPcs == 0) break;
  }
  return batch;
}

uint64_t PcSampler::crc(std::span<const uint8_t> cubin) const {
  CUpti_GetCubinCrcParams params{};
  params.size = CUpti_GetCubinCrcParamsSize;
  params.cubin = cubin.data();
  params.cubinSize = cubin.size();
  return pc_cupti().cuptiGetCubinCrc(&params) == CUPTI_SUCCESS ? params.cubinCrc : 0;
}

std::string PcSampler::line(std::span<const uint8_t> cubin, const std::string& function,
                            int64_t offset) const {
  if (!has_lines(cubin)) return "";
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

}  // namespace moegate
