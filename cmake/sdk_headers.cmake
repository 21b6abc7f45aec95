# SPDX-License-Identifier: Apache-2.0
# Writes the header OUTPUT: a hash of HEADERS, what a module of kernels may include, by their paths below ROOT.
set(all "")
foreach(header IN LISTS HEADERS)
  file(SHA256 ${ROOT}/${header} hash)
  string(APPEND all "${header} ${hash}\n")
endforeach()
string(SHA256 hash "${all}")
string(SUBSTRING ${hash} 0 16 hash)
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define MOEGATE_SDK_HEADERS \"${hash}\"\n")
