// SPDX-License-Identifier: Apache-2.0
#include "harness/timing/cuda/counter_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "harness/base/error.h"
#include "harness/timing/cuda/counter_cupti.h"

namespace moegate {

struct CounterPlan::Host {
  CUpti_Profiler_Host_Object* object = nullptr;

  Host(const std::string& chip, const std::vector<uint8_t>& availability) {
    MOEGATE_COUNTER_PARAMS(params, CUpti_Profiler_Host_Initialize_Params);
    params.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
    params.pChipName = chip.c_str();
    params.pCounterAvailabilityImage = availability.empty() ? nullptr : availability.data();
    require_counters(counter_cupti().cuptiProfilerHostInitialize(&params),
                     "loading the chip's metrics");
    object = params.pHostObject;
  }
  ~Host() {
    MOEGATE_COUNTER_PARAMS(params, CUpti_Profiler_Host_Deinitialize_Params);
    params.pHostObject = object;
    counter_cupti().cuptiProfilerHostDeinitialize(&params);
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  /// The metric's unit; nothing for a name that the chip does not know.
  const char* unit(const char* metric) const {
    MOEGATE_COUNTER_PARAMS(params, CUpti_Profiler_Host_GetMetricProperties_Params);
    params.pHostObject = object;
    params.pMetricName = metric;
    if (counter_cupti().cuptiProfilerHostGetMetricProperties(&params) != CUPTI_SUCCESS)
      return nullptr;
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
  MOEGATE_COUNTER_PARAMS(add, CUpti_Profiler_Host_ConfigAddMetrics_Params);
  add.pHostObject = host_->object;
  add.ppMetricNames = names_.data();
  add.numMetrics = names_.size();
  require_counters(counter_cupti().cuptiProfilerHostConfigAddMetrics(&add),
                   "scheduling the metrics");
  MOEGATE_COUNTER_PARAMS(size, CUpti_Profiler_Host_GetConfigImageSize_Params);
  size.pHostObject = host_->object;
  require_counters(counter_cupti().cuptiProfilerHostGetConfigImageSize(&size),
                   "scheduling the metrics");
  image_.resize(size.configImageSize);
  MOEGATE_COUNTER_PARAMS(get, CUpti_Profiler_Host_GetConfigImage_Params);
  get.pHostObject = host_->object;
  get.configImageSize = image_.size();
  get.pConfigImage = image_.data();
  require_counters(counter_cupti().cuptiProfilerHostGetConfigImage(&get), "scheduling the metrics");
  MOEGATE_COUNTER_PARAMS(count, CUpti_Profiler_Host_GetNumOfPasses_Params);
  count.configImageSize = image_.size();
  count.pConfigImage = image_.data();
  require_counters(counter_cupti().cuptiProfilerHostGetNumOfPasses(&count), "counting the passes");
  passes_ = count.numOfPasses;
}

CounterPlan::~CounterPlan() = default;

std::vector<std::string> CounterPlan::near(const std::string& metric) const {
  const std::string base = metric.substr(0, metric.find('.'));
  std::vector<std::pair<size_t, std::string>> found;  // characters in common at the start
  for (const CUpti_MetricType type :
       {CUPTI_METRIC_TYPE_COUNTER, CUPTI_METRIC_TYPE_RATIO, CUPTI_METRIC_TYPE_THROUGHPUT}) {
    MOEGATE_COUNTER_PARAMS(params, CUpti_Profiler_Host_GetBaseMetrics_Params);
    params.pHostObject = host_->object;
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
  params.pHostObject = host_->object;
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

}  // namespace moegate
