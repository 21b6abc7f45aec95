// SPDX-License-Identifier: Apache-2.0
// A page as text for a terminal.
#pragma once

#include <string>
#include <vector>

#include "harness/base/terminal.h"
#include "harness/report/page.h"

namespace moegate {

/// All of the page, folded sections too: a terminal scrolls. No line is longer than the screen is
/// wide but those of commands, which are there to be pasted.
std::string to_text(const Page& page, const Screen& screen);

// A history where nothing can be drawn.

/// "▁▁▂▇ 9.9 … 10.8 us, newest at the right", of the logarithms of levels. Without any: "nothing".
std::string level_line(const std::vector<double>& logs, const std::string& unit);
std::string level_line(const LevelChart& chart);

}  // namespace moegate
