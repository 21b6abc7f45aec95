// SPDX-License-Identifier: Apache-2.0
// A history where nothing can be drawn.
#pragma once

#include <string>
#include <vector>

#include "harness/report/page.h"

namespace moegate {

/// "▁▁▂▇ 9.9 … 10.8 us, newest at the right", of the logarithms of levels. Without any: "nothing".
std::string level_line(const std::vector<double>& logs, const std::string& unit);
std::string level_line(const LevelChart& chart);

}  // namespace moegate
