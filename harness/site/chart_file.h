// SPDX-License-Identifier: Apache-2.0
// Charts are data: a Vega specification beside the report whose rows it draws. Adding one needs no
// rebuild.
#pragma once

#include <filesystem>
#include <string>

#include "harness/base/table.h"

namespace moegate {

/// Where a report's chart is: NAME.vg.json beside NAME.sql.
std::filesystem::path chart_of(const std::filesystem::path& sql);
bool has_chart(const std::filesystem::path& sql);

/// The text of a chart: a Vega specification, whose data set "table" gets the rows. Throws
/// Error(usage) naming the file for what is no JSON object.
std::string read_chart(const std::filesystem::path& path);

/// Vega with what it needs, as one script: Debian's libjs-vega, or the copy in an installed folder.
/// Throws Error(environment) naming the package.
std::string vega_script();

/// Draws a chart of a table with node. Throws Error(environment) without node or Vega, Error(usage)
/// naming the chart when it cannot be drawn.
std::string chart_svg(const std::filesystem::path& chart, const std::string& title,
                      const Table& table);

}  // namespace moegate
