# SPDX-License-Identifier: Apache-2.0
# Run at every build: records the commit and whether the tree differs from it.
# Needs SOURCE, OUTPUT, MOEGATE_VERSION and MOEGATE_BUILD; MOEGATE_GIT_SHA may be given in the environment
# for a build from an archive without a repository.
set(MOEGATE_GIT_SHA "$ENV{MOEGATE_GIT_SHA}")
set(MOEGATE_DIRTY false)
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
configure_file(${SOURCE}/harness/provenance.cc.in ${OUTPUT} @ONLY)
