// SPDX-License-Identifier: Apache-2.0
// The gate measured by its own means: an unchanged program against itself must not fail, a known
// slow-down must. Pure: summarises what an A/B decided.
#pragma once

#include <string>
#include <vector>

#include "harness/base/table.h"
#include "harness/night/ab.h"

namespace moegate {

/// One row of table `calibration`: the rows of an A/B that had the same slow-down built in.
struct Calibration {
  double injected = 0;  // share
  int rounds = 0;       // process pairs of every row, at least
  int judged = 0;
  int screened = 0;
  int failed = 0;  // called regressed
  int inconclusive = 0;
  double effect = 0;  // mean estimate
  double sd = 0;      // median over rows of the log ratio's deviation between process pairs
  double lambda = 0;  // median z^2 over that of the normal distribution; 1: the error is right
  double mde = 0;     // median
  int blind = 0;
};

/// One per strength of `injected` (as dealt out by canary_slot), in order.
std::vector<Calibration> calibrate(const Comparison& result, const std::vector<double>& injected);

Table calibration_table(const std::vector<Calibration>& calibrations);
/// How many rows can see which slow-down: "below 1 %", "1 to 2 %", ...
Table mde_histogram(const Comparison& result);
/// "topk_sort/… chain3: 6.1 %", of rows that cannot see `blind_at`.
std::vector<std::string> blind_cases(const Comparison& result);

void store_calibration(Store& store, int64_t head_run,
                       const std::vector<Calibration>& calibrations);

}  // namespace moegate
