// SPDX-License-Identifier: Apache-2.0
// The functions of CUPTI that counting needs, opened at run time.
#pragma once

#include <cuda.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

#include <cstddef>

#include "harness/timing/cuda/cupti_lib.h"

namespace moegate {

struct CounterCupti : CuptiLib {
  MOEGATE_CUPTI_FUNCTION(cuptiProfilerInitialize)
  MOEGATE_CUPTI_FUNCTION(cuptiDeviceGetChipName)
  MOEGATE_CUPTI_FUNCTION(cuptiProfilerGetCounterAvailability)
  MOEGATE_CUPTI_FUNCTION(cuptiProfilerHostInitialize)
  MOEGATE_CUPTI_FUNCTION(cuptiProfilerHostDeinitialize)
  MOEGATE_CUPTI_FUNCTION(cuptiProfilerHostGetBaseMetrics)
  MOEGATE_CUPTI_FUNCTION(cuptiProfilerHostGetMetricProperties)
  MOEGATE_CUPTI_FUNCTION(cuptiProfilerHostConfigAddMetrics)
  MOEGATE_CUPTI_FUNCTION(cuptiProfilerHostGetConfigImageSize)
  MOEGATE_CUPTI_FUNCTION(cuptiProfilerHostGetConfigImage)
  MOEGATE_CUPTI_FUNCTION(cuptiProfilerHostGetNumOfPasses)
  MOEGATE_CUPTI_FUNCTION(cuptiProfilerHostEvaluateToGpuValues)
  MOEGATE_CUPTI_FUNCTION(cuptiRangeProfilerEnable)
  MOEGATE_CUPTI_FUNCTION(cuptiRangeProfilerDisable)
  MOEGATE_CUPTI_FUNCTION(cuptiRangeProfilerGetCounterDataSize)
  MOEGATE_CUPTI_FUNCTION(cuptiRangeProfilerCounterDataImageInitialize)
  MOEGATE_CUPTI_FUNCTION(cuptiRangeProfilerSetConfig)
  MOEGATE_CUPTI_FUNCTION(cuptiRangeProfilerStart)
  MOEGATE_CUPTI_FUNCTION(cuptiRangeProfilerStop)
  MOEGATE_CUPTI_FUNCTION(cuptiRangeProfilerPushRange)
  MOEGATE_CUPTI_FUNCTION(cuptiRangeProfilerPopRange)
  MOEGATE_CUPTI_FUNCTION(cuptiRangeProfilerDecodeData)
  MOEGATE_CUPTI_FUNCTION(cuptiRangeProfilerGetCounterDataInfo)
  MOEGATE_CUPTI_FUNCTION(cuptiRangeProfilerCounterDataGetRangeInfo)
};

/// Throws Error(environment) where a function is missing.
const CounterCupti& counter_cupti();

/// Throws Error(environment) for a failure, with the remedy: "counters cannot be read: `what` fails with …".
void require_counters(CUptiResult result, const char* what);

/// The parameters of a call, zeroed but for their size.
template <class Params>
Params counter_params(size_t bytes) {
  Params params{};
  params.structSize = bytes;
  return params;
}
#define MOEGATE_COUNTER_PARAMS(name, type) auto name = counter_params<type>(type##_STRUCT_SIZE)

}  // namespace moegate
