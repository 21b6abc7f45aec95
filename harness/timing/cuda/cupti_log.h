// SPDX-License-Identifier: Apache-2.0
// The process's one CUPTI activity log: opens CUPTI, enables the kinds, tags API calls with ids and
// returns what ran. Knows neither samples nor variants. No CUDA headers, so anything may include
// it.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "harness/timing/activity.h"

namespace moegate {

/// Records of finished work, accumulated over drains.
struct CuptiBatch {
  std::vector<Activity> operations;
  std::unordered_map<uint32_t, uint64_t> tags;  // correlation id of an API call -> pushed id
  size_t dropped = 0;                           // records that CUPTI had no room for
};

/// All static: CUPTI itself is one per process.
class CuptiLog {
 public:
  /// Opens CUPTI and enables recording. Call once, before the CUDA context exists. Returns why it
  /// cannot be used, or an empty string.
  static std::string open();
  /// The same in somebody else's process, whose context exists, as often as it was closed: CUPTI
  /// keeps its clock and the sizes of its buffers.
  static std::string open_as_guest();
  /// Takes the records back that another tool has had sent to itself since.
  static std::string register_buffers();
  /// Records every runtime and driver call, not only launches: the fallback when CUPTI does not tag
  /// the launches alone.
  static void record_all_calls();
  /// Stops recording; the process then runs as if CUPTI had never been opened.
  static void close() noexcept;

  /// Moves everything recorded so far into the batch; shapes are numbered in `shapes`. The device
  /// must be idle. Throws Error(environment) when CUPTI fails.
  static void drain(CuptiBatch& batch, ShapeTable& shapes);
  static void discard();

  /// Nanoseconds on the clock of all records (CLOCK_MONOTONIC_RAW; a guest's: CUPTI's).
  static uint64_t now_ns();
};

/// API calls of this thread during its life carry the id.
class CuptiTag {
 public:
  explicit CuptiTag(uint64_t id);
  ~CuptiTag();
  CuptiTag(CuptiTag&&) = delete;
};

}  // namespace moegate
