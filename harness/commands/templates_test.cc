// SPDX-License-Identifier: Apache-2.0
#include "harness/commands/templates.h"

#include <gtest/gtest.h>

#include <fstream>

#include "harness/base/error.h"
#include "harness/base/files.h"
#include "harness/base/test_fixture.h"

namespace moegate::test {
namespace {

namespace fs = std::filesystem;

TEST(Template, WordsAreFilledInAndOtherBracesStay) {
  const Words words = {{"name", "n"}, {"op_help", "h"}};
  EXPECT_EQ(filled_in("{{name}} of {{op_help}}: {{name}}{{name}}", words), "n of h: nn");
  const std::string code = "return {{compare(a)}, {{}}, {{\"name\"}}, {name}, {{1}}};";
  EXPECT_EQ(filled_in(code, words), code);
  EXPECT_EQ(filled_in("double{{{name}}}{{", words), "double{n}{{");
}

TEST(Template, EveryLineOfAValueStandsBehindWhatTheWordStandsBehind) {
  const Words words = {{"list", "a\nb"}};
  EXPECT_EQ(filled_in("x\n//   {{list}}.\ny\n", words), "x\n//   a\n//   b.\ny\n");
  EXPECT_EQ(filled_in("{{list}}\n", words), "a\nb\n");
}

TEST(Template, AnUnknownWordIsAFaultOfTheTemplate) {
  EXPECT_THROW(filled_in("{{nmae}}", {{"name", "n"}}), Error);
}

class NewFiles : public testing::Test {
 protected:
  fs::path scratch(const std::string& name) const { return folder_ / name; }

 private:
  const ScratchFolder folder_;
};

TEST_F(NewFiles, AreWrittenWithTheirFolders) {
  write_new_files({{scratch("a/b/one"), "1\n"}, {scratch("two"), "2\n"}});
  EXPECT_EQ(read_file(scratch("a/b/one")), "1\n");
  EXPECT_EQ(read_file(scratch("two")), "2\n");
}

TEST_F(NewFiles, NoneIsWrittenWhereOneIsThere) {
  std::ofstream(scratch("two")) << "mine";
  EXPECT_THROW(write_new_files({{scratch("one"), "1"}, {scratch("two"), "2"}}), Error);
  EXPECT_FALSE(fs::exists(scratch("one")));
  EXPECT_EQ(read_file(scratch("two")), "mine");
  // A link that leads nowhere is something, too: what is written through it would be elsewhere.
  fs::create_symlink(scratch("elsewhere"), scratch("link"));
  EXPECT_THROW(write_new_files({{scratch("link"), "1"}}), Error);
  EXPECT_FALSE(fs::exists(scratch("elsewhere")));
}

TEST_F(NewFiles, NoneIsLeftWhereOneCannotBeWritten) {
  const std::string too_long(300, 'x');
  EXPECT_THROW(write_new_files({{scratch("one"), "1"}, {scratch(too_long), "2"}}), Error);
  EXPECT_FALSE(fs::exists(scratch("one")));
  std::ofstream(scratch("file")) << "";
  EXPECT_THROW(write_new_files({{scratch("file/one"), "1"}}), Error);
}

}  // namespace
}  // namespace moegate::test
