// SPDX-License-Identifier: Apache-2.0
// The schema as a contract: a table or column that comes, goes or gets another name is seen here.
#include <gtest/gtest.h>

#include "harness/store/store_fixture.h"

namespace moegate {
namespace {

using SchemaTest = StoreFixture;

/// "version 1", and a line for each table and view: "tag: run_id name value".
std::string columns_of_all(Database& db) {
  std::string text = "version " + std::to_string(db.integer("PRAGMA user_version")) + "\n";
  Statement q(db,
              "SELECT s.name || ':' || group_concat(' ' || c.name, '') FROM sqlite_schema s, "
              "pragma_table_info(s.name) c WHERE s.type IN ('table', 'view') AND "
              "s.name NOT LIKE 'sqlite_%' GROUP BY s.name ORDER BY s.name");
  while (q.step()) text += q.text(0) + "\n";
  return text;
}

TEST_F(SchemaTest, HasTheColumnsThatOthersMayRead) {
  Store store = Store::open(path_, Store::Mode::write);
  EXPECT_EQ(columns_of_all(store.database()),
            read_file(MOEGATE_SOURCE_DIR "/harness/store/schema_columns.txt"))
      << "CONTRACTS.md says what a change of the schema needs: another version, first of all";
}

}  // namespace
}  // namespace moegate
