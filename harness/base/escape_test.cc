// SPDX-License-Identifier: Apache-2.0
#include "harness/base/escape.h"

#include <gtest/gtest.h>

namespace moegate {
namespace {

TEST(Escape, Utf8StaysAndOtherBytesAreReplaced) {
  EXPECT_EQ(valid_utf8("5 µs … ok"), "5 µs … ok");
  EXPECT_EQ(valid_utf8("a\xff"
                       "b"),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(valid_utf8(std::string("nul\0", 4)), std::string("nul\0", 4));
}

TEST(Escape, ClipsCharactersNotBytes) {
  EXPECT_EQ(clipped("µµµ", 3), "µµµ");
  EXPECT_EQ(clipped("µµµµ", 3), "µµ…");
  EXPECT_EQ(clipped("", 3), "");
}

TEST(Escape, Xml) {
  EXPECT_EQ(xml_escaped("a<b> & \"c\"\n"), "a&lt;b&gt; &amp; &quot;c&quot;&#10;");
  EXPECT_EQ(xml_escaped("\x01|\x1b|\xEF\xBF\xBF|\xc3("),
            "\xEF\xBF\xBD|\xEF\xBF\xBD|\xEF\xBF\xBD|\xEF\xBF\xBD(");
}

TEST(Escape, Markdown) {
  EXPECT_EQ(markdown_escaped("kernel<int> `x` a\\b &lt; | µ"),
            "kernel\\<int\\> \\`x\\` a\\\\b \\&lt; | µ");
}

TEST(Escape, WorkflowCommands) {
  EXPECT_EQ(workflow_escaped("+5 %: a, b\r\nc"), "+5 %25: a, b%0D%0Ac");
  EXPECT_EQ(workflow_property("a:b,c%\n"), "a%3Ab%2Cc%25%0A");
}

}  // namespace
}  // namespace moegate
