// SPDX-License-Identifier: Apache-2.0
// Inside the site: the kinds of pages, and what they have in common.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "harness/report/page.h"
#include "harness/report/site.h"
#include "harness/report/site_data.h"
#include "harness/store/query_report.h"

namespace moegate {

/// What every page is made from.
struct Site {
  Store& store;
  SiteOptions options;
  SiteData data;
  double search_s = 0;  // spent on steps in histories
};

/// Names of pages.
std::string night_page(int64_t run);
std::string operator_page(const std::string& op, int64_t run);
std::string case_page(const std::string& key, const std::string& variant);
std::string report_page(const std::string& report, int64_t run);

/// "12 nightly", "2026-11-22 03:10", "0c6e44be53fd+dirty"
std::string name_of(const SiteRun& run);
std::string minute_of(const std::string& started);
std::string day_text(std::chrono::sys_days day);
std::string commit_of(const RunInfo& run);

/// The reports that a page shows: those that reports/pages/pages.json names for it. Throws
/// Error(usage) for a file that is none.
std::vector<std::string> reports_of(const std::string& page);

bool has_report(const std::string& name);

/// A chart of reports/pages/.
std::string page_chart(const std::string& name);

/// Adds a report's table under its title, as a chart where a chart file lies beside it; nothing
/// when it has no rows. Cells under "case" lead to their row, those under "run" to their night.
void add_report(Page& page, Site& site, const std::string& report, const ReportArgs& about);

/// One line of what a run's verdict says: "FAIL ..." by counts, worst first.
Line health_of(const SiteRun& run);

Page start_page(Site& site);
/// `whole`: with the rows that passed, which older nights leave out.
Page night_page_of(Site& site, const SiteRun& run, bool whole);
Page row_page(Site& site, const SiteRow& row);

}  // namespace moegate
