// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/program.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "harness/base/error.h"

namespace moegate {
namespace {

class ProgramHash : public testing::Test {
 protected:
  ~ProgramHash() override { std::filesystem::remove(path_); }
  std::string hash_of(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
    return program_hash(path_);
  }
  std::string path_ = testing::TempDir() + "program_hash";
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
    try {
      program_hash(path);
      FAIL() << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::usage);
      EXPECT_NE(std::string(error.what()).find(path + ": cannot be read"), std::string::npos);
    }
  }
}

TEST(KeepProgram, CopiesItselfOnceUnderItsHash) {
  const std::filesystem::path folder = testing::TempDir() + "artifacts";
  std::filesystem::remove_all(folder);
  const std::string kept = keep_program(folder.string());
  EXPECT_EQ(kept, (folder / program_hash("/proc/self/exe") / "bin" / "moegate").string());
  EXPECT_EQ(program_hash(kept), program_hash("/proc/self/exe"));
  EXPECT_EQ(keep_program(folder.string()), kept);
  std::filesystem::remove_all(folder);
  EXPECT_THROW(keep_program("/proc/no/such"), Error);
}

}  // namespace
}  // namespace moegate
