// SPDX-License-Identifier: Apache-2.0
// What the pages of a site share: its runs, and the level of every row in each of them, held so
// that ten thousand rows of a year fit in memory.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/judge/evidence.h"
#include "harness/store/store.h"

namespace moegate {

struct SiteRun {
  RunInfo info;
  bool ab = false;                      // a side of an A/B
  std::map<std::string, int> outcomes;  // of its verdict's rows; empty: it was not judged
  int blind = 0;
  /// Runs of one number measured in one way, on one GPU or one class of hosts: levels compare.
  int conditions = 0;
  bool judged() const { return !outcomes.empty(); }
  bool host() const { return info.device.backend == Backend::host; }
};

/// What one run says of a row: the logarithm of its level.
struct SitePoint {
  uint32_t run = 0;   // index
  uint32_t code = 0;  // number of what was launched; 0: unknown
  float mean_log = 0, sd_log = 0;
  uint16_t processes = 0;
  bool level = false;  // whether there is one
};

struct SiteRow {
  int64_t case_id = 0;
  std::string key, op, variant;
  std::vector<SitePoint> points;  // by run
  std::map<int, double> bases;    // by conditions: what the newest verdict compared with
};

struct SiteData {
  std::vector<SiteRun> runs;  // by id
  std::vector<SiteRow> rows;
};

/// The complete runs that measured and began at `since` or later. Points are of runs that are no
/// side of an A/B.
SiteData read_site(Store& store, const std::string& since);

/// Index of the newest run, judged ones first, of each class of devices: what is shown as today.
std::vector<size_t> newest_runs(const SiteData& data);

}  // namespace moegate
