// SPDX-License-Identifier: Apache-2.0
// Text from anywhere (case names, a crashed child's last words) made safe for where it is printed.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace moegate {

bool is_ascii(std::string_view text);
/// Whether a byte of a valid text starts a character.
constexpr bool starts_character(char c) {
  return (c & 0xc0) != 0x80;
}

/// Bytes that are not UTF-8 become U+FFFD.
std::string valid_utf8(const std::string& text);

/// At most `characters` of a valid text; the last is an ellipsis where some are cut.
std::string clipped(const std::string& text, size_t characters);

/// For XML 1.0, content or attribute: markup and line ends as references, what XML cannot hold
/// (control characters, invalid UTF-8) as U+FFFD.
std::string xml_escaped(const std::string& text);

/// A valid text on one line: line ends and tabs become spaces; what shows nothing but acts (control
/// characters, marks of direction) becomes U+FFFD.
std::string one_line(const std::string& text);

/// A text of several lines for a terminal or a log: line ends and tabs stay, what shows nothing but
/// acts becomes U+FFFD, and no line is a command to the machinery that reads a CI job's log.
std::string printable(const std::string& text);

/// For markdown, in a paragraph or a cell of a table, as one line that shows what it says: no HTML,
/// emphasis, code, links, images or entities, and it mentions nobody.
std::string markdown_escaped(const std::string& text);
/// For markdown, as a code span; nothing for an empty text. '|' is left to the table.
std::string markdown_code(const std::string& text);

/// For the message of a GitHub workflow command, which is one line.
std::string workflow_escaped(const std::string& text);
/// For one of its properties, which also ends at a comma or colon.
std::string workflow_property(const std::string& text);

}  // namespace moegate
