// SPDX-License-Identifier: Apache-2.0
#include "harness/base/json_text.h"

#include <gtest/gtest.h>

#include "harness/base/refusal_fixture.h"

namespace moegate {
namespace {

std::string json_refusal(const std::string& text) {
  return refusal_of([&] { parse_json("there:3", text); });
}

TEST(JsonText, ReadsWhatIsJson) {
  EXPECT_EQ(parse_json("there", R"({"a": [1, null]})")["a"][0], 1);
  const std::string deepest = std::string(kDeepestJson, '[') + std::string(kDeepestJson, ']');
  EXPECT_EQ(json_refusal(deepest), "accepted");
}

TEST(JsonText, NamesThePlaceOfWhatIsNot) {
  for (const std::string text : {"", "{", "[1,", "{\"a\": 1e999}", "\xff\xfe", "null null"}) {
    const std::string message = json_refusal(text);
    EXPECT_EQ(message.find("there:3: is damaged, or no JSON"), 0u) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    EXPECT_LT(message.size(), 300u);
  }
}

TEST(JsonText, RefusesWhatIsTooDeepBeforeItsEnd) {
  EXPECT_NE(json_refusal(std::string(1 << 20, '[')).find("nested deeper"), std::string::npos);
}

}  // namespace
}  // namespace moegate
