# HLO files as a library of C++ functions:
#
#   hloc_add_kernels(TARGET kernels FILES gelu.hlo norm.hlo ARCHITECTURES sm_80 sm_90)
#   target_link_libraries(program PRIVATE kernels)        # and #include "kernels.h"
#
# makes a static library with one function for each file, named as the file is, and a header that declares them:
#
#   hloc_launch::Status gelu(const hloc_launch::bfloat16 *x /* bf16[6,512,4096] */, hloc_launch::bfloat16 *result0, CUstream_st *stream);
#
# Each file is compiled for each architecture when the library is built, anew when it or hloc has changed.
#
#   NAMESPACE ns       of the functions; by default the target's name. `a::b` is possible.
#   HEADER file.h      the header's name, below the build folder of the target; by default the target's name
#   FORMAT kind        what is embedded: fatbin (machine code and PTX), cubin (machine code alone) or ptx, which the driver
#                      compiles when it is first used; by default fatbin where hloc finds the tools for it, else ptx
#   OPTIONS ...        of hloc, such as --f32-dots=tf32
#
# Variables: HLOC_PROGRAM, by default the target hloc::program's; HLOC_LAUNCH_INCLUDE, the folder of hloc_launch.h, by
# default what stands beside this file's package.
include_guard(GLOBAL)
set(HLOC_KERNELS_FOLDER ${CMAKE_CURRENT_LIST_DIR})

# A name made an identifier; that of a C++ keyword gets an underscore, which may not be two in a row.
function(hloc_identifier variable text)
  string(MAKE_C_IDENTIFIER "${text}" name)
  string(REGEX REPLACE "__+" "_" name "${name}")
  set(keywords alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl concept const
      consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete do double
      dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable namespace new
      noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires return
      short signed sizeof static static_assert static_cast struct switch template this thread_local throw true try
      typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq)
  if(name IN_LIST keywords)
    string(APPEND name "_")
  endif()
  set(${variable} "${name}" PARENT_SCOPE)
endfunction()

# hloc_find_program(PROGRAM FORMAT wanted): the program, and a format for which it has tools.
function(hloc_find_program program format)
  if(NOT HLOC_PROGRAM)
    if(NOT TARGET hloc::program)
      message(FATAL_ERROR "hloc_add_kernels: neither HLOC_PROGRAM nor the target hloc::program says where hloc is")
    endif()
    get_target_property(HLOC_PROGRAM hloc::program LOCATION)
  endif()
  set(${program} "${HLOC_PROGRAM}" PARENT_SCOPE)
  if(NOT ${format})
    execute_process(COMMAND "${HLOC_PROGRAM}" --doctor OUTPUT_VARIABLE found ERROR_QUIET)
    if(found MATCHES "fatbinary: /" AND found MATCHES "(ptxas|nvjitlink): /")
      set(${format} fatbin PARENT_SCOPE)
    else()
      message(STATUS "hloc_add_kernels: hloc finds no ptxas and fatbinary; PTX is embedded, which the driver compiles when it is first used")
      set(${format} ptx PARENT_SCOPE)
    endif()
  elseif(NOT ${format} MATCHES "^(ptx|cubin|fatbin)$")
    message(FATAL_ERROR "hloc_add_kernels: FORMAT is ptx, cubin or fatbin, not ${${format}}")
  endif()
endfunction()

# Commands that make FOLDER/NAME.h and NAME.cpp of one file; they are appended to the list `sources`.
function(hloc_compile_kernel file name)
  set(made)
  foreach(architecture ${arg_ARCHITECTURES})
    set(base "${folder}/${name}.${architecture}")
    add_custom_command(OUTPUT "${base}.${arg_FORMAT}" "${base}.json"
      COMMAND "${program}" "${file}" "--target=${architecture}" "--emit=${arg_FORMAT}" -o "${base}.${arg_FORMAT}"
              "--manifest=${base}.json" ${arg_OPTIONS}
      DEPENDS "${file}" "${program}" COMMENT "hloc ${name} for ${architecture}" VERBATIM)
    list(APPEND made "${base}.${arg_FORMAT}" "${base}.json")
  endforeach()
  # Names of parameters are in the text alone.
  add_custom_command(OUTPUT "${folder}/${name}.hlo"
    COMMAND "${program}" "${file}" --emit=hlo -o "${folder}/${name}.hlo"
    DEPENDS "${file}" "${program}" COMMENT "hloc ${name}: its parameters" VERBATIM)
  get_filename_component(source "${file}" NAME)
  set(generator "${HLOC_KERNELS_FOLDER}/HlocKernelsGenerate.cmake")
  string(REPLACE ";" "," architectures "${arg_ARCHITECTURES}")
  add_custom_command(OUTPUT "${folder}/${name}.cpp" "${folder}/${name}.h"
    COMMAND ${CMAKE_COMMAND} "-DFOLDER=${folder}" "-DNAME=${name}" "-DSOURCE=${source}" "-DNAMESPACE=${arg_NAMESPACE}"
            "-DARCHITECTURES=${architectures}" "-DFORMAT=${arg_FORMAT}" -P "${generator}"
    DEPENDS ${made} "${folder}/${name}.hlo" "${generator}" "${HLOC_KERNELS_FOLDER}/HlocKernels.cmake"
    COMMENT "hloc ${name}: C++" VERBATIM)
  set(sources ${sources} "${folder}/${name}.cpp" "${folder}/${name}.h" PARENT_SCOPE)
endfunction()

function(hloc_add_kernels)
  cmake_parse_arguments(arg "" "TARGET;NAMESPACE;HEADER;FORMAT" "FILES;ARCHITECTURES;OPTIONS" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_TARGET OR NOT arg_FILES OR NOT arg_ARCHITECTURES)
    message(FATAL_ERROR "hloc_add_kernels(TARGET name FILES a.hlo ... ARCHITECTURES sm_80 ... [NAMESPACE ns] [HEADER file.h] "
                        "[FORMAT ptx|cubin|fatbin] [OPTIONS ...]): ${arg_UNPARSED_ARGUMENTS}")
  endif()
  foreach(architecture ${arg_ARCHITECTURES})
    if(NOT architecture MATCHES "^sm_[0-9]+[af]?$")
      message(FATAL_ERROR "hloc_add_kernels: an architecture is written sm_90, not ${architecture}")
    endif()
  endforeach()
  list(REMOVE_DUPLICATES arg_ARCHITECTURES)
  if(NOT arg_NAMESPACE)
    hloc_identifier(arg_NAMESPACE "${arg_TARGET}")
  endif()
  if(NOT arg_HEADER)
    set(arg_HEADER "${arg_TARGET}.h")
  endif()
  hloc_find_program(program arg_FORMAT)

  set(include "${CMAKE_CURRENT_BINARY_DIR}/${arg_TARGET}.include")
  set(folder "${include}/${arg_TARGET}.kernels")
  file(MAKE_DIRECTORY "${folder}")
  set(sources)
  set(header "#pragma once\n// Made by hloc_add_kernels.\n\n")
  foreach(file ${arg_FILES})
    get_filename_component(file "${file}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
    get_filename_component(stem "${file}" NAME_WLE)
    hloc_identifier(name "${stem}")
    if(DEFINED file_of_${name})
      message(FATAL_ERROR "hloc_add_kernels: ${file_of_${name}} and ${file} would both become `${name}`")
    endif()
    set(file_of_${name} "${file}")
    hloc_compile_kernel("${file}" "${name}")
    string(APPEND header "#include \"${arg_TARGET}.kernels/${name}.h\"\n")
  endforeach()
  file(CONFIGURE OUTPUT "${include}/${arg_HEADER}" CONTENT "${header}" @ONLY)

  add_library(${arg_TARGET} STATIC ${sources})
  target_compile_features(${arg_TARGET} PUBLIC cxx_std_17)
  if(NOT HLOC_LAUNCH_INCLUDE) # lib/cmake/hloc
    get_filename_component(HLOC_LAUNCH_INCLUDE "${HLOC_KERNELS_FOLDER}/../../../include" ABSOLUTE)
  endif()
  target_include_directories(${arg_TARGET} PUBLIC "${include}" "${HLOC_LAUNCH_INCLUDE}")
  target_link_libraries(${arg_TARGET} PUBLIC ${CMAKE_DL_LIBS})
endfunction()
