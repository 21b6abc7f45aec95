# SPDX-License-Identifier: Apache-2.0
# Writes the SQL scripts FOLDER/schema_<n>.sql, in order, as the string constants kSchema<n> and the array
# kMigrations in the header OUTPUT.
set(text "// Made from the schema files.\n#pragma once\n#include <array>\nnamespace moegate {\n")
set(names)
foreach(n RANGE 1 ${VERSIONS})
  file(READ ${FOLDER}/schema_${n}.sql sql)
  string(APPEND text "inline constexpr char kSchema${n}[] = R\"sql(${sql})sql\";\n")
  list(APPEND names kSchema${n})
endforeach()
list(JOIN names ", " names)
string(APPEND text "inline constexpr std::array<const char*, ${VERSIONS}> kMigrations = {${names}};\n}\n")
file(WRITE ${OUTPUT} "${text}")
