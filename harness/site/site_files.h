// SPDX-License-Identifier: Apache-2.0
// This file writes pages as files that a browser opens: a folder, a verdict as one file, and the
// chart beside a report.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/base/table.h"
#include "harness/report/gate_report.h"
#include "harness/site/site.h"

namespace moegate {

// Charts are data: a Vega specification beside the report whose rows it draws. Adding one needs no
// rebuild.

/// Where a report's chart is: NAME.vg.json beside NAME.sql.
std::filesystem::path chart_of(const std::filesystem::path& sql);
bool has_chart(const std::filesystem::path& sql);

/// Throws Error(environment) without node or Vega, Error(usage) for a chart that cannot be drawn.
std::string chart_svg(const std::filesystem::path& chart, const std::string& title,
                      const Table& table);

/// Writes a site into a folder: index.html with the first page, data/*.js with the others, and
/// vega.js. Pages of an earlier call stay until the index names the new ones; other files of data/
/// stay. Where Vega is not installed, the pages have tables only and say why; so does standard
/// error. `repository`: its address on the web, for links to commits; empty: unknown. Throws
/// Error(usage) for what cannot be written.
void write_site(const std::filesystem::path& folder, const std::vector<SitePage>& pages,
                const std::string& repository = "");

// A verdict as one file for a browser: the page of gate_report.h, with charts and every row.

/// gate_page(), then sorted changes with bounds, levels before against now, and all rows.
std::string verdict_html(const GateReport& report);

}  // namespace moegate
