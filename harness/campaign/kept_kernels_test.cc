// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/kept_kernels.h"

#include <gtest/gtest.h>

#include <fstream>

#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/test_fixture.h"

namespace moegate {
namespace {

namespace fs = std::filesystem;

/// A checkout with a file of kernels in a folder, a package beside that, one more by a link, a table that a launch
/// reads; and a package that is installed elsewhere.
class KeptKernelsTest : public testing::Test {
 protected:
  KeptKernelsTest() {
    for (const char* name : {"engine/bench/kernels.py", "engine/impl/scale.py", "engine/table.json",
                             "engine/.venv/site-packages/inside.py", "site-packages/torch.py"}) {
      fs::create_directories((folder_ / name).parent_path());
      std::ofstream(folder_ / name) << "text of " << name;
    }
    fs::create_symlink("../impl", folder_ / "engine/bench/linked");
    const std::string engine = (folder_ / "engine").string() + "/";
    const auto file = [&](const std::string& name, const std::string& as = "") {
      return LoadedFile{engine + name, as.empty() ? "" : engine + as, name,
                        content_hash(engine + name)};
    };
    const std::string torch = (folder_ / "site-packages/torch.py").string();
    files_.given = {engine + "bench/kernels.py"};
    files_.imported = {file("bench/kernels.py"),
                       file("impl/scale.py", "bench/linked/scale.py"),
                       file(".venv/site-packages/inside.py"),
                       {torch, "", torch, content_hash(torch)}};
    files_.loaded = files_.imported;
    files_.loaded.push_back(file("table.json"));
    keep_kernels(files_, kept_);
  }
  /// As a process of the kept kernels would tell.
  std::vector<LoadedFile> told() const {
    std::vector<LoadedFile> files = files_.imported;
    for (LoadedFile& f : files) {
      const fs::path kept = kept_ / "0" / f.name;
      if (is_file(kept)) f.path = fs::weakly_canonical(kept).string();
    }
    return files;
  }

  ScratchFolder folder_;
  const fs::path kept_ = folder_ / "kept";
  KernelFiles files_;
};

TEST_F(KeptKernelsTest, ACheckoutsFilesHaveTheirPathsAndAnInstalledPackageStaysWhereItIs) {
  EXPECT_EQ(read_file(kept_ / "0/impl/scale.py"), "text of engine/impl/scale.py");
  EXPECT_EQ(read_file(kept_ / "0/table.json"), "text of engine/table.json");
  EXPECT_TRUE(fs::is_symlink(kept_ / "0/bench/linked"));
  EXPECT_EQ(read_file(kept_ / "0/bench/linked/scale.py"), "text of engine/impl/scale.py");
  EXPECT_FALSE(fs::exists(kept_ / "0/.venv"));
  const KernelFiles kept = kept_kernels(kept_);
  EXPECT_EQ(kept.given, std::vector<std::string>{(kept_ / "0/bench/kernels.py").string()});
  EXPECT_EQ(kept.imported.size(), 4u);
  EXPECT_EQ(kept.loaded.size(), 5u);
  EXPECT_TRUE(kept_kernels(folder_ / "none").given.empty());
}

TEST_F(KeptKernelsTest, WhatSomebodyChangedIsNamed) {
  EXPECT_EQ(changed_file(kept_), "");
  std::ofstream(kept_ / "0/impl/scale.py") << "evil";
  EXPECT_EQ(changed_file(kept_), "0/impl/scale.py");
}

TEST_F(KeptKernelsTest, AnInstalledPackageThatIsAnotherIsNamed) {
  std::ofstream(folder_ / "engine/impl/scale.py") << "the next commit's";
  EXPECT_EQ(lost_file(kept_), "");
  std::ofstream(folder_ / "site-packages/torch.py") << "a newer one";
  EXPECT_EQ(lost_file(kept_), (folder_ / "site-packages/torch.py").string());
}

TEST_F(KeptKernelsTest, WhatTheKeptKernelsLackIsNamed) {
  std::vector<LoadedFile> other = told();
  other[1].hash = "another";
  EXPECT_EQ(settle_kept(kept_, other), "impl/scale.py");
  other.erase(other.begin() + 1);
  EXPECT_EQ(settle_kept(kept_, other), "impl/scale.py");
  EXPECT_FALSE(is_settled(kept_));
  EXPECT_EQ(settle_kept(kept_, told()), "");
  EXPECT_TRUE(is_settled(kept_));
}

// As a library does that a module finds by the folder of its build.
TEST_F(KeptKernelsTest, WhatIsTakenFromWhereItWasHasToStayThere) {
  std::vector<LoadedFile> told_so = told();
  told_so[1] = files_.imported[1];
  told_so[1].name = told_so[1].path;  // below no checkout of the kept kernels
  EXPECT_EQ(settle_kept(kept_, told_so), "");
  EXPECT_EQ(lost_file(kept_), "");
  std::ofstream(folder_ / "engine/impl/scale.py") << "built anew";
  EXPECT_EQ(lost_file(kept_), (folder_ / "engine/impl/scale.py").string());
}

}  // namespace
}  // namespace moegate
