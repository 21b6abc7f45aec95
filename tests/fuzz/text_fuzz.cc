// SPDX-License-Identifier: Apache-2.0
// A pattern in the first line, and a text that goes where texts are shown.
#include "harness/base/escape.h"
#include "harness/base/text.h"
#include "tests/fuzz/fuzz.h"

namespace moegate::fuzz {
namespace {

/// One line of valid text in which nothing acts.
void require_line(const std::string& text, const char* of) {
  const auto what = [&](const char* why) { return std::string(of) + why; };
  require(valid_utf8(text) == text, what(": no UTF-8"));
  require(one_line(text) == text, what(": not one line, or a control character"));
}

}  // namespace

void text(std::string_view bytes) {
  const size_t end = std::min(bytes.find('\n'), bytes.size());
  const std::string pattern(bytes.substr(0, end)),
      raw(bytes.substr(std::min(end + 1, bytes.size())));
  accepted({Exit::usage}, [&] {
    const Pattern compiled = compile_pattern("--filter", pattern);
    require(!compiled.matches(raw) || compiled.found_in(raw), "matches, but is not found");
  });
  const std::string valid = valid_utf8(raw);
  require(valid_utf8(valid) == valid, "valid_utf8: no UTF-8");
  accepted({Exit::usage}, [&] {
    const Pattern exact = compile_pattern("exactly", exactly(valid));
    require(exact.matches(valid), "exactly() does not match its text");
    require(!exact.matches(valid + "x") && !exact.matches("x" + valid), "exactly() matches more");
  });
  require_line(one_line(raw), "one_line");
  require_line(markdown_escaped(raw), "markdown_escaped");
  require_line(markdown_code(raw), "markdown_code");
  require_line(workflow_escaped(one_line(raw)), "workflow_escaped");
  require(workflow_escaped(raw).find_first_of("\r\n") == std::string::npos, "workflow: lines");
  require(workflow_property(raw).find_first_of(":,\r\n") == std::string::npos, "property: ends");
  require(xml_escaped(raw).find_first_of("<>\"\r\n\t") == std::string::npos, "xml: markup");
  const std::string shown = "\n" + printable(raw);
  require(shown.find("\n::") == std::string::npos, "printable: a command");
  require(shown.find('\x1b') == std::string::npos, "printable: an escape code");
  require(printable(shown) == shown, "printable: twice is not once");
  for (const std::string& part : split_list(raw)) require(trimmed(part) == part, "split_list");
}

}  // namespace moegate::fuzz
