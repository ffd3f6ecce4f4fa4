# How what is given to users is linked, beyond what tests are: less of LLVM, and for older systems (static builds only).

# All archives of LLVM and MLIR that `targets` bring.
function(hloc_archives result)
  set(todo ${ARGN})
  set(seen)
  set(archives)
  while(todo)
    list(POP_FRONT todo target)
    if(NOT TARGET ${target} OR target IN_LIST seen)
      continue()
    endif()
    list(APPEND seen ${target})
    get_target_property(below ${target} INTERFACE_LINK_LIBRARIES)
    if(below)
      list(APPEND todo ${below})
    endif()
    get_target_property(kind ${target} TYPE)
    if(target MATCHES "^(LLVM|MLIR)" AND kind STREQUAL "STATIC_LIBRARY")
      get_target_property(location ${target} LOCATION)
      list(APPEND archives ${location})
    endif()
  endwhile()
  set(${result} ${archives} PARENT_SCOPE)
endfunction()

if(HLOC_STATIC)
  # No exception passes through LLVM, which is compiled without them: a tenth of the program would be tables for it. The
  # linker takes copies of the archives that have none.
  set(lean_archives ${CMAKE_BINARY_DIR}/llvm)
  set(lean_stamp ${lean_archives}/archives.stamp)
  set(left_out_options ${lean_archives}/left-out.rsp)
  hloc_archives(archives hloc_mlir)
  set(left_out ${CMAKE_SOURCE_DIR}/src/tools/portable/LeftOut.txt)
  set(lean_script ${CMAKE_SOURCE_DIR}/src/cmake/lean-archives)
  list(JOIN archives "\n" archive_lines)
  file(GENERATE OUTPUT ${lean_archives}/archives.txt CONTENT "${archive_lines}\n")
  add_custom_command(OUTPUT ${lean_stamp} ${left_out_options}
    COMMAND ${lean_script} ${LLVM_TOOLS_BINARY_DIR} ${lean_archives} ${left_out}
    DEPENDS ${lean_script} ${left_out} ${lean_archives}/archives.txt ${archives}
    COMMENT "Leaving out of LLVM's archives what hloc does not use" VERBATIM)
  add_custom_target(hloc_lean_archives DEPENDS ${lean_stamp} ${left_out_options})
endif()

# hloc_small(<target> [RELOCATABLE]): it becomes as small as it can be.
function(hloc_small target)
  if(NOT HLOC_STATIC)
    return()
  endif()
  add_dependencies(${target} hloc_lean_archives)
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${lean_stamp})
  target_sources(${target} PRIVATE ${CMAKE_SOURCE_DIR}/src/tools/portable/LeftOut.cpp)
  # No function's address is compared with another's: equal ones can be one. A relocatable object is left as it is.
  if(NOT "${ARGN}" STREQUAL RELOCATABLE)
    target_link_options(${target} PRIVATE -Wl,--icf=all)
  endif()
  target_link_options(${target} PRIVATE -Wl,--remap-inputs-file=${lean_archives}/remap.txt
                      -Wl,@${left_out_options})
endfunction()

# `target` runs where glibc is 2.28 or later.
function(hloc_portable target)
  if(NOT HLOC_STATIC)
    return()
  endif()
  target_sources(${target} PRIVATE ${CMAKE_SOURCE_DIR}/src/tools/portable/OldGlibc.c
                                   ${CMAKE_SOURCE_DIR}/src/tools/portable/OldFunctions.S)
  # Where glibc was not one library yet.
  target_link_options(${target} PRIVATE -Wl,--no-as-needed,-l:libpthread.so.0,-l:libdl.so.2,--as-needed)
endfunction()
