# SPDX-License-Identifier: Apache-2.0
# Writes INPUT, an SQL script, as the string constant kSchemaSql in the header OUTPUT.
file(READ ${INPUT} sql)
file(WRITE ${OUTPUT} "// Made from ${INPUT}.\n#pragma once\nnamespace moegate {\n"
     "inline constexpr char kSchemaSql[] = R\"sql(${sql})sql\";\n}\n")
