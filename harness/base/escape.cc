// SPDX-License-Identifier: Apache-2.0
#include "harness/base/escape.h"

#include <nlohmann/json.hpp>

namespace moegate {
namespace {

constexpr const char* kReplacement = "\xEF\xBF\xBD";  // U+FFFD

bool starts_character(char c) {
  return (c & 0xc0) != 0x80;
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

}  // namespace

std::string valid_utf8(const std::string& text) {
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
  std::string out;
  for (const char c : valid_utf8(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\t':
      case '\n':
      case '\r':  // an attribute would turn them into spaces
        out += "&#" + std::to_string(c) + ";";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += kReplacement;
        } else {
          out += c;
        }
    }
  }
  for (const char* no_character : {"\xEF\xBF\xBE", "\xEF\xBF\xBF"})
    replace_all(out, no_character, kReplacement);
  return out;
}

std::string markdown_escaped(const std::string& text) {
  std::string out;
  for (const char c : valid_utf8(text)) {
    if (std::string("\\`<>&").find(c) != std::string::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string workflow_escaped(const std::string& text) {
  std::string out = valid_utf8(text);
  replace_all(out, "%", "%25");
  replace_all(out, "\r", "%0D");
  replace_all(out, "\n", "%0A");
  return out;
}

std::string workflow_property(const std::string& text) {
  std::string out = workflow_escaped(text);
  replace_all(out, ":", "%3A");
  replace_all(out, ",", "%2C");
  return out;
}

}  // namespace moegate
