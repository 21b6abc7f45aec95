// SPDX-License-Identifier: Apache-2.0
#include "harness/timing/cuda/cupti_counters.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "harness/base/error.h"
#include "harness/base/text.h"
#include "harness/device/cuda/driver_entry.h"
#include "harness/kernel/cuda_check.h"
#include "harness/timing/cuda/counter_cupti.h"

namespace moegate {
namespace {

void initialize() {
  static const CUptiResult result = [] {
    MOEGATE_COUNTER_PARAMS(params, CUpti_Profiler_Initialize_Params);
    return counter_cupti().cuptiProfilerInitialize(&params);
  }();
  require_counters(result, "starting the profiler");
}

std::string chip_of_current_device() {
  int ordinal = 0;
  MOEGATE_CUDA_CHECK(cudaGetDevice(&ordinal));
  CUpti_Device_GetChipName_Params params{};
  params.structSize = CUpti_Device_GetChipName_Params_STRUCT_SIZE;
  params.deviceIndex = static_cast<size_t>(ordinal);
  require_counters(counter_cupti().cuptiDeviceGetChipName(&params), "asking for the chip's name");
  return params.pChipName;
}

std::vector<uint8_t> availability_of(CUcontext context) {
  MOEGATE_COUNTER_PARAMS(params, CUpti_Profiler_GetCounterAvailability_Params);
  params.ctx = context;
  require_counters(counter_cupti().cuptiProfilerGetCounterAvailability(&params),
                   "asking for the counters' availability");
  std::vector<uint8_t> image(params.counterAvailabilityImageSize);
  params.pCounterAvailabilityImage = image.data();
  require_counters(counter_cupti().cuptiProfilerGetCounterAvailability(&params),
                   "asking for the counters' availability");
  return image;
}

}  // namespace

class Counters::Session {
 public:
  CUcontext context = nullptr;
  CUpti_RangeProfiler_Object* object = nullptr;

  ~Session() {
    if (!object) return;
    MOEGATE_COUNTER_PARAMS(params, CUpti_RangeProfiler_Disable_Params);
    params.pRangeProfilerObject = object;
    counter_cupti().cuptiRangeProfilerDisable(&params);
  }

  void enable() {
    MOEGATE_COUNTER_PARAMS(params, CUpti_RangeProfiler_Enable_Params);
    params.ctx = context;
    require_counters(counter_cupti().cuptiRangeProfilerEnable(&params),
                     "enabling the range profiler");
    object = params.pRangeProfilerObject;
  }

  std::vector<uint8_t> room(const CounterPlan& plan, size_t ranges) const {
    std::vector<const char*> names;
    for (const std::string& metric : plan.metrics()) names.push_back(metric.c_str());
    MOEGATE_COUNTER_PARAMS(size, CUpti_RangeProfiler_GetCounterDataSize_Params);
    size.pRangeProfilerObject = object;
    size.pMetricNames = names.data();
    size.numMetrics = names.size();
    size.maxNumOfRanges = ranges;
    size.maxNumRangeTreeNodes = static_cast<uint32_t>(ranges);
    require_counters(counter_cupti().cuptiRangeProfilerGetCounterDataSize(&size),
                     "making room for the counters");
    std::vector<uint8_t> data(size.counterDataSize);
    MOEGATE_COUNTER_PARAMS(init, CUpti_RangeProfiler_CounterDataImage_Initialize_Params);
    init.pRangeProfilerObject = object;
    init.counterDataSize = data.size();
    init.pCounterData = data.data();
    require_counters(counter_cupti().cuptiRangeProfilerCounterDataImageInitialize(&init),
                     "making room for the counters");
    return data;
  }

  void configure(const CounterPlan& plan, std::vector<uint8_t>& data, size_t ranges) const {
    MOEGATE_COUNTER_PARAMS(params, CUpti_RangeProfiler_SetConfig_Params);
    params.pRangeProfilerObject = object;
    params.configSize = plan.image().size();
    params.pConfig = plan.image().data();
    params.counterDataImageSize = data.size();
    params.pCounterDataImage = data.data();
    params.range = CUPTI_UserRange;
    params.replayMode = CUPTI_UserReplay;
    params.maxRangesPerPass = ranges;
    params.numNestingLevels = 1;
    params.minNestingLevel = 1;
    params.targetNestingLevel = 1;
    require_counters(counter_cupti().cuptiRangeProfilerSetConfig(&params),
                     "configuring the range profiler");
  }

  void start() const {
    MOEGATE_COUNTER_PARAMS(params, CUpti_RangeProfiler_Start_Params);
    params.pRangeProfilerObject = object;
    require_counters(counter_cupti().cuptiRangeProfilerStart(&params), "starting a pass");
  }
  void push(size_t number) const {
    const std::string name = std::to_string(number);
    MOEGATE_COUNTER_PARAMS(params, CUpti_RangeProfiler_PushRange_Params);
    params.pRangeProfilerObject = object;
    params.pRangeName = name.c_str();
    require_counters(counter_cupti().cuptiRangeProfilerPushRange(&params), "beginning a range");
  }
  void pop() const {
    MOEGATE_COUNTER_PARAMS(params, CUpti_RangeProfiler_PopRange_Params);
    params.pRangeProfilerObject = object;
    require_counters(counter_cupti().cuptiRangeProfilerPopRange(&params), "ending a range");
  }
  /// Whether it was the last pass.
  bool stop() const {
    MOEGATE_COUNTER_PARAMS(params, CUpti_RangeProfiler_Stop_Params);
    params.pRangeProfilerObject = object;
    require_counters(counter_cupti().cuptiRangeProfilerStop(&params), "ending a pass");
    return params.isAllPassSubmitted != 0;
  }
  /// Values of `ranges` ranges, which are named by their numbers.
  std::vector<std::vector<double>> decode(const CounterPlan& plan, const std::vector<uint8_t>& data,
                                          size_t ranges) const {
    MOEGATE_COUNTER_PARAMS(params, CUpti_RangeProfiler_DecodeData_Params);
    params.pRangeProfilerObject = object;
    require_counters(counter_cupti().cuptiRangeProfilerDecodeData(&params),
                     "decoding the counters");
    MOEGATE_COUNTER_PARAMS(info, CUpti_RangeProfiler_GetCounterDataInfo_Params);
    info.pCounterDataImage = data.data();
    info.counterDataImageSize = data.size();
    require_counters(counter_cupti().cuptiRangeProfilerGetCounterDataInfo(&info),
                     "decoding the counters");
    if (info.numTotalRanges != ranges) {
      throw Error(Exit::environment, fmt::format("counters: {} ranges where {} were due",
                                                 info.numTotalRanges, ranges));
    }
    std::vector<std::vector<double>> values(ranges);
    for (size_t i = 0; i < ranges; ++i) values.at(number_of(data, i)) = plan.values(data, i);
    return values;
  }

 private:
  static size_t number_of(const std::vector<uint8_t>& data, size_t range) {
    MOEGATE_COUNTER_PARAMS(params, CUpti_RangeProfiler_CounterData_GetRangeInfo_Params);
    params.pCounterDataImage = data.data();
    params.counterDataImageSize = data.size();
    params.rangeIndex = range;
    params.rangeDelimiter = "/";
    require_counters(counter_cupti().cuptiRangeProfilerCounterDataGetRangeInfo(&params),
                     "decoding the counters");
    const auto number = parse_number<size_t>(params.rangeName);
    if (!number)
      throw Error(Exit::environment, "counters: a range has another name than was given");
    return *number;
  }
};

Counters::Counters(const std::vector<std::string>& metrics) : session_(new Session) {
  initialize();
  auto* current = of_driver<decltype(cuCtxGetCurrent)>("cuCtxGetCurrent", 12000);
  if (!current || current(&session_->context) != CUDA_SUCCESS || !session_->context) {
    throw Error(Exit::internal, "counters: no CUDA context is current");
  }
  plan_ = std::make_unique<CounterPlan>(chip_of_current_device(), metrics,
                                        availability_of(session_->context));
  session_->enable();
}

Counters::~Counters() = default;

std::vector<std::vector<double>> Counters::count(const Repeated& repeated) {
  // With room for exactly as many, the last of three ranges is dropped.
  const size_t room = 2 * repeated.ranges.size() + 2;
  std::vector<uint8_t> data = session_->room(*plan_, room);
  session_->configure(*plan_, data, room);
  size_t passes = 0;
  for (bool all = false; !all; ++passes) {
    if (passes > plan_->passes()) throw Error(Exit::environment, "counters: the passes do not end");
    session_->start();
    for (const auto& range : repeated.ranges) range();
    repeated.prepare();
    repeated.wait();
    for (size_t i = 0; i < repeated.ranges.size(); ++i) {
      session_->push(i);
      repeated.ranges[i]();
      session_->pop();
    }
    repeated.wait();
    all = session_->stop();
  }
  return session_->decode(*plan_, data, repeated.ranges.size());
}

}  // namespace moegate
