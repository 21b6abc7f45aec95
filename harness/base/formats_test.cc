// SPDX-License-Identifier: Apache-2.0
#include "harness/base/formats.h"

#include <gtest/gtest.h>

#include <fstream>

#include "harness/base/error.h"
#include "harness/base/test_fixture.h"

namespace moegate::test {
namespace {

/// Written by hand rather than by NumPy, so that every field can be wrong.
struct Npy {
  int major = 1;
  std::string descr = "'<i4'";
  std::string fortran = "False";
  std::string shape = "(2, 3)";
  std::string data = std::string("\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0\5\0\0\0\xff\xff\xff\xff", 24);

  std::string bytes() const {
    std::string text =
        "{'descr': " + descr + ", 'fortran_order': " + fortran + ", 'shape': " + shape + ", }";
    text.resize((text.size() + 64) / 64 * 64, ' ');
    text.back() = '\n';
    std::string out = "\x93NUMPY";
    out += static_cast<char>(major);
    out += '\0';
    for (int i = 0; i < (major == 1 ? 2 : 4); ++i) {
      out += static_cast<char>(text.size() >> (8 * i) & 0xff);
    }
    return out + text + data;
  }
};

class NpyTest : public testing::Test {
 protected:
  IntTable read(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
    return read_npy(path_);
  }

  /// Expects an error that names the path, `what`, and how to save a right one.
  void expect_refused(const std::string& bytes, const std::string& what) {
    const std::string message = refusal_of([&] { read(bytes); });
    EXPECT_EQ(message.find("'" + path_ + "' " + what), 0u) << message;
    EXPECT_NE(message.find("numpy.save"), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }

  ScratchFolder folder_;
  const std::string path_ = (folder_ / "ids.npy").string();
};

TEST_F(NpyTest, ReadsEveryVersion) {
  for (const int major : {1, 2, 3}) {
    const IntTable table = read(Npy{.major = major}.bytes());
    EXPECT_EQ(table.rows, 2);
    EXPECT_EQ(table.columns, 3);
    EXPECT_EQ(table.values, (std::vector<int64_t>{1, 2, 3, 4, 5, -1}));
    EXPECT_EQ(table.at(1, 0), 4);
  }
}

TEST_F(NpyTest, ReadsEveryIntegerWithItsSign) {
  const std::string i2("\1\0\xfe\xff", 4);
  EXPECT_EQ(read(Npy{.descr = "'<i2'", .shape = "(1, 2)", .data = i2}.bytes()).values,
            (std::vector<int64_t>{1, -2}));
  const std::string i8("\0\0\0\0\1\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff", 16);
  EXPECT_EQ(read(Npy{.descr = "'<i8'", .shape = "(2, 1)", .data = i8}.bytes()).values,
            (std::vector<int64_t>{int64_t{1} << 32, -1}));
}

TEST_F(NpyTest, AcceptsOtherSpellingsOfTheHeader) {
  EXPECT_EQ(read(Npy{.descr = "\"<i4\"", .shape = "(2,3,)"}.bytes()).columns, 3);
  EXPECT_EQ(read(Npy{.shape = "(0, 3)", .data = ""}.bytes()).rows, 0);
}

TEST_F(NpyTest, AListIsAColumn) {
  const IntTable table = read(Npy{.shape = "(6,)"}.bytes());
  EXPECT_EQ(table.rows, 6);
  EXPECT_EQ(table.columns, 1);
  EXPECT_EQ(table.at(5, 0), -1);
}

TEST_F(NpyTest, RefusesMissingFile) {
  EXPECT_EQ(refusal_of([&] { read_npy("/nonexistent/ids.npy"); }),
            "'/nonexistent/ids.npy' does not exist; check the path (a relative one starts at "
            "the current folder)");
}

TEST_F(NpyTest, RefusesFolder) {
  EXPECT_THROW(read_npy(testing::TempDir()), Error);
}

TEST_F(NpyTest, RefusesWhatIsNotNpy) {
  expect_refused("", "is not a .npy file");
  expect_refused("PK\3\4 an .npz", "is not a .npy file");
  expect_refused(Npy{.major = 4}.bytes(), "has .npy version 4");
}

TEST_F(NpyTest, RefusesEveryTruncation) {
  const std::string whole = Npy{}.bytes();
  for (size_t n = 6; n < whole.size(); ++n) expect_refused(whole.substr(0, n), "is truncated");
}

TEST_F(NpyTest, SaysHowManyElementsAreThere) {
  expect_refused(Npy{.shape = "(3, 3)"}.bytes(),
                 "is truncated: its shape is [3, 3], but only 6 elements follow");
  // The product overflows 64 bits.
  expect_refused(Npy{.shape = "(4294967296, 4294967296)"}.bytes(), "is truncated");
}

TEST_F(NpyTest, RefusesFortranOrder) {
  expect_refused(Npy{.fortran = "True"}.bytes(), "is in Fortran order");
}

TEST_F(NpyTest, RefusesOtherTypesNamingThem) {
  for (const std::string type : {">i4", "<f4", "<u4", "|i1", "<i16"}) {
    expect_refused(
        Npy{.descr = "'" + type + "'"}.bytes(),
        "has dtype " + type + ", not <i2, <i4 or <i8 (int16, int32, int64); " +
            "save it with numpy.save(path, numpy.ascontiguousarray(array, dtype='<i4'))");
  }
  expect_refused(Npy{.descr = "[('a', '<i4')]"}.bytes(), "has dtype a structured type");
}

TEST_F(NpyTest, RefusesOtherRanks) {
  expect_refused(Npy{.shape = "()"}.bytes(), "has 0 dimensions, not 1 or 2");
  expect_refused(Npy{.shape = "(1, 2, 3)"}.bytes(),
                 "has 3 dimensions, not 1 or 2: [n] or [rows, k]");
}

TEST_F(NpyTest, RefusesDamagedHeaders) {
  expect_refused(Npy{.shape = "(2, -3)"}.bytes(), "has a header with an unreadable shape");
  expect_refused(Npy{.shape = "(2, x)"}.bytes(), "has a header with an unreadable shape");
  expect_refused(Npy{.shape = "[2, 3]"}.bytes(), "has a header without a shape");
  std::string renamed = Npy{}.bytes();
  renamed.replace(renamed.find("descr"), 5, "DESCR");
  expect_refused(renamed, "has a header without 'descr'");
}

std::string json_refusal(const std::string& text) {
  return refusal_of([&] { parse_json("there:3", text); });
}

TEST(JsonText, ReadsWhatIsJson) {
  EXPECT_EQ(parse_json("there", R"({"a": [1, null]})")["a"][0], 1);
  const std::string deepest = std::string(kDeepestJson, '[') + std::string(kDeepestJson, ']');
  EXPECT_EQ(json_refusal(deepest), "accepted");
}

TEST(JsonText, NamesThePlaceOfWhatIsNot) {
  for (const std::string text : {"", "{", "[1,", "{\"a\": 1e999}", "\xff\xfe", "null null"}) {
    const std::string message = json_refusal(text);
    EXPECT_EQ(message.find("there:3: is damaged, or no JSON"), 0u) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    EXPECT_LT(message.size(), 300u);
  }
}

TEST(JsonText, RefusesWhatIsTooDeepBeforeItsEnd) {
  EXPECT_NE(json_refusal(std::string(1 << 20, '[')).find("nested deeper"), std::string::npos);
}

}  // namespace
}  // namespace moegate::test
