# find_package(hloc) gives
#   hloc::hloc      the shared library: hloc.h, hloc.hpp
#   hloc::static    the same as an archive, if it is installed
#   hloc::launch    hloc_launch.h alone, for programs that execute what hloc has compiled
#   hloc::program   the program
#   hloc_add_kernels(TARGET FILES... ARCHITECTURES ...)     HlocKernels.cmake
get_filename_component(hloc_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

if(NOT TARGET hloc::hloc)
  add_library(hloc::hloc SHARED IMPORTED)
  set_target_properties(hloc::hloc PROPERTIES IMPORTED_LOCATION "${hloc_prefix}/lib/libhloc.so" IMPORTED_SONAME libhloc.so.1
                        INTERFACE_INCLUDE_DIRECTORIES "${hloc_prefix}/include")
endif()
if(NOT TARGET hloc::static AND EXISTS "${hloc_prefix}/lib/libhloc.a")
  find_package(Threads REQUIRED)
  add_library(hloc::static STATIC IMPORTED)
  set_target_properties(hloc::static PROPERTIES IMPORTED_LOCATION "${hloc_prefix}/lib/libhloc.a"
                        INTERFACE_INCLUDE_DIRECTORIES "${hloc_prefix}/include"
                        INTERFACE_COMPILE_DEFINITIONS HLOC_STATIC_LIBRARY
                        INTERFACE_LINK_LIBRARIES "stdc++;m;dl;Threads::Threads")
endif()
if(NOT TARGET hloc::launch)
  add_library(hloc::launch INTERFACE IMPORTED)
  set_target_properties(hloc::launch PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${hloc_prefix}/include"
                        INTERFACE_LINK_LIBRARIES "dl")
endif()
if(NOT TARGET hloc::program)
  add_executable(hloc::program IMPORTED)
  set_target_properties(hloc::program PROPERTIES IMPORTED_LOCATION "${hloc_prefix}/bin/hloc")
endif()
include("${CMAKE_CURRENT_LIST_DIR}/HlocKernels.cmake")
