// SPDX-License-Identifier: Apache-2.0
#include "harness/base/escape.h"

#include <re2/re2.h>

#include <algorithm>
#include <boost/algorithm/string/replace.hpp>
#include <cctype>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace moegate {
namespace {

constexpr const char* kReplacement = "\xEF\xBF\xBD";     // U+FFFD
constexpr const char* kZeroWidthSpace = "\xE2\x80\x8B";  // U+200B

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

/// Line feed, carriage return, U+0085, U+2028, U+2029.
bool ends_line(const std::string& character) {
  return character == "\n" || character == "\r" || character == "\xC2\x85" ||
         character == "\xE2\x80\xA8" || character == "\xE2\x80\xA9";
}

/// Control characters, and the marks that turn the direction of what follows.
bool shows_nothing(const std::string& character) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 1) return byte(0) < 0x20 || byte(0) == 0x7f;
  if (character.size() == 2) return byte(0) == 0xc2 && byte(1) < 0xa0;
  return (character >= "\xE2\x80\xAA" && character <= "\xE2\x80\xAE") ||  // U+202A to U+202E
         (character >= "\xE2\x81\xA6" && character <= "\xE2\x81\xA9");    // U+2066 to U+2069
}

/// Whether markdown could read the character as more than itself. What cannot be stays bare, so
/// that names stay readable on a terminal: the '_' of topk_sort, the brackets of weights[3].
bool is_markup(char before, char c, char after, bool last) {
  switch (c) {
    case '_':
      return !is_word(before) || !is_word(after);
    case '~':
      return before != ' ' || after != ' ';
    case ']':  // of a link, an image or a definition, which may follow
      return last || after == '(' || after == '[' || after == ':';
    default:
      return std::strchr("\\`*<>&|", c) != nullptr;
  }
}

/// The characters of a valid text; a carriage return with a line feed is the line feed.
std::vector<std::string> characters_of(const std::string& valid) {
  std::vector<std::string> characters;
  for (size_t i = 0; i < valid.size();) {
    const size_t start = i++;
    while (i < valid.size() && !starts_character(valid[i])) ++i;
    if (valid[start] == '\r' && valid[i] == '\n') continue;
    characters.push_back(valid.substr(start, i - start));
  }
  return characters;
}

}  // namespace

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

std::string valid_utf8(const std::string& text) {
  if (is_ascii(text)) return text;  // as nearly all are, by the hundred thousand
  using Json = nlohmann::json;
  return Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace))
      .get<std::string>();
}

std::string clipped(const std::string& text, size_t characters) {
  size_t seen = 0, last = 0;  // where the character of the ellipsis starts
  for (size_t i = 0; i < text.size(); ++i) {
    if (!starts_character(text[i])) continue;
    if (++seen == characters) last = i;
    if (seen > characters) return text.substr(0, last) + "…";
  }
  return text;
}

std::string xml_escaped(const std::string& text) {
  constexpr std::pair<const char*, const char*> kReferences[] = {
      {"&", "&amp;"}, {"<", "&lt;"},   {">", "&gt;"},  {"\"", "&quot;"},
      {"\t", "&#9;"}, {"\n", "&#10;"}, {"\r", "&#13;"}};  // an attribute would make blanks of these
  static const RE2 no_character(R"([\x00-\x1f\x{FFFE}\x{FFFF}])");
  std::string out = valid_utf8(text);
  for (const auto& [markup, reference] : kReferences) boost::replace_all(out, markup, reference);
  RE2::GlobalReplace(&out, no_character, kReplacement);
  return out;
}

std::string one_line(const std::string& text) {
  if (std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; })) return text;
  std::string out;
  for (const std::string& character : characters_of(valid_utf8(text))) {
    if (ends_line(character) || character == "\t") {
      out += ' ';
    } else {
      out += shows_nothing(character) ? kReplacement : character;
    }
  }
  return out;
}

std::string printable(const std::string& text) {
  std::string out;
  bool blank = true;  // so far in this line
  for (const std::string& character : characters_of(valid_utf8(text))) {
    const bool plain = character == "\n" || character == "\t";
    // A runner trims a line and takes "::name" at its start for a command, "##[" anywhere.
    const bool command = (blank && character == ":") || (character == "[" && out.ends_with("##"));
    if (command) out += kZeroWidthSpace;
    out += plain || !shows_nothing(character) ? character : kReplacement;
    blank = character == "\n" || (blank && (character == " " || character == "\t"));
  }
  return out;
}

std::string markdown_escaped(const std::string& text) {
  std::string line = one_line(text);
  const bool plain = line.find_first_of("_~]\\`*<>&|@") == std::string::npos;
  if (plain && !line.starts_with("::")) return line;
  std::string out;
  out.reserve(line.size() + 2);
  if (line.starts_with("::"))
    out += '\\';  // else it may begin a line, and be a command to a CI runner
  for (size_t i = 0; i < line.size(); ++i) {
    const char before = i > 0 ? line[i - 1] : ' ', after = i + 1 < line.size() ? line[i + 1] : ' ';
    if (is_markup(before, line[i], after, i + 1 == line.size())) out += '\\';
    out += line[i];
    // A forge looks for mentions after it has resolved escapes and references; only another
    // character helps.
    if (line[i] == '@' && !is_word(before) && is_word(after)) out += kZeroWidthSpace;
  }
  return out;
}

std::string markdown_code(const std::string& text) {
  const std::string line = one_line(text);
  if (line.empty()) return "";
  size_t longest = 0, run = 0;
  for (const char c : line) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(longest + 1, '`'), space = longest > 0 ? " " : "";
  return fence + space + line + space + fence;
}

std::string workflow_escaped(const std::string& text) {
  std::string out = valid_utf8(text);
  boost::replace_all(out, "%", "%25");
  boost::replace_all(out, "\r", "%0D");
  boost::replace_all(out, "\n", "%0A");
  return out;
}

std::string workflow_property(const std::string& text) {
  std::string out = workflow_escaped(text);
  boost::replace_all(out, ":", "%3A");
  boost::replace_all(out, ",", "%2C");
  return out;
}

}  // namespace moegate
