// SPDX-License-Identifier: Apache-2.0
// A series of numbers as one line of text: "▁▁▂▇▅".
#pragma once

#include <string>
#include <vector>

namespace moegate {

/// A character for each value, by where it lies between the least and the greatest. Where these are
/// less than `least_span` apart, the scale is that long all the same: noise is not drawn as
/// mountains. A value that is not finite is a blank.
std::string sparkline(const std::vector<double>& values, double least_span);

}  // namespace moegate
