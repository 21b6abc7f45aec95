// SPDX-License-Identifier: Apache-2.0
// A store as pages to look at: which there are, and what each says. site_files.h writes them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "harness/report/page.h"
#include "harness/store/store.h"

namespace moegate {

struct SiteOptions {
  std::string db;                    // as commands to repeat name it
  std::string since;                 // UTC, ISO 8601: runs that began later; empty: all
  std::vector<std::string> reports;  // further reports, as find_report() takes them
  std::string waivers;               // the file of waivers; empty: there is none
  std::function<std::string(const RunInfo&)>
      repeat;  // how to measure a run again; absent: nobody says
};

/// The UTC date that many days ago, for SiteOptions::since.
std::string days_ago(int days);

/// A page with its name, which is what links lead to: "start", "night=12",
/// "operator=topk_sort&run=12", "case=KEY&variant=V", "report=speedup&run=12", "pull-requests";
/// "everything" and "levels=12" are what reports/pages/find.js looks up.
struct SitePage {
  std::string id, title;
  std::function<Page()> make;
};

bool is_row_page(const std::string& id);

/// Spreads pages over files. The rows of a case have the same number.
uint32_t file_hash(const std::string& id);

/// Every page of the store's complete runs: the start first, rows last and by file_hash(). They
/// read the store when they are made, and may not outlive it; rows are made fastest in their order.
/// Throws Error(coverage) when no run is complete.
std::vector<SitePage> site_pages(Store& store, const SiteOptions& options);

}  // namespace moegate
