// SPDX-License-Identifier: Apache-2.0
// The functions of CUPTI that sampling of the program counter needs, opened at run time.
#pragma once

#include <cupti.h>
#include <cupti_pcsampling.h>

#include <string>

#include "harness/base/dynlib.h"

namespace moegate {

// clang-format 14 moves these backslashes to and fro.
// clang-format off
#define MOEGATE_PC_FUNCTIONS(X)              \
  X(cuptiPCSamplingEnable)                   \
  X(cuptiPCSamplingDisable)                  \
  X(cuptiPCSamplingSetConfigurationAttribute)\
  X(cuptiPCSamplingGetNumStallReasons)       \
  X(cuptiPCSamplingGetStallReasons)          \
  X(cuptiPCSamplingStart)                    \
  X(cuptiPCSamplingStop)                     \
  X(cuptiPCSamplingGetData)                  \
  X(cuptiGetCubinCrc)                        \
  X(cuptiGetSassToSourceCorrelation)         \
  X(cuptiGetResultString)
// clang-format on

/// Under their own names. Never closed: CUPTI's threads outlive main.
struct PcCupti {
  Dynlib lib{{"libcupti.so.13", "libcupti.so"}};
#define X(name) decltype(&::name) name = nullptr;
  MOEGATE_PC_FUNCTIONS(X)
#undef X
  std::string why;  // a function is missing; empty: none is

  PcCupti();
};

PcCupti& pc_cupti();

/// Throws Error(environment) for a failure, with the remedy: "stalls cannot be sampled: `what` fails with
/// …".
void require_pc(CUptiResult result, const std::string& what);

}  // namespace moegate
