# SPDX-License-Identifier: Apache-2.0
# Writes the C++ file OUTPUT, which registers a hash of every object's code, and lists what the GPU code of every
# .cu is known by in the linked program (harness/kernel/object_code.h). OBJECTS are object files and FILES, in the
# same order, the names of their sources; CHIPS what each is for ("any"); OBJCOPY is binutils' program.
list(LENGTH OBJECTS objects)
list(LENGTH FILES files)
if(NOT objects EQUAL files)
  message(FATAL_ERROR "${objects} objects are not of the ${files} sources ${FILES}")
endif()
set(bare ${OUTPUT}.bare.o)
set(empty ${OUTPUT}.empty)
file(WRITE ${empty} "")
set(gpu_code ${OUTPUT}.fatbin)
set(rows)
set(lines)
foreach(object file chip IN ZIP_LISTS OBJECTS FILES CHIPS)
  get_filename_component(name ${file} NAME)
  if(NOT object MATCHES "/${name}\\.(o|obj)$")
    message(FATAL_ERROR "object ${object} is not of source ${file}")
  endif()
  set(drop --remove-section=.comment --remove-section=.note*)
  if(name MATCHES "\\.cu$")
    execute_process(COMMAND ${OBJCOPY} --output-target=binary --only-section=.nv_fatbin ${object} ${gpu_code}
                    COMMAND_ERROR_IS_FATAL ANY)
    file(SHA256 ${gpu_code} hash)
    string(APPEND lines "    \"${hash} ${file}\\n\"\n")
    # The host half: the GPU program goes (it is hashed where it runs), and so does the id that nvcc makes of the
    # path and spells in the names of what is in unnamed namespaces, in symbols, strings and sections.
    string(REGEX REPLACE "[^A-Za-z0-9]" "_" id ${name})
    execute_process(COMMAND ${CMAKE_COMMAND} -E env LC_ALL=C
                    sed -E "s/[0-9a-f]{8}(_[0-9]+_${id}_)[0-9a-f]{8}/00000000\\100000000/g" ${object}
                    OUTPUT_FILE ${bare} COMMAND_ERROR_IS_FATAL ANY)
    set(object ${bare})
    list(APPEND drop --update-section=.nv_fatbin=${empty})
  endif()
  # What is left differs only where the code or its data does: no paths, lines, names of local symbols.
  execute_process(COMMAND ${OBJCOPY} --strip-unneeded ${drop} ${object} ${bare} COMMAND_ERROR_IS_FATAL ANY)
  file(SHA256 ${bare} hash)
  string(APPEND rows "    {\"${file}\", \"${hash}\", \"${chip}\"},\n")
endforeach()
file(REMOVE ${bare} ${empty} ${gpu_code})
if(lines)
  set(lines "[[gnu::used]] static const char gpu_code[] =\n    MOEGATE_GPU_CODE_MARK\n${lines}    ;\n")
endif()
file(WRITE ${OUTPUT} "// Made from the objects of the kernels.\n#include \"harness/kernel/object_code.h\"\n
namespace moegate {\n[[maybe_unused]] static const bool known = register_objects({\n${rows}});\n${lines}}\n")
