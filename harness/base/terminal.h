// SPDX-License-Identifier: Apache-2.0
// This file says how wide a terminal is and whether it shows colours, makes text fit into it, and
// draws a series of numbers in one line.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace moegate {

/// What text is laid out for.
struct Screen {
  size_t width = 80;  // characters in a line
  bool colour = false;
};

/// Of a stream: its width is COLUMNS', else the terminal's, else 80, and 160 of what is no
/// terminal; see allows_colour().
Screen screen_of(int fd);
bool is_terminal(int fd);

/// A width from the variable COLUMNS (nullptr: not set) and from the terminal (0: not known). At
/// least 20, so that there is something to lay out.
size_t line_width(const char* columns, size_t terminal);
/// NO_COLOR that is not empty forbids colours, CLICOLOR_FORCE that is neither empty nor 0 wants
/// them anywhere; else only a terminal has them, unless TERM is dumb. nullptr: not set.
bool allows_colour(const char* no_color, const char* force, const char* term, bool terminal);

/// Characters, not bytes: µ and … must not shift a column.
size_t display_width(std::string_view utf8);

/// At most `characters` of a valid text, which is cut in its middle: both ends of a case's name
/// tell it from its neighbours.
std::string shortened(const std::string& text, size_t characters);

/// Lines of at most `width` characters, broken at spaces, and inside a word that is longer than a
/// line, there behind a comma where it has one. No line where there is no word.
std::vector<std::string> wrapped(std::string_view text, size_t width);

/// A character for each value, by where it lies between the least and the greatest. Where these are
/// less than `least_span` apart, the scale is that long all the same: noise is not drawn as
/// mountains. A value that is not finite is a blank.
std::string sparkline(const std::vector<double>& values, double least_span);

}  // namespace moegate
