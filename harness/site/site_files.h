// SPDX-License-Identifier: Apache-2.0
// Pages as files that a browser shows without a server and without a network.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/site/site.h"

namespace moegate {

/// Writes a site into a folder: index.html with the first page, data/*.js with the others, and
/// vega.js. Pages of an earlier call stay until the index names the new ones; other files of data/ stay. Where Vega is not
/// installed, the pages have tables only and say why; so does standard error. Throws Error(usage) for
/// what cannot be written.
void write_site(const std::filesystem::path& folder, const std::vector<SitePage>& pages);

/// One page with everything that it needs, charts included.
std::string single_html(const Page& page, const std::string& title);

}  // namespace moegate
