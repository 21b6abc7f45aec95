// SPDX-License-Identifier: Apache-2.0
#include "harness/night/changes.h"

#include "harness/campaign/campaign_fixture.h"

namespace moegate::test {
namespace {

namespace fs = std::filesystem;

class ChangesTest : public CampaignTest {
 protected:
  ChangesTest() {
    for (const fs::path& home : {base_, head_}) {
      write(home / "suites/s.suite", "op = fake\n[a]\nrows = 1, 2\n");
      write(home / "baselines/c/s.tsv", "levels");
      write(home / "baselines/README.md", "text");
      write(home / "ci/waivers.ini", "# none\n");
      write(home / "harness/judge/verdict.h", "limits");
      write(home / "harness/baseline/creep.h", "limits of creep");
      write(home / "harness/judge/verdict_test.cc", "test");
    }
    options_.suites = {"s"};
  }
  static void write(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  Changes changes(const std::vector<RowName>& planned) const {
    return changes_between({base_hello_, base_}, {head_hello_, head_}, options_, planned);
  }

  const fs::path base_ = folder_ / "base", head_ = folder_ / "head";
  Hello base_hello_ = fake_hello(), head_hello_ = fake_hello();
  const std::vector<RowName> all_ = {{"fake/rows=1", "plain"},
                                     {"fake/rows=1", "fused"},
                                     {"fake/rows=2", "plain"},
                                     {"fake/rows=2", "fused"}};
};

TEST_F(ChangesTest, NothingIsToldOfKernels) {
  write(head_ / "kernels/fake.cc", "faster");
  write(head_ / "baselines/README.md", "other text");
  write(head_ / "harness/judge/verdict_test.cc", "more tests");
  EXPECT_EQ(changes(all_).told, std::vector<std::string>());
  EXPECT_TRUE(changes(all_).lacking.empty());
}

TEST_F(ChangesTest, RowsThatOnlyTheBasesSuitesHaveAreLacking) {
  write(head_ / "suites/s.suite", "op = fake\n[a]\nrows = 1\n");
  for (const std::string& suite : {std::string("s"), (head_ / "suites/s.suite").string()}) {
    options_.suites = {suite};
    const Changes found = changes({all_[0], all_[1]});
    ASSERT_EQ(found.lacking.size(), 2u);
    EXPECT_EQ(found.lacking[0].key, "fake/rows=2");
    EXPECT_EQ(found.lacking[0].suite, "s");
    ASSERT_EQ(found.told.size(), 2u);
    EXPECT_EQ(found.told[0], "2 rows of the base's suites are missing in the head's");
    EXPECT_EQ(found.told[1], "suite file suites/s.suite was edited");
  }
}

TEST_F(ChangesTest, SuitesThatEachSideStatesAreCompared) {
  write(base_ / "own.suite", "op = fake\n[a]\nrows = 1, 2\n");
  write(head_ / "own.suite", "op = fake\n[a]\nrows = 1\n");
  options_.suites = {head_ / "own.suite"};
  const Changes found =
      changes_between({base_hello_, base_, {base_ / "own.suite"}},
                      {head_hello_, base_, options_.suites}, options_, {all_[0], all_[1]});
  ASSERT_EQ(found.lacking.size(), 2u);
  EXPECT_EQ(found.lacking[0].key, "fake/rows=2");
  EXPECT_EQ(found.told,
            (std::vector<std::string>{"2 rows of the base's suites are missing in the head's",
                                      "suite file own.suite was edited"}));
}

TEST_F(ChangesTest, EveryKindIsNamed) {
  head_hello_.variants.pop_back();
  base_hello_.device.backend = head_hello_.device.backend = Backend::host;
  base_hello_.operators[0].yardstick = "plain";
  head_hello_.operators[0].yardstick = "fused";
  for (VariantDescription& v : base_hello_.variants) v.backend = Backend::host;
  for (VariantDescription& v : head_hello_.variants) v.backend = Backend::host;
  write(head_ / "baselines/c/s.tsv", "other levels");
  fs::remove(head_ / "ci/waivers.ini");
  write(head_ / "harness/judge/verdict.h", "900 %");
  write(head_ / "harness/baseline/creep.h", "90 %");
  write(head_ / "suites/t.suite", "op = fake\n[a]\nrows = 9\n");
  EXPECT_EQ(changes(all_).told,
            (std::vector<std::string>{
                "variant plain of fake was removed or renamed",
                "the yardstick of fake is 'fused', it was 'plain'",
                "suite file suites/t.suite was added", "baseline file baselines/c/s.tsv was edited",
                "ci/waivers.ini was edited", "rule of judging harness/judge/verdict.h was edited",
                "rule of judging harness/baseline/creep.h was edited"}));
}

TEST_F(ChangesTest, ASuiteThatTheBaseCannotReadIsSaid) {
  write(base_ / "suites/s.suite", "op = none\n");
  ASSERT_FALSE(changes(all_).told.empty());
  EXPECT_EQ(changes(all_).told[0].find("the base's suites cannot be read: "), 0u);
}

}  // namespace
}  // namespace moegate::test
