# Makes one header of include/hloc_launch.h and those that it includes, which is what is installed:
#   cmake -DOUTPUT=FILE -P JoinLauncher.cmake
get_filename_component(include ${CMAKE_CURRENT_LIST_DIR}/../../../include ABSOLUTE)
file(READ ${include}/hloc_launch.h text)
string(REGEX REPLACE "// It is installed as one file[^\n]*\n" "" text "${text}")
foreach(part Graph GraphApi Execution Module Manifest Json Driver Conditions) # each after the one that includes it
  file(READ ${include}/hloc_launch/${part}.h inside)
  string(REPLACE "#pragma once\n" "" inside "${inside}")
  foreach(line "#include \"hloc_launch/${part}.h\"\n" "#include \"${part}.h\"\n")
    string(FIND "${text}" "${line}" at)
    if(NOT at EQUAL -1) # the first time it stands there, and not again
      string(SUBSTRING "${text}" 0 ${at} before)
      string(SUBSTRING "${text}" ${at} -1 behind)
      string(REPLACE "${line}" "" behind "${behind}")
      set(text "${before}${inside}${behind}")
    endif()
  endforeach()
endforeach()
if(text MATCHES "#include \"")
  message(FATAL_ERROR "hloc_launch.h includes what is not joined: ${CMAKE_MATCH_0}")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "${text}" @ONLY NEWLINE_STYLE UNIX)
