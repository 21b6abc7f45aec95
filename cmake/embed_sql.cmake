# SPDX-License-Identifier: Apache-2.0
# Writes FOLDER/schema.sql as the string constant kSchema, and FOLDER/report_views.sql as kReportViews, in the header
# OUTPUT.
set(text "// Made from the store's SQL files.\n#pragma once\nnamespace moegate {\n")
function(embed name file)
  file(READ ${FOLDER}/${file} sql)
  string(APPEND text "inline constexpr char ${name}[] = R\"sql(${sql})sql\";\n")
  set(text "${text}" PARENT_SCOPE)
endfunction()
embed(kSchema schema.sql)
embed(kViews views.sql)
embed(kReportViews report_views.sql)
string(APPEND text "}\n")
file(WRITE ${OUTPUT} "${text}")
