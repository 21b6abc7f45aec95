// SPDX-License-Identifier: Apache-2.0
// CUPTI's range profiler and profiler host behind CounterPlan and Counters.
#include "harness/timing/cuda/cupti_counters.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>

#include "harness/base/dynlib.h"
#include "harness/base/error.h"
#include "harness/base/text.h"
#include "harness/device/cuda/driver_entry.h"
#include "harness/kernel/cuda_check.h"

namespace moegate {
namespace {

// clang-format 14 moves these backslashes to and fro.
// clang-format off
#define MOEGATE_COUNTER_FUNCTIONS(X)                \
  X(cuptiGetResultString)                           \
  X(cuptiProfilerInitialize)                        \
  X(cuptiDeviceGetChipName)                         \
  X(cuptiProfilerGetCounterAvailability)            \
  X(cuptiProfilerHostInitialize)                    \
  X(cuptiProfilerHostDeinitialize)                  \
  X(cuptiProfilerHostGetBaseMetrics)                \
  X(cuptiProfilerHostGetMetricProperties)           \
  X(cuptiProfilerHostConfigAddMetrics)              \
  X(cuptiProfilerHostGetConfigImageSize)            \
  X(cuptiProfilerHostGetConfigImage)                \
  X(cuptiProfilerHostGetNumOfPasses)                \
  X(cuptiProfilerHostEvaluateToGpuValues)           \
  X(cuptiRangeProfilerEnable)                       \
  X(cuptiRangeProfilerDisable)                      \
  X(cuptiRangeProfilerGetCounterDataSize)           \
  X(cuptiRangeProfilerCounterDataImageInitialize)   \
  X(cuptiRangeProfilerSetConfig)                    \
  X(cuptiRangeProfilerStart)                        \
  X(cuptiRangeProfilerStop)                         \
  X(cuptiRangeProfilerPushRange)                    \
  X(cuptiRangeProfilerPopRange)                     \
  X(cuptiRangeProfilerDecodeData)                   \
  X(cuptiRangeProfilerGetCounterDataInfo)           \
  X(cuptiRangeProfilerCounterDataGetRangeInfo)
// clang-format on

/// Never closed: CUPTI's hooks in the driver outlive main.
struct Functions {
  Dynlib lib{{"libcupti.so.13", "libcupti.so"}};
#define X(name) decltype(&::name) name = nullptr;
  MOEGATE_COUNTER_FUNCTIONS(X)
#undef X
  std::string why;

  Functions() {
    bool all = static_cast<bool>(lib);
#define X(name) all = all && lib.bind(name, #name);
    MOEGATE_COUNTER_FUNCTIONS(X)
#undef X
    if (!all) {
      why = "counters need CUPTI 13: " + lib.why() + " (install the CUDA toolkit's CUPTI)";
    }
  }
};

const Functions& cupti() {
  static const Functions* functions = new Functions;
  if (!functions->why.empty()) throw Error(Exit::environment, functions->why);
  return *functions;
}

const char* remedy(CUptiResult result) {
  switch (result) {
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
      return "; allow profiling for users (driver option NVreg_RestrictProfilingToAdminUsers=0), "
             "or run "
             "with CAP_SYS_ADMIN";
    case CUPTI_ERROR_HARDWARE_BUSY:
      return "; another profiler has the counters (Nsight, DCGM's profiling): stop it";
    case CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED:
      return "; a MIG slice cannot be counted: use a whole GPU";
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
      return "; another profiler owns CUPTI: stop it";
    case CUPTI_ERROR_UNKNOWN:
      return "; libnvperf_host, libnvperf_target of the CUDA toolkit may be missing beside "
             "libcupti";
    default:
      return "";
  }
}

void require(CUptiResult result, const char* what) {
  if (result == CUPTI_SUCCESS) return;
  const char* text = nullptr;
  cupti().cuptiGetResultString(result, &text);
  throw Error(Exit::environment,
              fmt::format("counters: {} fails with {}{}", what,
                          text ? text : std::to_string(static_cast<int>(result)), remedy(result)));
}

/// The parameters of a call, zeroed but for their size.
template <class Params>
Params sized(size_t bytes) {
  Params params{};
  params.structSize = bytes;
  return params;
}
#define MOEGATE_PARAMS(name, type) auto name = sized<type>(type##_STRUCT_SIZE)

void initialize() {
  static const CUptiResult result = [] {
    MOEGATE_PARAMS(params, CUpti_Profiler_Initialize_Params);
    return cupti().cuptiProfilerInitialize(&params);
  }();
  require(result, "starting the profiler");
}

std::string chip_of_current_device() {
  int ordinal = 0;
  MOEGATE_CUDA_CHECK(cudaGetDevice(&ordinal));
  CUpti_Device_GetChipName_Params params{};
  params.structSize = CUpti_Device_GetChipName_Params_STRUCT_SIZE;
  params.deviceIndex = static_cast<size_t>(ordinal);
  require(cupti().cuptiDeviceGetChipName(&params), "asking for the chip's name");
  return params.pChipName;
}

std::vector<uint8_t> availability_of(CUcontext context) {
  MOEGATE_PARAMS(params, CUpti_Profiler_GetCounterAvailability_Params);
  params.ctx = context;
  require(cupti().cuptiProfilerGetCounterAvailability(&params),
          "asking for the counters' availability");
  std::vector<uint8_t> image(params.counterAvailabilityImageSize);
  params.pCounterAvailabilityImage = image.data();
  require(cupti().cuptiProfilerGetCounterAvailability(&params),
          "asking for the counters' availability");
  return image;
}

}  // namespace

struct CounterPlan::Host {
  CUpti_Profiler_Host_Object* object = nullptr;

  Host(const std::string& chip, const std::vector<uint8_t>& availability) {
    MOEGATE_PARAMS(params, CUpti_Profiler_Host_Initialize_Params);
    params.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
    params.pChipName = chip.c_str();
    params.pCounterAvailabilityImage = availability.empty() ? nullptr : availability.data();
    require(cupti().cuptiProfilerHostInitialize(&params), "loading the chip's metrics");
    object = params.pHostObject;
  }
  ~Host() {
    MOEGATE_PARAMS(params, CUpti_Profiler_Host_Deinitialize_Params);
    params.pHostObject = object;
    cupti().cuptiProfilerHostDeinitialize(&params);
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  /// The metric's unit; nothing for a name that the chip does not know.
  const char* unit(const char* metric) const {
    MOEGATE_PARAMS(params, CUpti_Profiler_Host_GetMetricProperties_Params);
    params.pHostObject = object;
    params.pMetricName = metric;
    if (cupti().cuptiProfilerHostGetMetricProperties(&params) != CUPTI_SUCCESS) return nullptr;
    return params.pDimUnit ? params.pDimUnit : "";
  }
};

CounterPlan::CounterPlan(const std::string& chip, const std::vector<std::string>& metrics,
                         const std::vector<uint8_t>& availability)
    : metrics_(metrics) {
  host_ = std::make_unique<Host>(chip, availability);
  for (const std::string& metric : metrics_) {
    const char* unit = host_->unit(metric.c_str());
    if (!unit || metric.find('.') == std::string::npos) {
      usage_error(
          "metric '{}' is none of chip {}; near ones: {} (a metric ends with what is made of it, "
          "like .sum, .avg, .pct)",
          metric, chip, fmt::join(near(metric), ", "));
    }
    units_.emplace_back(unit);
    names_.push_back(metric.c_str());
  }
  MOEGATE_PARAMS(add, CUpti_Profiler_Host_ConfigAddMetrics_Params);
  add.pHostObject = host_->object;
  add.ppMetricNames = names_.data();
  add.numMetrics = names_.size();
  require(cupti().cuptiProfilerHostConfigAddMetrics(&add), "scheduling the metrics");
  MOEGATE_PARAMS(size, CUpti_Profiler_Host_GetConfigImageSize_Params);
  size.pHostObject = host_->object;
  require(cupti().cuptiProfilerHostGetConfigImageSize(&size), "scheduling the metrics");
  image_.resize(size.configImageSize);
  MOEGATE_PARAMS(get, CUpti_Profiler_Host_GetConfigImage_Params);
  get.pHostObject = host_->object;
  get.configImageSize = image_.size();
  get.pConfigImage = image_.data();
  require(cupti().cuptiProfilerHostGetConfigImage(&get), "scheduling the metrics");
  MOEGATE_PARAMS(count, CUpti_Profiler_Host_GetNumOfPasses_Params);
  count.configImageSize = image_.size();
  count.pConfigImage = image_.data();
  require(cupti().cuptiProfilerHostGetNumOfPasses(&count), "counting the passes");
  passes_ = count.numOfPasses;
}

CounterPlan::~CounterPlan() = default;

std::vector<std::string> CounterPlan::near(const std::string& metric) const {
  const std::string base = metric.substr(0, metric.find('.'));
  std::vector<std::pair<size_t, std::string>> found;  // characters in common at the start
  for (const CUpti_MetricType type :
       {CUPTI_METRIC_TYPE_COUNTER, CUPTI_METRIC_TYPE_RATIO, CUPTI_METRIC_TYPE_THROUGHPUT}) {
    MOEGATE_PARAMS(params, CUpti_Profiler_Host_GetBaseMetrics_Params);
    params.pHostObject = host_->object;
    params.metricType = type;
    require(cupti().cuptiProfilerHostGetBaseMetrics(&params), "listing the chip's metrics");
    for (size_t i = 0; i < params.numMetrics; ++i) {
      const std::string name = params.ppMetricNames[i];
      const auto same = std::ranges::mismatch(name, base).in1 - name.begin();
      const size_t shared =
          name.find(base) != std::string::npos ? name.size() : static_cast<size_t>(same);
      const char* made = type == CUPTI_METRIC_TYPE_COUNTER ? ".sum"
                         : type == CUPTI_METRIC_TYPE_RATIO ? ".ratio"
                                                           : ".avg.pct_of_peak_sustained_elapsed";
      found.emplace_back(shared, name + made);
    }
  }
  constexpr size_t kMost = 5;
  std::ranges::stable_sort(found, std::ranges::greater{}, [](const auto& f) { return f.first; });
  std::vector<std::string> names;
  for (const auto& [shared, name] : found) {
    if (names.size() < kMost) names.push_back(name);
  }
  return names;
}

std::vector<double> CounterPlan::values(const std::vector<uint8_t>& data, size_t range) const {
  std::vector<double> values(names_.size());
  MOEGATE_PARAMS(params, CUpti_Profiler_Host_EvaluateToGpuValues_Params);
  params.pHostObject = host_->object;
  params.pCounterDataImage = data.data();
  params.counterDataImageSize = data.size();
  params.rangeIndex = range;
  auto names = names_;
  params.ppMetricNames = names.data();
  params.numMetrics = names.size();
  params.pMetricValues = values.data();
  require(cupti().cuptiProfilerHostEvaluateToGpuValues(&params), "evaluating the metrics");
  return values;
}

class Counters::Session {
 public:
  CUcontext context = nullptr;
  CUpti_RangeProfiler_Object* object = nullptr;

  ~Session() {
    if (!object) return;
    MOEGATE_PARAMS(params, CUpti_RangeProfiler_Disable_Params);
    params.pRangeProfilerObject = object;
    cupti().cuptiRangeProfilerDisable(&params);
  }

  void enable() {
    MOEGATE_PARAMS(params, CUpti_RangeProfiler_Enable_Params);
    params.ctx = context;
    require(cupti().cuptiRangeProfilerEnable(&params), "enabling the range profiler");
    object = params.pRangeProfilerObject;
  }

  std::vector<uint8_t> room(const CounterPlan& plan, size_t ranges) const {
    std::vector<const char*> names;
    for (const std::string& metric : plan.metrics()) names.push_back(metric.c_str());
    MOEGATE_PARAMS(size, CUpti_RangeProfiler_GetCounterDataSize_Params);
    size.pRangeProfilerObject = object;
    size.pMetricNames = names.data();
    size.numMetrics = names.size();
    size.maxNumOfRanges = ranges;
    size.maxNumRangeTreeNodes = static_cast<uint32_t>(ranges);
    require(cupti().cuptiRangeProfilerGetCounterDataSize(&size), "making room for the counters");
    std::vector<uint8_t> data(size.counterDataSize);
    MOEGATE_PARAMS(init, CUpti_RangeProfiler_CounterDataImage_Initialize_Params);
    init.pRangeProfilerObject = object;
    init.counterDataSize = data.size();
    init.pCounterData = data.data();
    require(cupti().cuptiRangeProfilerCounterDataImageInitialize(&init),
            "making room for the counters");
    return data;
  }

  void configure(const CounterPlan& plan, std::vector<uint8_t>& data, size_t ranges) const {
    MOEGATE_PARAMS(params, CUpti_RangeProfiler_SetConfig_Params);
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
    require(cupti().cuptiRangeProfilerSetConfig(&params), "configuring the range profiler");
  }

  void start() const {
    MOEGATE_PARAMS(params, CUpti_RangeProfiler_Start_Params);
    params.pRangeProfilerObject = object;
    require(cupti().cuptiRangeProfilerStart(&params), "starting a pass");
  }
  void push(size_t number) const {
    const std::string name = std::to_string(number);
    MOEGATE_PARAMS(params, CUpti_RangeProfiler_PushRange_Params);
    params.pRangeProfilerObject = object;
    params.pRangeName = name.c_str();
    require(cupti().cuptiRangeProfilerPushRange(&params), "beginning a range");
  }
  void pop() const {
    MOEGATE_PARAMS(params, CUpti_RangeProfiler_PopRange_Params);
    params.pRangeProfilerObject = object;
    require(cupti().cuptiRangeProfilerPopRange(&params), "ending a range");
  }
  /// Whether it was the last pass.
  bool stop() const {
    MOEGATE_PARAMS(params, CUpti_RangeProfiler_Stop_Params);
    params.pRangeProfilerObject = object;
    require(cupti().cuptiRangeProfilerStop(&params), "ending a pass");
    return params.isAllPassSubmitted != 0;
  }
  /// Values of `ranges` ranges, which are named by their numbers.
  std::vector<std::vector<double>> decode(const CounterPlan& plan, const std::vector<uint8_t>& data,
                                          size_t ranges) const {
    MOEGATE_PARAMS(params, CUpti_RangeProfiler_DecodeData_Params);
    params.pRangeProfilerObject = object;
    require(cupti().cuptiRangeProfilerDecodeData(&params), "decoding the counters");
    MOEGATE_PARAMS(info, CUpti_RangeProfiler_GetCounterDataInfo_Params);
    info.pCounterDataImage = data.data();
    info.counterDataImageSize = data.size();
    require(cupti().cuptiRangeProfilerGetCounterDataInfo(&info), "decoding the counters");
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
    MOEGATE_PARAMS(params, CUpti_RangeProfiler_CounterData_GetRangeInfo_Params);
    params.pCounterDataImage = data.data();
    params.counterDataImageSize = data.size();
    params.rangeIndex = range;
    params.rangeDelimiter = "/";
    require(cupti().cuptiRangeProfilerCounterDataGetRangeInfo(&params), "decoding the counters");
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
