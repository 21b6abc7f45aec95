# SPDX-License-Identifier: Apache-2.0
# Puts the parts of Vega that `pages`/vega.txt names together, as harness/site/site_files.cc does, into `output`.
# Says so where Debian's libjs-vega is not installed.
file(STRINGS ${pages}/vega.txt parts REGEX "^/")
file(READ ${pages}/vega_begin.js script)
foreach(part IN LISTS parts)
  if(NOT EXISTS ${part})
    message(STATUS "charts: no ${part}; install libjs-vega, or do without them")
    return()
  endif()
  cmake_path(GET part FILENAME name)
  string(REPLACE ".min.js" "" name ${name})
  file(READ ${part} text)
  string(APPEND script "moegateModule(\"${name}\", function (module, exports, require) {\n${text}\n});\n")
endforeach()
file(READ ${pages}/vega_end.js text)
string(APPEND script "${text}")
file(WRITE ${output} "${script}")
