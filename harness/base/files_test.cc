// SPDX-License-Identifier: Apache-2.0
#include "harness/base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iterator>

#include "harness/base/error.h"
#include "harness/base/test_fixture.h"

namespace moegate::test {
namespace {

namespace fs = std::filesystem;

class Files : public ::testing::Test {
 protected:
  static std::string read(const fs::path& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  /// Files in the folder: a left temporary one would be one more.
  size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(dir_.path()), {}));
  }

  ScratchFolder dir_;
};

TEST_F(Files, MakesAndReplacesARegularFile) {
  write_file_atomically(dir_ / "a", "one");
  write_file_atomically(dir_ / "a", "two");
  EXPECT_EQ(read(dir_ / "a"), "two");
  EXPECT_EQ(files(), 1u);
  EXPECT_THROW(write_file_atomically(dir_ / "no" / "a", "x"), Error);
  EXPECT_THROW(write_file_atomically(dir_.path(), "x"), Error) << "a folder";
}

TEST_F(Files, WritesThroughLinksAndKeepsThem) {
  write_file_atomically(dir_ / "real", "old");
  fs::create_symlink("real", dir_ / "link");
  fs::create_symlink(dir_ / "link", dir_ / "second");
  write_file_atomically(dir_ / "second", "new");
  EXPECT_TRUE(fs::is_symlink(dir_ / "link"));
  EXPECT_TRUE(fs::is_symlink(dir_ / "second"));
  EXPECT_EQ(read(dir_ / "real"), "new");

  fs::create_symlink("made", dir_ / "dangling");
  write_file_atomically(dir_ / "dangling", "text");
  EXPECT_TRUE(fs::is_symlink(dir_ / "dangling"));
  EXPECT_EQ(read(dir_ / "made"), "text");
  EXPECT_EQ(files(), 5u);

  fs::create_symlink("loop", dir_ / "loop");
  EXPECT_THROW(write_file_atomically(dir_ / "loop", "x"), Error);
  EXPECT_TRUE(fs::is_symlink(dir_ / "loop"));
}

TEST_F(Files, WritesIntoAPipe) {
  const fs::path pipe = dir_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  write_file_atomically(pipe, "text");
  char text[8] = {};
  EXPECT_EQ(::read(reader, text, sizeof text), 4);
  ::close(reader);
  EXPECT_STREQ(text, "text");
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST_F(Files, LeavesADeviceADevice) {
  const fs::path null = dir_ / "null";
  if (::mknod(null.c_str(), S_IFCHR | 0666, ::makedev(1, 3)) != 0 || !fs::is_character_file(null)) {
    GTEST_SKIP() << "only root makes devices";
  }
  const int probe = ::open(null.c_str(), O_WRONLY);
  if (probe < 0) GTEST_SKIP() << "devices do not work in this folder";
  ::close(probe);
  write_file_atomically(null, "text");
  EXPECT_TRUE(fs::is_character_file(null));
  EXPECT_EQ(files(), 1u);
}

TEST_F(Files, ADiskThatIsFullLeavesTheFileAsItWas) {
  const std::string old = "the old text", text = "a text that is longer than the old one";
  for (rlim_t bytes = 0; bytes < text.size(); ++bytes) {
    const fs::path path = dir_ / "a";
    write_file_atomically(path, old);
    const std::string why = refusal_of([&] {
      const FileLimit limit(bytes);
      write_file_atomically(path, text);
    });
    EXPECT_NE(why.find(path.string()), std::string::npos) << bytes << ": " << why;
    EXPECT_EQ(read(path), old) << bytes;
    EXPECT_EQ(files(), 1u) << bytes;
    write_file_atomically(path, text);
    EXPECT_EQ(read(path), text) << "and once there is room";
  }
}

TEST_F(Files, ALineThatDoesNotFitIsNotAppendedInPart) {
  const std::string old = "one\n", line = "another line\n";
  for (rlim_t more = 0; more < line.size(); ++more) {
    const fs::path path = dir_ / "a";
    fs::remove(path);
    append_to_file(path, old);
    {
      const FileLimit limit(old.size() + more);
      EXPECT_THROW(append_to_file(path, line), Error) << more;
    }
    EXPECT_EQ(read(path), old) << more;
    append_to_file(path, line);
    EXPECT_EQ(read(path), old + line);
  }
}

TEST_F(Files, ADeviceThatIsFullIsAnError) {
  EXPECT_THROW(write_file_atomically("/dev/full", "text"), Error);
  EXPECT_THROW(append_to_file("/dev/full", "text"), Error);
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(Files, OutputsGoToStandardOutputByADash) {
  ::testing::internal::CaptureStdout();
  write_output("-", "text");
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "text");
  EXPECT_FALSE(fs::exists("-"));
  write_output((dir_ / "a").string(), "text");
  EXPECT_EQ(read(dir_ / "a"), "text");
}

TEST_F(Files, AppendsLines) {
  append_to_file(dir_ / "a", "one\n");
  append_to_file(dir_ / "a", "two\n");
  EXPECT_EQ(read(dir_ / "a"), "one\ntwo\n");
  EXPECT_THROW(append_to_file(dir_ / "no" / "a", "x"), Error);
}

TEST_F(Files, ReadsRegularFilesUpToALimit) {
  write_file_atomically(dir_ / "a", "text");
  EXPECT_EQ(read_file(dir_ / "a"), "text");
  EXPECT_EQ(read_file(dir_ / "a", 4), "text");
  EXPECT_THROW(read_file(dir_ / "a", 3), Error);
  EXPECT_THROW(read_file(dir_ / "none"), Error);
  EXPECT_THROW(read_file(dir_.path()), Error);
  EXPECT_THROW(read_file("/dev/zero"), Error);
  ASSERT_EQ(mkfifo((dir_ / "pipe").c_str(), 0600), 0);
  EXPECT_THROW(read_file(dir_ / "pipe"), Error) << "and does not wait for a writer";
}

TEST_F(Files, OutputsAreCheckedBeforehand) {
  EXPECT_NO_THROW(check_output("-"));
  EXPECT_NO_THROW(check_output((dir_ / "new").string()));
  EXPECT_NO_THROW(check_output("/dev/null"));
  EXPECT_THROW(check_output(""), Error);
  EXPECT_THROW(check_output(dir_.path().string()), Error);
  EXPECT_THROW(check_output((dir_ / "no" / "new").string()), Error);
  fs::create_symlink(dir_ / "no" / "new", dir_ / "dangling");
  EXPECT_THROW(check_output((dir_ / "dangling").string()), Error);
  EXPECT_EQ(files(), 1u) << "nothing is made";
}

TEST_F(Files, RemovesWhatKilledWritersLeftLongAgo) {
  for (const char* name : {"a.1.tmp", "a.2.tmp", "a.b.tmp", "b.1.tmp"}) std::ofstream(dir_ / name);
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(2);
  for (const char* name : {"a.1.tmp", "a.b.tmp", "b.1.tmp"})
    fs::last_write_time(dir_ / name, long_ago);
  write_file_atomically(dir_ / "a", "text");
  EXPECT_FALSE(fs::exists(dir_ / "a.1.tmp"));
  EXPECT_TRUE(fs::exists(dir_ / "a.2.tmp")) << "may be at work";
  EXPECT_TRUE(fs::exists(dir_ / "a.b.tmp")) << "somebody else's";
  EXPECT_TRUE(fs::exists(dir_ / "b.1.tmp")) << "of another file";
  const fs::path random = dir_ / ("a." + random_name() + ".tmp");
  for (const fs::path& mine : {random, dir_ / "precious"}) std::ofstream(mine) << "text";
  fs::last_write_time(random, long_ago);
  fs::last_write_time(dir_ / "precious", long_ago);
  fs::create_symlink("precious", dir_ / "a.7.tmp");
  write_file_atomically(dir_ / "a", "text");
  EXPECT_FALSE(fs::exists(random));
  EXPECT_TRUE(fs::is_symlink(dir_ / "a.7.tmp")) << "no writer made it";
}

TEST_F(Files, LinksThatWereLaidInWaitAreNotWrittenThrough) {
  std::ofstream(dir_ / "precious") << "mine";
  fs::create_symlink("precious", dir_ / fmt::format("a.{}.tmp", ::getpid()));
  write_file_atomically(dir_ / "a", "text");
  EXPECT_EQ(read(dir_ / "precious"), "mine");
  EXPECT_FALSE(fs::is_symlink(dir_ / "a"));
  EXPECT_EQ(read(dir_ / "a"), "text");
  EXPECT_NE(random_name(), random_name());
}

TEST_F(Files, LinksOfOthersInASharedFolderAreRefused) {
  const fs::path shared = dir_ / "shared", link = shared / "report.md";
  fs::create_directory(shared);
  std::ofstream(dir_ / "precious") << "mine";
  fs::create_symlink("../precious", link);
  if (::lchown(link.c_str(), 65534, 65534) != 0) GTEST_SKIP() << "only root gives files away";
  write_file_atomically(link, "text");
  EXPECT_EQ(read(dir_ / "precious"), "text") << "nobody else writes here";
  fs::permissions(shared, fs::perms::all | fs::perms::sticky_bit);
  for (const auto& write : {write_file_atomically, append_to_file}) {
    const std::string why = refusal_of([&] { write(link, "evil"); });
    EXPECT_NE(why.find("user 65534 put"), std::string::npos) << why;
  }
  EXPECT_EQ(read(dir_ / "precious"), "text");
}

TEST(FileLock, IsHeldByOne) {
  const ScratchFolder dir;
  {
    const FileLock mine(dir / ".lock");
    EXPECT_TRUE(mine.held());
    EXPECT_FALSE(FileLock(dir / ".lock").held());
    EXPECT_TRUE(FileLock(dir / ".other").held());
  }
  EXPECT_TRUE(FileLock(dir / ".lock").held());
  EXPECT_FALSE(FileLock(dir / "no" / ".lock").held());
  std::filesystem::create_symlink("elsewhere", dir / "link");
  EXPECT_FALSE(FileLock(dir / "link").held());
  EXPECT_FALSE(std::filesystem::exists(dir / "elsewhere"));
  const FileLock folder(dir.path());
  EXPECT_TRUE(folder.held());
  EXPECT_FALSE(FileLock(dir.path()).held());
}

}  // namespace
}  // namespace moegate::test
