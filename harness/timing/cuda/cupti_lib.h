// SPDX-License-Identifier: Apache-2.0
// CUPTI, opened at run time: who calls it lists the functions that it needs.
//
//   struct Functions : CuptiLib {
//     MOEGATE_CUPTI_FUNCTION(cuptiActivityFlushAll)
//   };
#pragma once

#include <cuda.h>
#include <cupti.h>
#include <cupti_pcsampling.h>
#include <cupti_profiler_target.h>
#include <cupti_result.h>
#include <cupti_target.h>
#if __has_include(<cupti_range_profiler.h>)  // from CUDA 12.6 on
#include <cupti_profiler_host.h>
#include <cupti_range_profiler.h>
#define MOEGATE_HAS_RANGE_PROFILER
#endif

#include <cstddef>
#include <string>

#include "harness/base/dynlib.h"

namespace moegate {

/// The base of such a struct, of which there is one that is never destroyed: CUPTI's threads and
/// its hooks in the driver outlive main.
class CuptiLib {
 public:
  /// What is missing, and the remedy; empty: nothing is.
  std::string why() const;
  /// "`what` fails with CUPTI_ERROR_…; the remedy": one remedy for whatever CUPTI is asked for.
  /// Only where nothing is missing.
  std::string failure(CUptiResult result, const std::string& what) const;
  const std::string& path() const { return lib_.path(); }  // as it was opened

 protected:
  /// Null where the library lacks it, or a function before it.
  template <class F>
  F bound(const char* symbol) {
    F function = optional<F>(symbol);
    complete_ = function != nullptr;
    return function;
  }
  /// Null where the library lacks it, which is none of its faults.
  template <class F>
  F optional(const char* symbol) {
    return complete_ ? F(lib_.find(symbol)) : nullptr;
  }

 private:
#if CUDA_VERSION >= 13000
  Dynlib lib_{{"libcupti.so.13", "libcupti.so.12", "libcupti.so"}};
#else
  Dynlib lib_{{"libcupti.so.12", "libcupti.so.13", "libcupti.so"}};
#endif
  bool complete_ = static_cast<bool>(lib_);
  decltype(&::cuptiGetResultString) get_result_string_ =
      bound<decltype(&::cuptiGetResultString)>("cuptiGetResultString");
};

/// A member of CUPTI's name that is this function.
#define MOEGATE_CUPTI_FUNCTION(name) decltype(&::name) name = bound<decltype(&::name)>(#name);

#ifdef MOEGATE_HAS_RANGE_PROFILER
/// What counting needs.
struct CounterCupti : CuptiLib {
  // CUPTI looks for them where the loader does alone; those that are open it finds.
  Dynlib host{{"libnvperf_host.so"}}, target{{"libnvperf_target.so"}};
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

/// Throws Error(environment) for a failure, with the remedy: "counters cannot be read: `what` fails
/// with …".
void require_counters(CUptiResult result, const char* what);

/// The parameters of a call, zeroed but for their size.
template <class Params>
Params counter_params(size_t bytes) {
  Params params{};
  params.structSize = bytes;
  return params;
}
#define MOEGATE_COUNTER_PARAMS(name, type) auto name = counter_params<type>(type##_STRUCT_SIZE)
#endif

/// What sampling of the program counter needs.
struct PcCupti : CuptiLib {
  MOEGATE_CUPTI_FUNCTION(cuptiPCSamplingEnable)
  MOEGATE_CUPTI_FUNCTION(cuptiPCSamplingDisable)
  MOEGATE_CUPTI_FUNCTION(cuptiPCSamplingSetConfigurationAttribute)
  MOEGATE_CUPTI_FUNCTION(cuptiPCSamplingGetNumStallReasons)
  MOEGATE_CUPTI_FUNCTION(cuptiPCSamplingGetStallReasons)
  MOEGATE_CUPTI_FUNCTION(cuptiPCSamplingStart)
  MOEGATE_CUPTI_FUNCTION(cuptiPCSamplingStop)
  MOEGATE_CUPTI_FUNCTION(cuptiPCSamplingGetData)
  MOEGATE_CUPTI_FUNCTION(cuptiGetCubinCrc)
  MOEGATE_CUPTI_FUNCTION(cuptiGetSassToSourceCorrelation)
};

/// Throws Error(environment) where a function is missing.
const PcCupti& pc_cupti();

/// Throws Error(environment) for a failure, with the remedy: "stalls cannot be sampled: `what`
/// fails …".
void require_pc(CUptiResult result, const std::string& what);

/// Why CUPTI belongs to somebody else (a variable or a tool), read from the environment; empty: it
/// does not, as far as that says.
std::string other_profiler();

}  // namespace moegate
