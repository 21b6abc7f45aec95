// SPDX-License-Identifier: Apache-2.0
// A page as JSON, for what draws it in a browser (reports/pages/blocks.js).
#pragma once

#include <string>

#include "harness/base/table.h"
#include "harness/report/page.h"

namespace moegate {

/// A text as pages show it: one line of valid UTF-8, without characters that show nothing but act.
std::string shown_text(const std::string& text);

/// That as a JSON string of ASCII without '<', '>' and '&': it can stand in a script and in HTML.
std::string json_string(const std::string& text);

/// {"columns": [...], "rows": [[...]]}. A cell is a number, a text, or an object where it has more:
/// t its text, n whether it is a number, b whether it is bold, m its mark, l the page it leads to.
std::string json_table(const Table& table);

/// What a chart is called in a page: its file without folder and ".vg.json".
std::string chart_name(const Chart& chart);

/// {"title": ..., "blocks": [...]}, every section in its order. A block is an object with one of
/// h (heading), p (lines of a paragraph), l (items), t (table), k (commands), c (chart).
std::string to_json(const Page& page, const std::string& title);

}  // namespace moegate
