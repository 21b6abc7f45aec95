// SPDX-License-Identifier: Apache-2.0
// CUPTI, opened at run time: who calls it lists the functions that it needs.
//
//   struct Functions : CuptiLib {
//     MOEGATE_CUPTI_FUNCTION(cuptiActivityFlushAll)
//   };
#pragma once

#include <cupti_result.h>

#include <string>

#include "harness/base/dynlib.h"

namespace moegate {

/// The base of such a struct, of which there is one that is never destroyed: CUPTI's threads and its
/// hooks in the driver outlive main.
class CuptiLib {
 public:
  /// What is missing, and the remedy; empty: nothing is.
  std::string why() const;
  /// "`what` fails with CUPTI_ERROR_…; the remedy": one remedy for whatever CUPTI is asked for. Only where
  /// nothing is missing.
  std::string failure(CUptiResult result, const std::string& what) const;

 protected:
  /// Null where the library lacks it, or a function before it.
  template <class F>
  F bound(const char* symbol) {
    F function = nullptr;
    complete_ = complete_ && lib_.bind(function, symbol);
    return function;
  }

 private:
  Dynlib lib_{{"libcupti.so.13", "libcupti.so"}};
  bool complete_ = static_cast<bool>(lib_);
  decltype(&::cuptiGetResultString) get_result_string_ =
      bound<decltype(&::cuptiGetResultString)>("cuptiGetResultString");
};

/// A member of CUPTI's name that is this function.
#define MOEGATE_CUPTI_FUNCTION(name) decltype(&::name) name = bound<decltype(&::name)>(#name);

}  // namespace moegate
