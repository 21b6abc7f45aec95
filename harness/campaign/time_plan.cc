// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/time_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/notes.h"

namespace moegate {

std::string time_text(const TimePlan& plan) {
  // Verifying, building the inputs and starting the process take about as long as sampling may, and a quarter of
  // a second where that is next to nothing: smoke takes 0.2 to 0.4 s a result on two cores with 20 ms to sample.
  const double verify_s = std::max(plan.budget_s, 0.25);
  const bool known = plan.seconds_each > 0;
  const double each = known ? plan.seconds_each : plan.budget_s + verify_s;
  const std::string total =
      duration_text(each * static_cast<double>(plan.results) / static_cast<double>(plan.devices));
  const std::string why =
      known ? fmt::format("about {} ({:.2g} s each, as in an earlier run here)", total, each)
            : fmt::format("likely {} (sampling {:g} s each at most, and about {:g} s to verify)",
                          total, plan.budget_s, verify_s);
  return fmt::format(
      "{} results to measure ({} rows x {} rounds): {}; a row that hangs is given "
      "up after {:g} s",
      plan.results, plan.rows, plan.rounds, why, plan.case_timeout_s);
}

}  // namespace moegate
