# Makes one header of include/hloc_launch.h and those that it includes, which is what is installed:
#   cmake -DOUTPUT=FILE -P JoinLauncher.cmake
get_filename_component(include ${CMAKE_CURRENT_LIST_DIR}/../../../include ABSOLUTE)
file(READ ${include}/hloc_launch.h text)
string(REGEX REPLACE "// It is installed as one file[^\n]*\n" "" text "${text}")
foreach(part Execution Module Manifest Json Driver) # each after the one that includes it
  file(READ ${include}/hloc_launch/${part}.h inside)
  string(REPLACE "#pragma once\n" "" inside "${inside}")
  foreach(line "#include \"hloc_launch/${part}.h\"\n" "#include \"${part}.h\"\n")
    string(REPLACE "${line}" "${inside}" text "${text}")
  endforeach()
endforeach()
if(text MATCHES "#include \"")
  message(FATAL_ERROR "hloc_launch.h includes what is not joined: ${CMAKE_MATCH_0}")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "${text}" @ONLY NEWLINE_STYLE UNIX)
