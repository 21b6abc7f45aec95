# SPDX-License-Identifier: Apache-2.0
# Writes the C++ file OUTPUT, which registers a hash of every object's code. OBJECTS are object files and
# FILES, in the same order, the names of their sources; OBJCOPY is binutils' program.
list(LENGTH OBJECTS objects)
list(LENGTH FILES files)
if(NOT objects EQUAL files)
  message(FATAL_ERROR "${objects} objects are not of the ${files} sources ${FILES}")
endif()
set(bare ${OUTPUT}.bare.o)
set(rows)
foreach(object file IN ZIP_LISTS OBJECTS FILES)
  get_filename_component(name ${file} NAME)
  if(NOT object MATCHES "/${name}\\.(o|obj)$")
    message(FATAL_ERROR "object ${object} is not of source ${file}")
  endif()
  # What is left differs only where the code or its data does: no paths, lines, names of local symbols.
  execute_process(COMMAND ${OBJCOPY} --strip-unneeded --remove-section=.comment --remove-section=.note* ${object} ${bare}
                  COMMAND_ERROR_IS_FATAL ANY)
  file(SHA256 ${bare} hash)
  string(APPEND rows "    {\"${file}\", \"${hash}\"},\n")
endforeach()
file(REMOVE ${bare})
file(WRITE ${OUTPUT} "// Made from the objects of the kernels.\n#include \"harness/object_code.h\"\n
namespace moegate {\n[[maybe_unused]] static const bool known = register_objects({\n${rows}});\n}\n")
