// SPDX-License-Identifier: Apache-2.0
#include "harness/store/sqlite.h"
#include "harness/base/test_fixture.h"

#include <gtest/gtest.h>

#include "harness/values/result.h"

namespace moegate::test {
namespace {

TEST(Statement, AllowsOneStatementOnly) {
  Database db(":memory:", SQLITE_OPEN_READWRITE);
  EXPECT_THROW(Statement(db, "SELECT 1; SELECT 2"), Error);
  EXPECT_THROW(Statement(db, "-- nothing"), Error);
  EXPECT_THROW(Statement(db, "SELEC 1"), Error);
  EXPECT_TRUE(Statement(db, "SELECT 1; -- tail\n").step());
  EXPECT_FALSE(Statement(db, "CREATE TABLE t (x)").readonly());
}

TEST(Sqlite, NoFunctionTellsAnAddress) {
  Database db(":memory:", SQLITE_OPEN_READWRITE);
  for (const char* sql : {"SELECT fts3_tokenizer('simple')", "SELECT fts3_tokenizer('x', x'00')"}) {
    const std::string why = refusal_of([&] { Statement(db, sql).step(); }, Exit::store);
    EXPECT_NE(why.find("fts3_tokenizer is off"), std::string::npos) << why;
  }
}

TEST(Status, NamesAreReadBack) {
  for (auto s : {Status::ok, Status::unsupported, Status::wrong, Status::crashed, Status::timeout,
                 Status::bad_timer, Status::noisy}) {
    Status back{};
    parse_name(name_of(s), back);
    EXPECT_EQ(back, s);
  }
  Status back{};
  EXPECT_THROW(parse_name("fine", back), std::invalid_argument);
}

}  // namespace
}  // namespace moegate::test
