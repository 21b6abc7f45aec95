# SPDX-License-Identifier: Apache-2.0
# Writes the SQL scripts FOLDER/schema_<n>.sql, in order, as the string constants kSchema<n> and the array
# kMigrations in the header OUTPUT, and FOLDER/report_views.sql as kReportViews.
set(text "// Made from the store's SQL files.\n#pragma once\n#include <array>\nnamespace moegate {\n")
function(embed name file)
  file(READ ${FOLDER}/${file} sql)
  string(APPEND text "inline constexpr char ${name}[] = R\"sql(${sql})sql\";\n")
  set(text "${text}" PARENT_SCOPE)
endfunction()
set(names)
foreach(n RANGE 1 ${VERSIONS})
  embed(kSchema${n} schema_${n}.sql)
  list(APPEND names kSchema${n})
endforeach()
list(JOIN names ", " names)
string(APPEND text "inline constexpr std::array<const char*, ${VERSIONS}> kMigrations = {${names}};\n")
embed(kReportViews report_views.sql)
string(APPEND text "}\n")
file(WRITE ${OUTPUT} "${text}")
