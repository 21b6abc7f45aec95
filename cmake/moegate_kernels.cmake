# SPDX-License-Identifier: Apache-2.0
# How kernels are compiled: the same way in the tool, in folders that it is built with, and in modules that it
# loads (moegate_add_kernels, of the installed SDK). Installed beside object_code.cmake.
include_guard()
include(CheckCompilerFlag)
get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
if("CUDA" IN_LIST languages)
  check_compiler_flag(CUDA -frandom-seed=moegate nvcc_takes_seed)
  # CMake 3.25.1 does not know that nvcc has had C++20 since CUDA 12.
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  endif()
endif()

# moegate_gpu_code(SOURCE CHIP): nvcc's options for a .cu, and what it is for. A line "// chip: sm_90a (wgmma)" of the
# source says so: sm_90 is that and later chips, sm_90a is 9.0 alone. Without it: any, that is CMAKE_CUDA_ARCHITECTURES.
function(moegate_gpu_code source chip)
  file(STRINGS ${source} line REGEX "^// chip:" LIMIT_COUNT 1)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
  string(REGEX REPLACE "^// chip: " "" text "${line}")
  set(architectures ${CMAKE_CUDA_ARCHITECTURES})
  if(text MATCHES "^sm_([0-9]+)a")
    set(architectures ${CMAKE_MATCH_1}a-real)
  elseif(text MATCHES "^sm_([0-9]+)")
    set(least ${CMAKE_MATCH_1})
    set(architectures ${least}-virtual)
    foreach(one IN LISTS CMAKE_CUDA_ARCHITECTURES)
      if(one MATCHES "^([0-9]+)a?-real" AND NOT CMAKE_MATCH_1 LESS least)
        list(APPEND architectures ${one})
      endif()
    endforeach()
  elseif(line)
    message(FATAL_ERROR "${source}: '${line}' names no chip; write sm_90a, or sm_90 for that and later ones")
  else()
    set(text any)
  endif()
  foreach(one IN LISTS architectures)
    string(REGEX MATCH "^[0-9]+a?" number ${one})
    set(code sm_${number},compute_${number})
    if(one MATCHES "-real$")
      set(code sm_${number})
    elseif(one MATCHES "-virtual$")
      set(code compute_${number})
    endif()
    set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS --generate-code=arch=compute_${number},code=[${code}])
  endforeach()
  set(${chip} ${text} PARENT_SCOPE)
endfunction()

# moegate_kernel_objects(TARGET ROOT PREFIX SOURCES...): an object library, not an archive, so that the linker never
# drops a self-registration. What links it has a table of the hashes of its objects, in which a source below ROOT is
# called by its path there, behind PREFIX; so does the code (__FILE__). Checkouts in different places compile to the
# same objects.
function(moegate_kernel_objects target root prefix)
  set(sources ${ARGN})
  add_library(${target} OBJECT ${sources})
  set_target_properties(${target} PROPERTIES CUDA_ARCHITECTURES OFF)  # each source has its own
  # Where a function starts within a cache line decides by up to 20 % how fast it is: a new file must not move the
  # functions of the others. ccache may make paths relative to the build's.
  cmake_path(RELATIVE_PATH root BASE_DIRECTORY ${CMAKE_BINARY_DIR} OUTPUT_VARIABLE relative)
  set(maps -fmacro-prefix-map=${root}/=${prefix} -fmacro-prefix-map=${relative}/=${prefix})
  # ccache takes no notice of the paths in g++'s options, but does of those in nvcc's: they go into a file, named
  # from the build's folder, where Ninja compiles.
  set(paths ${CMAKE_BINARY_DIR}/generated/${target}_paths)
  list(JOIN maps "\"\n\"" lines)
  file(CONFIGURE OUTPUT ${paths} CONTENT "\"${lines}\"\n" @ONLY)
  if(CMAKE_GENERATOR MATCHES Ninja)
    cmake_path(RELATIVE_PATH paths BASE_DIRECTORY ${CMAKE_BINARY_DIR})
  endif()
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-falign-functions=64>
    "$<$<COMPILE_LANGUAGE:CXX>:${maps}>" $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=@${paths}>)

  set(files)
  set(chips)
  foreach(source IN LISTS sources)
    file(RELATIVE_PATH file ${root} ${source})
    list(APPEND files ${prefix}${file})
    set(chip any)
    if(source MATCHES "\\.cu$")
      moegate_gpu_code(${source} chip)
      # Else nvcc spells its process id in the names of a file that defines nothing for other files.
      if(nvcc_takes_seed)
        set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS -frandom-seed=${file})
      endif()
    endif()
    list(APPEND chips ${chip})
  endforeach()
  set(objects "$<FILTER:$<TARGET_OBJECTS:${target}>,INCLUDE,\\.o$>")
  set(table ${CMAKE_BINARY_DIR}/generated/${target}_code.cc)
  set(script ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/object_code.cmake)
  add_custom_command(OUTPUT ${table} DEPENDS ${objects} ${script} VERBATIM
    COMMAND ${CMAKE_COMMAND} "-DOBJECTS=${objects}" "-DFILES=${files}" "-DCHIPS=${chips}" -DOBJCOPY=${CMAKE_OBJCOPY} -DOUTPUT=${table}
            -P ${script}
    COMMENT "Hashing the code of ${target}")
  add_library(${target}_code OBJECT ${table})
  target_link_libraries(${target} INTERFACE $<TARGET_OBJECTS:${target}_code>)
endfunction()

# moegate_add_kernels(NAME SOURCES...): a module NAME.so of kernels for `moegate --module NAME.so`, from files of the
# current folder and those below it. It links nothing of moegate: the program that loads it has all of that.
function(moegate_add_kernels name)
  set(sources)
  foreach(source IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
    cmake_path(IS_PREFIX CMAKE_CURRENT_SOURCE_DIR ${source} inside)
    if(NOT EXISTS ${source} OR NOT inside)
      message(FATAL_ERROR "moegate_add_kernels(${name}): ${source} is no file in or below ${CMAKE_CURRENT_SOURCE_DIR}")
    endif()
    list(APPEND sources ${source})
  endforeach()
  if(NOT sources)
    message(FATAL_ERROR "moegate_add_kernels(${name}): no sources; name .cc and .cu files")
  endif()
  moegate_kernel_objects(${name}_objects ${CMAKE_CURRENT_SOURCE_DIR} ${name}/ ${sources})
  set(stamp ${CMAKE_CURRENT_BINARY_DIR}/${name}_stamp.cc)
  file(CONFIGURE OUTPUT ${stamp} CONTENT
    "#include \"harness/kernel/sdk.h\"\n[[gnu::used]] extern const char moegate_stamp[] = MOEGATE_STAMP;\n")
  add_library(${name} MODULE ${stamp})
  target_link_libraries(${name} PRIVATE ${name}_objects)
  foreach(part IN ITEMS ${name} ${name}_objects ${name}_objects_code)
    target_link_libraries(${part} PRIVATE moegate::sdk)
    set_target_properties(${part} PROPERTIES POSITION_INDEPENDENT_CODE ON
                          CXX_STANDARD 20 CXX_EXTENSIONS OFF CUDA_STANDARD 20)
  endforeach()
  # A helper that has the name of one of the program's is another: the module calls its own.
  target_link_options(${name} PRIVATE -Wl,-Bsymbolic -Wl,--exclude-libs,ALL)
  set_target_properties(${name} PROPERTIES PREFIX "" CUDA_RUNTIME_LIBRARY Static)
endfunction()
