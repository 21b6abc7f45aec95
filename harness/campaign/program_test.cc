// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/program.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "harness/base/error.h"
#include "harness/base/test_fixture.h"

namespace moegate {
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

}  // namespace
}  // namespace moegate
