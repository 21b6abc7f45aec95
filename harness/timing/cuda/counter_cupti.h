// SPDX-License-Identifier: Apache-2.0
// The functions of CUPTI that counting needs, opened at run time.
#pragma once

#include <cuda.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

#include <cstddef>
#include <string>

#include "harness/base/dynlib.h"

namespace moegate {

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

/// Under their own names. Never closed: CUPTI's hooks in the driver outlive main.
struct CounterCupti {
  Dynlib lib{{"libcupti.so.13", "libcupti.so"}};
#define X(name) decltype(&::name) name = nullptr;
  MOEGATE_COUNTER_FUNCTIONS(X)
#undef X
  std::string why;  // a function is missing; empty: none is

  CounterCupti();
};

/// Throws Error(environment) where a function is missing.
const CounterCupti& counter_cupti();

/// Throws Error(environment) for a failure, with the remedy: "counters: `what` fails with …".
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
