// SPDX-License-Identifier: Apache-2.0
// The functions of CUPTI that sampling of the program counter needs, opened at run time.
#pragma once

#include <cupti.h>
#include <cupti_pcsampling.h>

#include <string>

#include "harness/timing/cuda/cupti_lib.h"

namespace moegate {

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

/// Throws Error(environment) for a failure, with the remedy: "stalls cannot be sampled: `what` fails …".
void require_pc(CUptiResult result, const std::string& what);

}  // namespace moegate
