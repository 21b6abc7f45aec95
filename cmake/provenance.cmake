# SPDX-License-Identifier: Apache-2.0
# Run at every build: records the commit and whether the tree differs from it.
# Needs SOURCE, OUTPUT, MOEGATE_VERSION and MOEGATE_BUILD; MOEGATE_GIT_SHA and MOEGATE_GIT_DIRTY may be given
# in the environment, for a build without a repository or from a copy of an uncommitted tree.
set(MOEGATE_GIT_SHA "$ENV{MOEGATE_GIT_SHA}")
set(MOEGATE_DIRTY false)
if("$ENV{MOEGATE_GIT_DIRTY}")
  set(MOEGATE_DIRTY true)
endif()
find_program(GIT git)
if(GIT AND NOT MOEGATE_GIT_SHA)
  execute_process(COMMAND ${GIT} -c safe.directory=* rev-parse HEAD WORKING_DIRECTORY ${SOURCE}
                  OUTPUT_VARIABLE MOEGATE_GIT_SHA OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  execute_process(COMMAND ${GIT} -c safe.directory=* status --porcelain WORKING_DIRECTORY ${SOURCE}
                  OUTPUT_VARIABLE changes ERROR_QUIET)
  if(changes)
    set(MOEGATE_DIRTY true)
  endif()
endif()
configure_file(${SOURCE}/harness/values/provenance.cc.in ${OUTPUT} @ONLY)
