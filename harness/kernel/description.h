// SPDX-License-Identifier: Apache-2.0
// What a program says of its operators and variants: plain values, so that who reads them needs
// none of their code. A worker sends them; suites are expanded by them.
#pragma once

#include <string>
#include <vector>

#include "harness/values/case.h"
#include "harness/values/device_facts.h"
#include "harness/values/result.h"

namespace moegate {

/// An operator without its code. Its parts stay untold: they serve its own program only.
struct OpDescription {
  std::string name;
  std::string help;
  std::vector<Param> params;   // its own; those that every operator has come on top
  std::string yardstick;       // host variant that the others are timed against; may be empty
  std::vector<Before> before;  // for the worker's backend, by preference
};

/// What a run on a backend stores of an operator.
inline OperatorFacts facts_of(const OpDescription& op, Backend backend) {
  return {op.name, backend == Backend::host ? op.yardstick : "", op.before};
}

/// A variant without its code.
struct VariantDescription {
  std::string op, name;
  Backend backend = Backend::host;
  std::string language;  // "C++", "CUDA"
  std::string help;
  Leeway leeway;
  ExpectedResult expected;  // of a saboteur: what the harness must make of it
};

}  // namespace moegate
