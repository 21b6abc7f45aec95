// SPDX-License-Identifier: Apache-2.0
// Pages as JSON, for what draws them in a browser (reports/pages/unpack.js, blocks.js).
#pragma once

#include <string>

#include "harness/report/page.h"
#include "harness/site/table_json.h"

namespace moegate {

/// What a chart is called in a page: its file without folder and ".vg.json".
std::string chart_name(const std::string& file);

/// The pages of one file.
class PagesJson {
 public:
  /// Adds {"title": ..., "blocks": [...]} under a name, every section in its order. A block is an
  /// object with one of h (heading), p (lines of a paragraph), l (items), t (table), k (commands),
  /// c (chart), y (levels).
  void add(const std::string& name, const Page& page, const std::string& title);
  /// {"shared": [...], "pages": {...}}
  std::string json() const;

 private:
  SharedArrays shared_;
  std::string pages_;
};

}  // namespace moegate
