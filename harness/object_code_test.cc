// SPDX-License-Identifier: Apache-2.0
// Which objects a host variant's hash covers, and the table that the build made.
#include "harness/object_code.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <vector>

namespace moegate {
namespace {

using Objects = std::vector<ObjectCode>;

const Objects kObjects = {{"kernels/a/one.cc", "1111"},
                          {"kernels/a/helper.cc", "2222"},
                          {"kernels/a/detail/inner.cc", "3333"},
                          {"kernels/ab/other.cc", "4444"},
                          {"ext/mine.cc", "5555"}};

std::string code(const Objects& objects, const std::vector<std::string>& files) {
  return code_of_files(objects, files);
}

TEST(ObjectCode, CoversTheFoldersOfTheFilesAndWhatIsBelowThem) {
  const std::string before = code(kObjects, {"kernels/a/one.cc"});
  ASSERT_EQ(before.size(), 16u);
  const std::vector<bool> counts = {true, true, true, false, false};
  for (size_t i = 0; i < kObjects.size(); ++i) {
    Objects changed = kObjects;
    changed[i].hash = "6666";
    EXPECT_EQ(code(changed, {"kernels/a/one.cc"}) != before, counts[i]) << kObjects[i].file;
  }
  EXPECT_EQ(code(kObjects, {"kernels/a/helper.cc"}), before) << "the same folder";
  EXPECT_NE(code(kObjects, {"kernels/a/one.cc", "ext/mine.cc"}), before);
}

TEST(ObjectCode, FileNamesAndTheirOrderDoNotEnter) {
  const Objects renamed = {{"kernels/z/helper.cc", "2222"},
                           {"kernels/z/uno.cc", "1111"},
                           {"kernels/z/inner.cc", "3333"}};
  EXPECT_EQ(code(renamed, {"kernels/z/uno.cc"}), code(kObjects, {"kernels/a/one.cc"}));
}

TEST(ObjectCode, AFileWithoutObjectIsUnknown) {
  EXPECT_EQ(code(kObjects, {"kernels/a/device.cu"}), "");
  EXPECT_EQ(code(kObjects, {"kernels/a/one.cc", "kernels/a/device.cu"}), "");
  EXPECT_EQ(code(kObjects, {""}), "");
  EXPECT_EQ(code({}, {"kernels/a/one.cc"}), "");
}

TEST(ObjectCode, TheBuildKnowsEveryHostVariant) {
  int variants = 0;
  for (const Variant& v : all_variants()) {
    if (v.backend != Backend::host) continue;
    ++variants;
    EXPECT_EQ(host_code(v).size(), 16u) << v.name << " in " << v.file;
  }
  EXPECT_GT(variants, 0);
}

TEST(ObjectCode, FilesOfVariantsAreTheirOwnAndRelative) {
  for (const Variant& v : all_variants()) {
    if (v.op != "topk_sort" || v.backend != Backend::host) continue;
    EXPECT_EQ(v.file, "kernels/topk_sort/host_" + v.name + ".cc");
  }
  EXPECT_EQ(find_op("topk_sort").file, "kernels/topk_sort/topk_sort.cc");
}

}  // namespace
}  // namespace moegate
