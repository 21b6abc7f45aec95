// SPDX-License-Identifier: Apache-2.0
// What one process found out about one variant on one case. Plain data: measured by measure.cc,
// carried by wire.cc, stored by store.cc, summed up for judgement by evidence.cc. A field
// that is added here is added to result_fields.h, which is all that wire and store need.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/values/accuracy.h"
#include "harness/values/status.h"

namespace moegate {

/// Reasons that make a sample invalid: it is counted with its reasons, and its span is not kept.
enum SampleFlag : uint32_t {
  kBadTimestamp = 1u << 0,   // zero or reversed
  kMissingRecord = 1u << 1,  // fewer records than launches, or records dropped
  // 1u << 2, another set of kernels than the first sample's, comes of an older base of an A/B only.
  kOverlapsFlush = 1u << 3,  // started before the flush ended
  kSlowClock = 1u << 4,      // SM clock under 95 % of this case's running median
  kPreempted = 1u << 5,      // host: the scheduler took a timed thread off its core
  kForeignWork = 1u << 6,    // the GPU did work of this process that belongs to no sample
};

/// Which number of a Result is judged. Stated by what took the samples, stored, never inferred.
enum class Judged {
  none,         // nothing was timed
  span,         // span_ns
  ratio,        // `ratio`, to the operator's yardstick
  is_yardstick  // none of its own: the others' ratios are to it
};
template <>
inline constexpr std::array kNames<Judged> = {"none", "span", "ratio", "is_yardstick"};
template <>
inline constexpr const char* kNameKind<Judged> = "judged number of a result";

struct Sample {
  double span_ns = 0;  // last end minus first start, over every kernel and memory operation
  double busy_ns = 0;  // union of the intervals
  double sum_ns = 0;   // sum of the durations
  double yard_ns = 0;  // the yardstick's time next to this sample; 0 when there is none
  double cold_ns = 0;  // what the flush before it took; 0 where the timer does not see it
  double sm_mhz = 0;   // measured by the flush kernel; 0 on the host
  int kernels = 0;
  uint32_t flags = 0;
  size_t set = 0;        // which of the subject's problems
  uint64_t outputs = 0;  // hash of what the launch wrote to its outputs; of one timer only
};

/// One kernel or memory operation of a launch, in order of start.
struct KernelRow {
  std::string name;         // demangled, or "memset", "memcpy"
  std::string grid, block;  // "132x1x1"
  std::string cluster;      // empty without one
  int registers = 0;
  int64_t static_shared = 0, dynamic_shared = 0;  // bytes
  int64_t local_bytes = -1;  // of local memory of a thread: spills, arrays; -1: unknown
  double ns = 0;             // trimmed mean duration
  double gap_ns = 0;         // trimmed mean of (start - previous end); 0 for the first
};

/// One more number about a launch, for what has no field: a counter, a share of time.
struct Metric {
  std::string name;            // "core_wait"; unique per result and kernel
  std::string unit;            // "share", "bytes", "1/s"
  double value = 0;            // not finite: stored as unknown
  int ordinal = kWholeLaunch;  // of the kernel it is about, from 0
  static constexpr int kWholeLaunch = -1;
};

/// Where in a kernel's machine code warps waited, and for what: one instruction and one reason, as
/// a sampling of the program counter saw it.
struct StallRow {
  int ordinal = 0;          // of the kernel, from 0
  int64_t offset = 0;       // of the instruction, bytes from the kernel's start
  std::string instruction;  // SASS; empty: unknown
  std::string line;         // "file.cu:12"; empty: built without line information
  std::string reason;       // "long_scoreboard", as the counters' names have it
  int64_t samples = 0;
};

/// The reasons in a set of SampleFlags, for a sentence: "slow clock, preempted thread".
std::string describe_flags(uint32_t flags);

struct Result {
  std::string variant;
  Status status = Status::ok;
  std::string why;   // one sentence for every status but ok
  std::string path;  // internal path the variant took; empty when it has only one
  std::string code;  // hash of what was launched, and on a GPU of what launched it; empty: unknown
  std::vector<Accuracy> accuracy;
  std::vector<SeedError> seeds;   // one per problem set
  std::vector<Control> controls;  // what became of the negative controls; empty when not asked for
  bool deterministic = true;      // output bitwise equal over all timed launches on the same input

  std::string timer;   // "cupti", "event", "clock"; empty when nothing was timed
  double tick_ns = 0;  // the timer's resolution
  int samples = 0;     // valid ones
  int invalid = 0;
  int slow = 0;        // of these, those with a slow clock alone
  uint32_t flags = 0;  // every SampleFlag seen
  Judged judged = Judged::none;
  double span_ns = 0;                             // 10 % trimmed mean
  double median_ns = 0, low_ns = 0, high_ns = 0;  // median and its 95 % interval
  double min_ns = 0, busy_ns = 0, sum_ns = 0;     // busy and sum: trimmed means
  double mean_ns = 0;                             // plain mean of the spans; 0: unknown
  double ratio = 0;                               // host: median of span over yardstick, paired
  double ratio_low = 0, ratio_high = 0;           // its 95 % interval
  double mean_ratio = 0;                          // mean span over the yardstick's; 0: unknown
  std::string yardstick;       // variant that the ratio is to; empty: there is none, or unknown
  std::string yardstick_code;  // like `code`, of the yardstick
  double sm_mhz = 0;           // median
  bool impossible = false;     // span below the roofline floor of this device
  bool suspect_warm = false;   // cold about equal to warm though the footprint fits in the cache
  std::vector<KernelRow> kernels;
  std::vector<Metric> metrics;
  std::vector<StallRow> stalls;  // Task::stalls; the hottest instructions
  std::vector<float> spans_ns;   // valid samples in order of collection
  double wall_s = 0;             // what this variant cost in all

  bool measured() const { return status == Status::ok || status == Status::noisy; }
  /// A host that had no processor of its own in one launch: nothing was timed, and that says
  /// nothing about the variant. The worker's summary.h decides about all other noisy results.
  bool never_quiet() const {
    return status == Status::bad_timer && samples == 0 && flags == kPreempted;
  }
  /// `status`, but noisy for one that was never quiet.
  Status judged_status() const { return never_quiet() ? Status::noisy : status; }
};

/// Which number of a timed result cannot be, in one clause; empty when all can. The store holds no
/// other results.
std::string impossible_number(const Result& result);

}  // namespace moegate
