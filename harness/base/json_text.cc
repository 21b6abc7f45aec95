// SPDX-License-Identifier: Apache-2.0
#include "harness/base/json_text.h"

#include "harness/base/error.h"
#include "harness/base/escape.h"

namespace moegate {

nlohmann::json parse_json(const std::string& where, std::string_view text) {
  constexpr size_t kShown = 160;  // of a message, which quotes the text
  const auto not_too_deep = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    if (depth <= kDeepestJson) return true;
    usage_error("{}: its JSON is nested deeper than {}; is it the right file?", where,
                kDeepestJson);
  };
  try {
    return nlohmann::json::parse(text, not_too_deep);
  } catch (const nlohmann::json::exception& e) {
    usage_error("{}: is damaged, or no JSON: {}", where,
                clipped(one_line(valid_utf8(e.what())), kShown));
  }
}

}  // namespace moegate
