// SPDX-License-Identifier: Apache-2.0
// What one process found out about one variant on one case. Plain data: measured by measure.cc,
// carried by wire.cc, stored by store.cc, judged by gate.cc. A field that is added here is added to
// result_fields.h, which is all that wire and store need.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "harness/values/accuracy.h"
#include "harness/values/sample.h"

namespace moegate {

enum class Status { ok, unsupported, wrong, crashed, timeout, bad_timer, noisy };
const char* name_of(Status s);
void parse_name(const std::string& name, Status& s);  // throws std::invalid_argument

/// A row is as bad as its worst process.
inline constexpr std::array kWorstFirst = {Status::wrong,     Status::crashed,     Status::timeout,
                                           Status::bad_timer, Status::unsupported, Status::noisy,
                                           Status::ok};
bool is_worse(Status a, Status b);

/// What a result has to be: of an honest variant `ok`, of a saboteur what its author says.
struct ExpectedResult {
  Status status = Status::ok;
  std::string why;  // part of the reason
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
  /// A host that had no processor of its own in one launch: nothing was timed, and that says nothing
  /// about the variant.
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
