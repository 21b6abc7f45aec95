// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/program.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "harness/base/error.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/test_fixture.h"

namespace moegate::test {
namespace {

class ProgramHash : public testing::Test {
 protected:
  std::string hash_of(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
    return program_hash(path_);
  }
  ScratchFolder folder_;
  const std::string path_ = (folder_ / "program").string();
};

TEST_F(ProgramHash, DependsOnEveryByteAndNothingElse) {
  const std::string bytes((size_t{2} << 20) + 3, 'x');
  std::string changed = bytes;
  changed.back() = 'y';
  EXPECT_EQ(hash_of(bytes), hash_of(bytes));
  EXPECT_NE(hash_of(bytes), hash_of(changed));
  EXPECT_NE(hash_of(bytes), hash_of(bytes.substr(1)));
  EXPECT_EQ(hash_of("").size(), 32u);
}

TEST_F(ProgramHash, UnreadableIsAUsageErrorThatNamesThePath) {
  for (const std::string path : {"/no/such/program", "/"}) {
    const std::string why = refusal_of([&] { program_hash(path); });
    EXPECT_NE(why.find(path + ": cannot be read"), std::string::npos);
  }
}

TEST(KeepProgram, CopiesItselfOnceUnderItsHash) {
  const ScratchFolder scratch;
  const std::filesystem::path folder = scratch / "artifacts";
  const std::string kept = keep_program(folder.string());
  EXPECT_EQ(kept, (folder / program_hash("/proc/self/exe") / "bin" / "moegate").string());
  EXPECT_EQ(program_hash(kept), program_hash("/proc/self/exe"));
  EXPECT_EQ(keep_program(folder.string()), kept);
  EXPECT_THROW(keep_program("/proc/no/such"), Error);
}

class ProgramOfTest : public testing::Test {
 protected:
  std::filesystem::path keep(const std::string& name, const std::string& text = "") const {
    const auto path = folder_ / name / "bin" / "moegate";
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }
  std::string find(const std::string& program, const std::string& commit) {
    BaselineHeader baseline;
    baseline.suite = "s";
    baseline.program = program;
    baseline.git_sha = commit;
    return program_of(
        baseline, {folder_.path(), folder_ / "shipped"},
        [this](const std::string& asked, double) {
          built_.push_back(asked);
          return asked == "broken" ? "" : "/built/" + asked;
        },
        60);
  }

  ScratchFolder folder_;
  std::vector<std::string> built_;
  const std::string hash_ = program_hash("/dev/null");  // of a program that is kept
};

TEST_F(ProgramOfTest, TheKeptOneElseOneBuiltAgain) {
  const std::string kept = keep(hash_);
  EXPECT_EQ(find(hash_, "commit"), kept);
  EXPECT_TRUE(built_.empty());
  EXPECT_EQ(find("bbbb", "commit"), "/built/commit");
  EXPECT_EQ(find("", "commit"), "/built/commit") << "the folder of all programs is none";
  EXPECT_EQ(find("bbbb", "broken"), "");
  EXPECT_EQ(find("bbbb", ""), "") << "nobody knows the commit";
  EXPECT_EQ(built_.size(), 3u);
  std::filesystem::permissions(kept, std::filesystem::perms::owner_read);
  EXPECT_EQ(find(hash_, ""), "") << "not executable";
}

TEST_F(ProgramOfTest, AnInstalledFolderBringsItByItsHashOrItsCommit) {
  const std::string by_commit = keep("shipped/c0de"), by_hash = keep("shipped/" + hash_);
  EXPECT_EQ(find(hash_, "c0de"), by_hash);
  EXPECT_EQ(find("bbbb", "c0de"), by_commit);
  EXPECT_EQ(find(hash_, ""), by_hash);
  EXPECT_EQ(find("", "c0de"), by_commit);
  const std::string kept = keep(hash_);
  EXPECT_EQ(find(hash_, "none"), kept) << "what a night kept comes first";
  EXPECT_TRUE(built_.empty());
}

TEST_F(ProgramOfTest, OneThatSomebodyReplacedIsNotRun) {
  const std::string kept = keep(hash_);
  EXPECT_EQ(find(hash_, "commit"), kept);
  keep(hash_, "evil");
  const std::string why = refusal_of([&] { find(hash_, "commit"); });
  EXPECT_NE(why.find("somebody has changed it"), std::string::npos) << why;
  EXPECT_TRUE(built_.empty());
  keep(hash_);
  std::filesystem::create_directories(folder_ / hash_ / "kernels" / "0");
  std::ofstream(folder_ / hash_ / "kernels" / "0" / "evil.so") << "evil";
  std::ofstream(folder_ / hash_ / "kernels" / "files.json") << R"({"given": ["0/evil.so"]})";
  EXPECT_THROW(find(hash_, "commit"), Error) << "kernels that were laid beside it";
}

TEST_F(ProgramOfTest, TheNewestAreKept) {
  using Clock = std::filesystem::file_time_type::clock;
  for (int day = 0; day < 5; ++day) {
    const std::string name(1, static_cast<char>('a' + day));
    keep(name);
    std::filesystem::last_write_time(folder_ / name,
                                     Clock::now() - std::chrono::hours(24 * (4 - day)));
  }
  prune_programs(folder_.path(), 2);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "c"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "d" / "bin" / "moegate"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "e"));
  prune_programs(folder_ / "none", 2);
}

namespace fs = std::filesystem;

/// A checkout with a file of kernels in a folder, a package beside that, one more by a link, a
/// table that a launch reads; and a package that is installed elsewhere.
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
}  // namespace moegate::test
