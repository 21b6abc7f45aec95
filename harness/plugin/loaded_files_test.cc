// SPDX-License-Identifier: Apache-2.0
#include "harness/plugin/loaded_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "harness/base/test_fixture.h"

namespace moegate::test {
namespace {

namespace fs = std::filesystem;

class LoadedFilesTest : public testing::Test {
 protected:
  ~LoadedFilesTest() override { watch_opens(false); }
  std::string write(const std::string& name, const std::string& text) const {
    const std::string path = folder_ / name;
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path) << text;
    return fs::canonical(path).string();
  }
  /// What the list has of a path; a file without one where it has nothing.
  static LoadedFile listed(const std::string& path) {
    const auto files = loaded_files();
    const auto found = std::ranges::find(files, path, &LoadedFile::path);
    return found == files.end() ? LoadedFile() : *found;
  }
  const ScratchFolder folder_;
};

TEST_F(LoadedFilesTest, EveryWayToOpenForReadingIsSeen) {
  std::string text(16, ' ');
  const auto opens = std::vector<std::function<void(const std::string&)>>{
      [](const std::string& path) { close(::open(path.c_str(), O_RDONLY)); },
      [](const std::string& path) { close(::open(path.c_str(), O_RDWR)); },
      [](const std::string& path) { close(::open64(path.c_str(), O_RDONLY)); },
      [](const std::string& path) { close(::openat(AT_FDCWD, path.c_str(), O_RDONLY)); },
      [](const std::string& path) {
        const int folder = ::open(fs::path(path).parent_path().c_str(), O_RDONLY | O_DIRECTORY);
        close(::openat64(folder, fs::path(path).filename().c_str(), O_RDONLY));
        close(folder);
      },
      [](const std::string& path) { std::fclose(std::fopen(path.c_str(), "r")); },
      [](const std::string& path) { std::fclose(fopen64(path.c_str(), "rb")); },
      [](const std::string& path) { std::ifstream in(path); },
      [](const std::string& path) {
        const fs::path before = fs::current_path();
        fs::current_path(fs::path(path).parent_path());
        close(::open(fs::path(path).filename().c_str(), O_RDONLY));
        fs::current_path(before);
      },
  };
  for (size_t i = 0; i < opens.size(); ++i) {
    const std::string path = write(std::to_string(i) + "/file", "text");
    watch_opens(true);
    opens[i](path);
    watch_opens(false);
    EXPECT_EQ(listed(path).hash.size(), 16u) << i;
  }
}

TEST_F(LoadedFilesTest, OnlyWhatOthersWroteIsRead) {
  const std::string unwatched = write("unwatched", "text"), emptied = write("emptied", "text");
  std::ifstream(unwatched).get();
  watch_opens(true);
  const std::string made = folder_ / "made";
  close(::open(made.c_str(), O_CREAT | O_EXCL | O_RDWR, 0600));
  std::fclose(std::fopen(emptied.c_str(), "w"));
  for (const std::string& path : {made, emptied}) std::ifstream(path).get();
  std::ifstream("/proc/self/stat").get();
  watch_opens(false);
  for (const std::string& path : {unwatched, made, emptied, std::string("/proc/self/stat")}) {
    EXPECT_EQ(listed(path).path, "") << path;
  }
}

TEST_F(LoadedFilesTest, ContentAndNameCountAndThePlaceOfTheRootDoesNot) {
  std::vector<std::string> hashes;
  for (const std::string place : {"one", "other"}) {
    fs::create_directories(folder_ / place / ".git");
    const std::string kernels = write(place + "/bench/kernels.py", "pass");
    EXPECT_EQ(root_of(kernels), fs::canonical(folder_ / place).string());
    name_files_below(root_of(kernels));
    const std::string config = write(place + "/configs/E=8.json", "{}");
    watch_opens(true);
    std::ifstream(config).get();
    watch_opens(false);
    EXPECT_EQ(listed(config).name, "configs/E=8.json");
    hashes.push_back(hash_of({listed(config)}));
  }
  EXPECT_EQ(hashes[0], hashes[1]);
  LoadedFile file = {.path = "/a/b", .as = "", .name = "b", .hash = "1234"};
  const std::string before = hash_of({file});
  LoadedFile renamed = file;
  renamed.name = "c";
  EXPECT_NE(hash_of({renamed}), before);
  EXPECT_EQ(hash_of({renamed, file}), hash_of({file, renamed}));
  renamed.hash = "";
  EXPECT_EQ(hash_of({file, renamed}), "") << "it cannot be told";
}

TEST_F(LoadedFilesTest, AChangeOrTheLossOfAFileIsSeenLater) {
  const std::string path = write("config", "one"), link = folder_ / "link";
  fs::create_symlink(path, link);
  watch_opens(true);
  std::ifstream(link).get();
  watch_opens(false);
  const LoadedFile before = listed(path);
  EXPECT_EQ(before.as, link);
  write("config", "more");
  EXPECT_NE(listed(path).hash, before.hash);
  fs::remove(path);
  EXPECT_EQ(listed(path).name, before.name);
  EXPECT_EQ(listed(path).hash, "");
}

TEST_F(LoadedFilesTest, ModulesAreAskedForAndFoldersLeftOut) {
  const std::string module = write("lib/module.pyc", "x"), left_out = write("std/os.py", "x"),
                    package = write("std/site-packages/p.py", "x");
  leave_out_files_below(folder_ / "std");
  ask_for_loaded([=] { return std::vector<std::string>{module, left_out, package}; });
  EXPECT_NE(listed(module).hash, "");
  EXPECT_EQ(listed(left_out).path, "");
  EXPECT_NE(listed(package).hash, "");
}

}  // namespace
}  // namespace moegate::test
