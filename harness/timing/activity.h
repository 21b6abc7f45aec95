// SPDX-License-Identifier: Apache-2.0
// From activity records to samples: intervals, sets of kernels, flags, per-kernel rows. Pure
// functions and plain state; knows neither CUPTI nor CUDA, so it is tested without a GPU.
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/values/result.h"

namespace moegate {

/// What an operation is, apart from when it ran.
struct OperationShape {
  std::string name;  // mangled for kernels; "memset", "memcpy"
  int grid[3] = {0, 0, 0}, block[3] = {0, 0, 0}, cluster[3] = {0, 0, 0};  // 0: has none
  int registers = 0;
  int64_t static_shared = 0, dynamic_shared = 0;
  int64_t local_bytes = 0;  // of a thread
  auto operator<=>(const OperationShape&) const = default;
};

/// Numbers shapes in order of first sight.
class ShapeTable {
 public:
  int id_of(const OperationShape& shape);
  const OperationShape& at(int id) const { return *shapes_.at(static_cast<size_t>(id)); }

 private:
  std::map<OperationShape, int> ids_;
  std::vector<const OperationShape*> shapes_;  // keys of ids_, whose nodes never move
};

/// One kernel or memory operation as it ran.
struct Activity {
  uint64_t start_ns = 0, end_ns = 0;
  uint32_t correlation = 0;  // of the API call that launched it
  int shape = 0;             // id in a ShapeTable
  uint64_t detail = 0;  // hash of what the shape leaves out: bytes of a copy, a launch's attributes
};

/// Hash for Activity::detail.
uint64_t detail_of(std::initializer_list<uint64_t> values);

/// Timestamps outside this are corrupt, whatever else they say.
struct TimeWindow {
  uint64_t low_ns = 0;
  uint64_t high_ns = UINT64_MAX;
};

/// What was recorded for one sample.
struct Recorded {
  std::vector<Activity> flush;   // operations that made it cold
  std::vector<Activity> launch;  // operations of the measured launch, in any order
};

/// Span, busy, sum and number of operations, with the flags one sample shows by itself: bad
/// timestamps, no record at all, a start before the flush ended. Sorts `launch` by start.
Sample summarise(Recorded& recorded, const TimeWindow& window);

/// The set of operations: sorted shape ids, repeats kept.
std::vector<int> fingerprint(std::span<const Activity> launch);

/// Flags samples with fewer operations than the reference, which is the most frequent set of the
/// first batch (its first sample when all occur once): records are missing. As many others or more
/// are what the launch did, and count. One reference per problem set: other data may legitimately
/// mean another grid.
class KernelSets {
 public:
  /// `samples[i]` belongs to `recorded[i]`.
  void flag(std::span<Sample> samples, std::span<const Recorded> recorded);

 private:
  std::map<size_t, size_t> reference_;  // operations of it, by problem set
};

/// Flags samples in whose time, from the start of the flush to the end of the launch, one of
/// `foreign` ran: operations that belong to no sample. `samples[i]` belongs to `recorded[i]`.
void flag_foreign_work(std::span<Sample> samples, std::span<const Recorded> recorded,
                       std::span<const Activity> foreign);

/// Flags samples whose SM clock is under 95 % of the running median (of the last 256 samples, so
/// that a clock that settles elsewhere is followed). A clock of 0 is unknown and never flagged.
class ClockWatch {
 public:
  void flag(std::span<Sample> samples);

 private:
  std::deque<double> recent_;
};

/// Collects durations and gaps of every operation over the valid samples.
class OperationLog {
 public:
  /// `launch` sorted by start.
  void add(std::span<const Activity> launch);
  /// Rows in order of their mean start. Kernel names are demangled.
  std::vector<KernelRow> rows(const ShapeTable& shapes) const;

 private:
  struct Series {
    std::vector<double> ns, gap_ns;
    double offset_ns = 0;  // sum of starts after the first start
  };
  std::map<std::pair<int, int>, Series> series_;  // (shape, how many of it came before)
};

/// Remembers what a launch on each problem set runs, as the identity of its code.
class LaunchLog {
 public:
  /// Hash of a kernel's machine code by its mangled name; nothing when unknown.
  using CodeOf = std::function<std::optional<uint64_t>(const std::string&)>;

  /// Keeps the first valid sample of a problem set.
  void add(size_t set, std::span<const Activity> launch);
  /// Hash, 16 hex digits, of the operations in order of launch (inside a graph: of start): machine
  /// code, geometry and details, over problem sets 0 to sets - 1. Names do not enter. Empty when a
  /// set was not seen or the code of a kernel is unknown. What no record shows (values of
  /// arguments, programmatic dependent launch) is CudaSequence::given()'s.
  std::string code(size_t sets, const ShapeTable& shapes, const CodeOf& code_of) const;
  /// Of the launch that has the most; 0 before the first.
  size_t most_operations() const;

 private:
  std::map<size_t, std::vector<Activity>> launches_;  // by problem set
};

/// Distance between neighbouring values of a quantised quantity: the smallest step between distinct
/// durations, where durations within 4 ns of each other are one (CUPTI's clock conversion rounds);
/// 0 when the durations do not tell.
double measured_tick(std::span<const double> durations_ns);

}  // namespace moegate
