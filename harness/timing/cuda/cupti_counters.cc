// SPDX-License-Identifier: Apache-2.0
#include "harness/timing/cuda/cupti_counters.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "harness/base/error.h"
#include "harness/base/text.h"
#include "harness/device/cannot_capture.h"
#include "harness/device/cuda/captured_launch.h"
#include "harness/device/cuda/cuda_sequence.h"
#include "harness/kernel/cuda_check.h"
#include "harness/kernel/driver_entry.h"
#include "harness/timing/cuda/cupti_lib.h"
#include "harness/timing/profiler.h"

namespace moegate {

#ifdef MOEGATE_HAS_RANGE_PROFILER

namespace {

CUpti_Profiler_Host_Object* host_of(const std::string& chip,
                                    const std::vector<uint8_t>& availability) {
  MOEGATE_COUNTER_PARAMS(params, CUpti_Profiler_Host_Initialize_Params);
  params.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
  params.pChipName = chip.c_str();
  params.pCounterAvailabilityImage = availability.empty() ? nullptr : availability.data();
  require_counters(counter_cupti().cuptiProfilerHostInitialize(&params),
                   "loading the chip's metrics");
  return params.pHostObject;
}

void end_host(CUpti_Profiler_Host_Object* host) {
  MOEGATE_COUNTER_PARAMS(params, CUpti_Profiler_Host_Deinitialize_Params);
  params.pHostObject = host;
  counter_cupti().cuptiProfilerHostDeinitialize(&params);
}

/// The metric's unit; nothing for a name that the chip does not know.
const char* unit_of(CUpti_Profiler_Host_Object* host, const std::string& metric) {
  MOEGATE_COUNTER_PARAMS(params, CUpti_Profiler_Host_GetMetricProperties_Params);
  params.pHostObject = host;
  params.pMetricName = metric.c_str();
  if (counter_cupti().cuptiProfilerHostGetMetricProperties(&params) != CUPTI_SUCCESS)
    return nullptr;
  return params.pDimUnit ? params.pDimUnit : "";
}

}  // namespace

CounterPlan::CounterPlan(const std::string& chip, const std::vector<std::string>& metrics,
                         const std::vector<uint8_t>& availability)
    : host_(host_of(chip, availability), end_host), metrics_(metrics) {
  for (const std::string& metric : metrics_) {
    const char* unit = unit_of(host_.get(), metric);
    if (!unit || metric.find('.') == std::string::npos) {
      usage_error(
          "chip {1} has no metric '{0}'; similar metrics: {2} (a metric needs an ending such as "
          ".sum, .avg or .pct)",
          metric, chip, fmt::join(near(metric), ", "));
    }
    units_.emplace_back(unit);
    names_.push_back(metric.c_str());
  }
  MOEGATE_COUNTER_PARAMS(add, CUpti_Profiler_Host_ConfigAddMetrics_Params);
  add.pHostObject = host_.get();
  add.ppMetricNames = names_.data();
  add.numMetrics = names_.size();
  require_counters(counter_cupti().cuptiProfilerHostConfigAddMetrics(&add),
                   "scheduling the metrics");
  MOEGATE_COUNTER_PARAMS(size, CUpti_Profiler_Host_GetConfigImageSize_Params);
  size.pHostObject = host_.get();
  require_counters(counter_cupti().cuptiProfilerHostGetConfigImageSize(&size),
                   "scheduling the metrics");
  image_.resize(size.configImageSize);
  MOEGATE_COUNTER_PARAMS(get, CUpti_Profiler_Host_GetConfigImage_Params);
  get.pHostObject = host_.get();
  get.configImageSize = image_.size();
  get.pConfigImage = image_.data();
  require_counters(counter_cupti().cuptiProfilerHostGetConfigImage(&get), "scheduling the metrics");
  MOEGATE_COUNTER_PARAMS(count, CUpti_Profiler_Host_GetNumOfPasses_Params);
  count.configImageSize = image_.size();
  count.pConfigImage = image_.data();
  require_counters(counter_cupti().cuptiProfilerHostGetNumOfPasses(&count), "counting the passes");
  passes_ = count.numOfPasses;
}

std::vector<std::string> CounterPlan::near(const std::string& metric) const {
  const std::string base = metric.substr(0, metric.find('.'));
  std::vector<std::pair<size_t, std::string>> found;  // characters in common at the start
  for (const CUpti_MetricType type :
       {CUPTI_METRIC_TYPE_COUNTER, CUPTI_METRIC_TYPE_RATIO, CUPTI_METRIC_TYPE_THROUGHPUT}) {
    MOEGATE_COUNTER_PARAMS(params, CUpti_Profiler_Host_GetBaseMetrics_Params);
    params.pHostObject = host_.get();
    params.metricType = type;
    require_counters(counter_cupti().cuptiProfilerHostGetBaseMetrics(&params),
                     "listing the chip's metrics");
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
  MOEGATE_COUNTER_PARAMS(params, CUpti_Profiler_Host_EvaluateToGpuValues_Params);
  params.pHostObject = host_.get();
  params.pCounterDataImage = data.data();
  params.counterDataImageSize = data.size();
  params.rangeIndex = range;
  auto names = names_;
  params.ppMetricNames = names.data();
  params.numMetrics = names.size();
  params.pMetricValues = values.data();
  require_counters(counter_cupti().cuptiProfilerHostEvaluateToGpuValues(&params),
                   "evaluating the metrics");
  return values;
}

namespace {

/// That of the thread. Starts the profiler, once in a process.
CUcontext profiled_context() {
  static const CUptiResult result = [] {
    MOEGATE_COUNTER_PARAMS(params, CUpti_Profiler_Initialize_Params);
    return counter_cupti().cuptiProfilerInitialize(&params);
  }();
  require_counters(result, "starting the profiler");
  CUcontext context = nullptr;
  auto* current = of_driver<decltype(cuCtxGetCurrent)>("cuCtxGetCurrent", 12000);
  if (!current || current(&context) != CUDA_SUCCESS || !context) {
    throw Error(Exit::internal, "counters: no CUDA context is current");
  }
  return context;
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

/// The counters of the current context's device. One per process, and none beside activity records.
class Counters {
 public:
  /// Throws like CounterPlan, and Error(environment) without the right to read counters, naming the
  /// remedy.
  explicit Counters(const std::vector<std::string>& metrics)
      : context_(profiled_context()),
        plan_(chip_of_current_device(), metrics, availability_of(context_)) {
    MOEGATE_COUNTER_PARAMS(params, CUpti_RangeProfiler_Enable_Params);
    params.ctx = context_;
    require_counters(counter_cupti().cuptiRangeProfilerEnable(&params),
                     "enabling the range profiler");
    object_ = params.pRangeProfilerObject;
  }
  ~Counters() {
    MOEGATE_COUNTER_PARAMS(params, CUpti_RangeProfiler_Disable_Params);
    params.pRangeProfilerObject = object_;
    counter_cupti().cuptiRangeProfilerDisable(&params);
  }
  Counters(Counters&&) = delete;

  const CounterPlan& plan() const { return plan_; }

  /// The values of plan().metrics(), for each of the ranges, which do not wait, behind the
  /// sequence's flush. A pass first does the ranges uncounted: starting one empties the caches of
  /// instructions and constants, which warm launches would find full.
  std::vector<std::vector<double>> count(CudaSequence& sequence,
                                         const std::vector<std::function<void()>>& ranges) {
    // With room for exactly as many, the last of three ranges is dropped.
    const size_t room = 2 * ranges.size() + 2;
    std::vector<uint8_t> data = make_room(room);
    configure(data, room);
    size_t passes = 0;
    for (bool all = false; !all; ++passes) {
      if (passes > plan_.passes()) {
        throw Error(Exit::environment, "counters: the passes do not end");
      }
      start();
      for (const auto& range : ranges) range();
      sequence.prepare();
      sequence.release();
      sequence.readings();  // waits for all that was enqueued
      for (size_t i = 0; i < ranges.size(); ++i) {
        push(i);
        ranges[i]();
        pop();
      }
      sequence.readings();
      all = stop();
    }
    return decode(data, ranges.size());
  }

 private:
  std::vector<uint8_t> make_room(size_t ranges) const {
    std::vector<const char*> names;
    for (const std::string& metric : plan_.metrics()) names.push_back(metric.c_str());
    MOEGATE_COUNTER_PARAMS(size, CUpti_RangeProfiler_GetCounterDataSize_Params);
    size.pRangeProfilerObject = object_;
    size.pMetricNames = names.data();
    size.numMetrics = names.size();
    size.maxNumOfRanges = ranges;
    size.maxNumRangeTreeNodes = static_cast<uint32_t>(ranges);
    require_counters(counter_cupti().cuptiRangeProfilerGetCounterDataSize(&size),
                     "making room for the counters");
    std::vector<uint8_t> data(size.counterDataSize);
    MOEGATE_COUNTER_PARAMS(init, CUpti_RangeProfiler_CounterDataImage_Initialize_Params);
    init.pRangeProfilerObject = object_;
    init.counterDataSize = data.size();
    init.pCounterData = data.data();
    require_counters(counter_cupti().cuptiRangeProfilerCounterDataImageInitialize(&init),
                     "making room for the counters");
    return data;
  }

  void configure(std::vector<uint8_t>& data, size_t ranges) const {
    MOEGATE_COUNTER_PARAMS(params, CUpti_RangeProfiler_SetConfig_Params);
    params.pRangeProfilerObject = object_;
    params.configSize = plan_.image().size();
    params.pConfig = plan_.image().data();
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
    params.pRangeProfilerObject = object_;
    require_counters(counter_cupti().cuptiRangeProfilerStart(&params), "starting a pass");
  }
  void push(size_t number) const {
    const std::string name = std::to_string(number);
    MOEGATE_COUNTER_PARAMS(params, CUpti_RangeProfiler_PushRange_Params);
    params.pRangeProfilerObject = object_;
    params.pRangeName = name.c_str();
    require_counters(counter_cupti().cuptiRangeProfilerPushRange(&params), "beginning a range");
  }
  void pop() const {
    MOEGATE_COUNTER_PARAMS(params, CUpti_RangeProfiler_PopRange_Params);
    params.pRangeProfilerObject = object_;
    require_counters(counter_cupti().cuptiRangeProfilerPopRange(&params), "ending a range");
  }
  /// Whether it was the last pass.
  bool stop() const {
    MOEGATE_COUNTER_PARAMS(params, CUpti_RangeProfiler_Stop_Params);
    params.pRangeProfilerObject = object_;
    require_counters(counter_cupti().cuptiRangeProfilerStop(&params), "ending a pass");
    return params.isAllPassSubmitted != 0;
  }
  /// Values of `ranges` ranges, which are named by their numbers.
  std::vector<std::vector<double>> decode(const std::vector<uint8_t>& data, size_t ranges) const {
    MOEGATE_COUNTER_PARAMS(params, CUpti_RangeProfiler_DecodeData_Params);
    params.pRangeProfilerObject = object_;
    require_counters(counter_cupti().cuptiRangeProfilerDecodeData(&params),
                     "decoding the counters");
    MOEGATE_COUNTER_PARAMS(info, CUpti_RangeProfiler_GetCounterDataInfo_Params);
    info.pCounterDataImage = data.data();
    info.counterDataImageSize = data.size();
    require_counters(counter_cupti().cuptiRangeProfilerGetCounterDataInfo(&info),
                     "decoding the counters");
    if (info.numTotalRanges != ranges) {
      give_up(Exit::environment, "counters: {} ranges where {} were due", info.numTotalRanges,
              ranges);
    }
    std::vector<std::vector<double>> values(ranges);
    for (size_t i = 0; i < ranges; ++i) values.at(number_of(data, i)) = plan_.values(data, i);
    return values;
  }
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

  const CUcontext context_;
  const CounterPlan plan_;
  CUpti_RangeProfiler_Object* object_ = nullptr;
};

/// Task::counters: every pass makes cold, then counts one launch on the first problem set. Other
/// sets have other inputs, whose counts would not belong together.
class CounterProfiler final : public Profiler {
 public:
  CounterProfiler(Device& device, const Profiling& profiling)
      : device_(device),
        per_kernel_(profiling.per_kernel),
        counters_(profiling.metrics.empty() ? default_counters() : profiling.metrics) {}

  void profile(const Subject& subject, const Conditions& conditions, Result& result) override {
    const Subject one{subject.variant, {subject.sets.at(0)}};
    CudaSequence sequence(device_, one, conditions);
    const auto launch = capture(one);
    if (launch) result.kernels = launch->operations();
    const auto whole = counters_.count(sequence, {[&] { sequence.launch(); }});
    add(whole[0], Metric::kWholeLaunch, result);
    const auto passes = static_cast<double>(counters_.plan().passes());
    result.metrics.push_back({"counter_passes", "launches", passes});
    if (per_kernel_ && launch) count_kernels(*launch, sequence, result);
  }

 private:
  void count_kernels(const CapturedLaunch& launch, CudaSequence& sequence, Result& result) {
    const auto parts = launch.parts();
    const auto stream = static_cast<cudaStream_t>(device_.stream());
    std::vector<std::function<void()>> ranges;
    for (const auto& part : parts) {
      ranges.emplace_back(
          [&part, stream] { MOEGATE_CUDA_CHECK(cudaGraphLaunch(part.get(), stream)); });
    }
    const auto values = counters_.count(sequence, ranges);
    for (size_t i = 0; i < values.size(); ++i) add(values[i], static_cast<int>(i), result);
  }

  /// Nothing of a launch that fits no graph: its kernels are not known.
  std::unique_ptr<CapturedLaunch> capture(const Subject& subject) {
    try {
      const Launch launch{device_.stream(), device_.facts()};
      return std::make_unique<CapturedLaunch>(*subject.variant, *subject.sets[0], launch);
    } catch (const CannotCapture&) {
      return nullptr;
    }
  }

  void add(const std::vector<double>& values, int ordinal, Result& result) {
    const CounterPlan& plan = counters_.plan();
    for (size_t i = 0; i < values.size(); ++i) {
      result.metrics.push_back({plan.metrics()[i], plan.units()[i], values[i], ordinal});
    }
  }

  Device& device_;
  const bool per_kernel_;
  Counters counters_;
};

}  // namespace

std::unique_ptr<Profiler> make_counter_profiler(Device& device, const Profiling& profiling) {
  return std::make_unique<CounterProfiler>(device, profiling);
}

#else

CounterPlan::CounterPlan(const std::string&, const std::vector<std::string>&,
                         const std::vector<uint8_t>&)
    : host_(nullptr, nullptr) {
  give_up(Exit::environment,
          "counters cannot be read: this moegate was built with CUDA {}.{}; build it with 12.6 or "
          "later",
          CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
}
std::vector<double> CounterPlan::values(const std::vector<uint8_t>&, size_t) const {
  return {};
}

std::unique_ptr<Profiler> make_counter_profiler(Device&, const Profiling& profiling) {
  CounterPlan("", profiling.metrics);
  return nullptr;
}

#endif

}  // namespace moegate
