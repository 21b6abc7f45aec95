// SPDX-License-Identifier: Apache-2.0
// Inside the site: the kinds of pages, and what they have in common.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/report/page.h"
#include "harness/site/site.h"
#include "harness/site/site_data.h"
#include "harness/store/query_report.h"

namespace moegate {

/// A report as pages show it.
struct ShownReport {
  std::filesystem::path sql;
  std::string title;
  bool chart = false;  // whether one lies beside it
};

/// What every page is made from.
struct Site {
  Store& store;
  SiteOptions options;
  SiteData data;
  StepSearch steps = {};
  RunPairs pairs = {};
  std::shared_ptr<const std::vector<LevelChart::Run>> run_names = {};  // as data.runs
  std::vector<std::pair<ShownReport, RowReport>> row_reports = {};
  std::vector<int64_t> first_results = {};  // of the rows' newest runs
};

std::filesystem::path pages_folder();  // reports/pages/ of home()

std::string night_page(int64_t run);
std::string operator_page(const std::string& op, int64_t run);
std::string case_page(const std::string& key, const std::string& variant);
/// Those of a table's cells under `case` (beside `variant`) and under `run`.
void add_links(Table& table);
std::string report_page(const std::string& report, int64_t run);

/// "12 nightly", "2026-11-22 03:10"
std::string name_of(const SiteRun& run);
std::string minute_of(const std::string& started);

/// As reports/pages/pages.json names them. Throws Error(usage) for a file that is none.
std::vector<std::string> reports_of(const std::string& page);

/// A chart of reports/pages/.
std::string page_chart(const std::string& name);

/// A report of reports/pages/ or of reports/, or what find_report() takes.
ShownReport shown_report(const std::string& name);

/// Adds a report's table under its title, as a chart where a chart file lies beside it; nothing
/// when it has no rows. Cells under "case" lead to their row, those under "run" to their night.
void add_table(Page& page, const ShownReport& report, Table table);
void add_report(Page& page, Site& site, const std::string& report, const ReportArgs& about);

/// One line of what a run's verdict says: "FAIL ..." by counts, worst first.
Line health_of(const SiteRun& run);

/// What changed in the newest run of each class of devices, by cause.
void add_changes(Page& page, Site& site);
void add_lookups(const std::shared_ptr<Site>& site, std::vector<SitePage>& pages);
/// The comparison with the run before; empty where there is none.
std::string compare_page(const SiteData& data, const SiteRun& run);

}  // namespace moegate
