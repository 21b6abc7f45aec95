// SPDX-License-Identifier: Apache-2.0
// The C functions between a worker and the interpreter in it; python/moegate/_bridge.py has the same in
// the same order. A text that is returned is JSON, valid until the next call, {"error": …} where it failed.
#pragma once

#include <cstdint>

namespace moegate {

/// Of Python: does `what` for the variant or operator `number`, with a problem and a JSON argument.
/// Returns 0, or 1 where it raised; what it says goes through PythonCalls::answer.
using PythonDispatch = int (*)(int64_t number, const char* what, int64_t problem, void* stream,
                               const char* argument);

/// Of the worker.
struct PythonCalls {
  void (*attach)(PythonDispatch dispatch);
  void (*answer)(const char* text);
  void (*add_operator)(const char* stated);
  void (*add_variant)(const char* stated);
  void (*add_source)(const char* file, const char* hash);
  const char* (*describe)(int64_t problem);
  /// Copies a whole tensor to (1) or from (0) the device.
  const char* (*move)(int64_t problem, const char* tensor, void* host, int64_t bytes, int up);
  /// {layout, shape, dtype}: packed weights, made where there are none; layout null: the workspace.
  const char* (*packed)(int64_t problem, const char* asked);
  /// Hands in the truth of an output.
  const char* (*expect)(int64_t problem, const char* output, void* truth, int64_t elements);
  void (*serve)();
};

}  // namespace moegate
