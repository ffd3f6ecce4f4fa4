# Makes FOLDER/NAME.h and NAME.cpp of what hloc has made of one file: NAME.hlo, and for each of ARCHITECTURES
# NAME.ARCHITECTURE.FORMAT and .json. HlocKernels.cmake calls it:
#   cmake -DFOLDER= -DNAME= -DSOURCE= -DNAMESPACE= -DARCHITECTURES=sm_80,sm_90 -DFORMAT= -P HlocKernelsGenerate.cmake
cmake_minimum_required(VERSION 3.20)
include(${CMAKE_CURRENT_LIST_DIR}/HlocKernels.cmake)

function(refuse)
  message(FATAL_ERROR "hloc_add_kernels, ${SOURCE}: " ${ARGN})
endfunction()

# The type of an array's elements, by its shape.
function(element_type variable shape)
  string(REGEX MATCH "^[a-z0-9]+" name "${shape}")
  foreach(row pred=bool s8=int8_t s16=int16_t s32=int32_t s64=int64_t u8=uint8_t u16=uint16_t u32=uint32_t u64=uint64_t
          f16=hloc_launch::float16 bf16=hloc_launch::bfloat16 f32=float f64=double c64=std::complex<float>
          c128=std::complex<double> f4e2m1fn=hloc_launch::packed)
    if(row MATCHES "^${name}=(.*)$")
      set(${variable} "${CMAKE_MATCH_1}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  if(name MATCHES "^[su][124]$")
    set(${variable} "hloc_launch::packed" PARENT_SCOPE)
  elseif(name MATCHES "^f[68]e")
    set(${variable} "hloc_launch::float8" PARENT_SCOPE)
  else()
    set(${variable} "void" PARENT_SCOPE)
  endif()
endfunction()

# Names of the entry's parameters in order, as the HLO has them.
function(parameter_names variable)
  file(STRINGS "${FOLDER}/${NAME}.hlo" line REGEX "^ENTRY " LIMIT_COUNT 1)
  string(REGEX REPLACE "\\) -> .*" "" line "${line}")
  string(REGEX REPLACE "^ENTRY [^(]*" "" line "${line}")
  string(REGEX MATCHALL "[^(), ]+: " names "${line}")
  string(REPLACE ": " "" names "${names}")
  set(${variable} "${names}" PARENT_SCOPE)
endfunction()

# `[0, 1]` as `_0_1`; of no numbers nothing.
function(leaf_text variable leaf)
  string(REGEX MATCHALL "[0-9]+" numbers "${leaf}")
  list(TRANSFORM numbers PREPEND "_")
  string(JOIN "" text ${numbers})
  set(${variable} "${text}" PARENT_SCOPE)
endfunction()

# A row for each argument: NAME|TYPE|SHAPE|BYTES|ROLE, where the role is input, donated, result, or of results that are
# left in an argument, inplace. Inputs come in the order of the parameters and of their leaves, as Module::inputs() does.
function(read_arguments variable manifest)
  file(READ "${manifest}" text)
  if(text MATCHES "\"kind\": \"(external|library-call|unsupported)\"")
    refuse("it has a step of kind `${CMAKE_MATCH_1}`, which an embedded module cannot carry out")
  endif()
  string(JSON buffers GET "${text}" buffers)
  string(JSON results GET "${text}" results)
  set(text)
  parameter_names(names)
  set(rows)
  string(JSON count LENGTH "${buffers}")
  set(index 0)
  while(index LESS count)
    string(JSON buffer GET "${buffers}" ${index})
    string(JSON kind GET "${buffer}" kind)
    string(JSON donated ERROR_VARIABLE absent GET "${buffer}" donated)
    set(donated_${index} FALSE)
    if(kind STREQUAL "parameter")
      read_argument(row "${buffer}" "${names}")
      if(donated STREQUAL "ON")
        set(donated_${index} TRUE)
        string(REPLACE "|input" "|donated" row "${row}")
      endif()
      list(APPEND rows "${row}")
    endif()
    math(EXPR index "${index} + 1")
  endwhile()
  list(SORT rows COMPARE NATURAL)
  list(TRANSFORM rows REPLACE "^[0-9_]*\\|" "")
  string(JSON count LENGTH "${results}")
  set(index 0)
  while(index LESS count)
    string(JSON shape GET "${results}" ${index} shape)
    string(JSON bytes GET "${results}" ${index} slice bytes)
    string(JSON buffer GET "${results}" ${index} slice buffer)
    element_type(type "${shape}")
    if(donated_${buffer})
      list(APPEND rows "result${index}|${type}|${shape}|${bytes}|inplace")
    else()
      list(APPEND rows "result${index}|${type}|${shape}|${bytes}|result")
    endif()
    math(EXPR index "${index} + 1")
  endwhile()
  set(${variable} "${rows}" PARENT_SCOPE)
endfunction()

# The row of a parameter's buffer, behind what it is sorted by.
function(read_argument variable buffer names)
  string(JSON shape GET "${buffer}" shape)
  string(JSON bytes GET "${buffer}" bytes)
  string(JSON number GET "${buffer}" parameter)
  string(JSON leaf GET "${buffer}" leaf)
  leaf_text(leaf "${leaf}")
  set(name "p${number}")
  list(LENGTH names known)
  if(number LESS known)
    list(GET names ${number} name)
  endif()
  hloc_identifier(name "${name}${leaf}")
  element_type(type "${shape}")
  set(${variable} "${number}${leaf}|${name}|${type}|${shape}|${bytes}|input" PARENT_SCOPE)
endfunction()

# Sets `declaration`, `call`, `sizes` and `comment` by the rows of the arguments.
macro(describe_arguments)
  set(declaration)
  set(inputs)
  set(outputs)
  set(sizes)
  set(comment)
  set(taken)
  foreach(row ${rows})
    string(REPLACE "|" ";" row "${row}")
    list(POP_FRONT row name type shape bytes role)
    string(REGEX REPLACE "{.*" "" short "${shape}")
    if(role STREQUAL "inplace")
      list(APPEND outputs "0")
      string(APPEND comment "/// ${name} is left in the place of the argument that it overwrites.\n")
      continue()
    endif()
    if(name IN_LIST taken)
      refuse("two parameters or results would both be called `${name}`")
    endif()
    list(APPEND taken "${name}")
    set(allocated ${bytes})
    if(type STREQUAL "hloc_launch::packed") # stored by whole words
      math(EXPR allocated "(${bytes} + 3) / 4 * 4")
    endif()
    if(role STREQUAL "input")
      set(type "const ${type}")
    endif()
    list(APPEND declaration "${type} *${name} /* ${short} */")
    list(APPEND sizes "${name} = ${allocated}")
    set(what "${role}")
    if(role STREQUAL "donated")
      set(what "input, overwritten with a result")
    endif()
    string(APPEND comment "///   ${name}: ${shape}, ${allocated} bytes, ${what}\n")
    if(role STREQUAL "result")
      list(APPEND outputs "hloc_launch::addressOf(${name})")
    else()
      list(APPEND inputs "hloc_launch::addressOf(${name})")
    endif()
  endforeach()
  if("stream" IN_LIST taken)
    refuse("a parameter is called `stream`, which the function's last one is")
  endif()
  list(APPEND declaration "CUstream_st *stream")
  string(JOIN ",\n    " declaration ${declaration})
  string(JOIN ", " inputs ${inputs})
  string(JOIN ", " outputs ${outputs})
  string(JOIN ", " sizes ${sizes})
endmacro()

# A file as numbers of 8 bytes, with at least one 0 behind it: PTX ends there. Sets its size as well.
function(embed variable size file)
  file(SIZE "${file}" bytes)
  file(READ "${file}" digits HEX)
  math(EXPR missing "16 - (${bytes} * 2) % 16")
  string(REPEAT "0" ${missing} padding)
  string(APPEND digits "${padding}")
  string(REGEX REPLACE "(..)(..)(..)(..)(..)(..)(..)(..)" "0x\\8\\7\\6\\5\\4\\3\\2\\1," text "${digits}")
  string(REPEAT "0x................," 6 line)
  string(REGEX REPLACE "(${line})" "\\1\n" text "${text}")
  set(${variable} "${text}" PARENT_SCOPE)
  set(${size} ${bytes} PARENT_SCOPE)
endfunction()

string(REPLACE "," ";" architectures "${ARCHITECTURES}")
set(arrays)
set(variants)
set(rows)
foreach(architecture ${architectures})
  read_arguments(of_this "${FOLDER}/${NAME}.${architecture}.json")
  if(rows AND NOT rows STREQUAL of_this)
    refuse("its parameters or results differ between the architectures ${ARCHITECTURES}")
  endif()
  set(rows "${of_this}")
  embed(manifest manifest_size "${FOLDER}/${NAME}.${architecture}.json")
  embed(image image_size "${FOLDER}/${NAME}.${architecture}.${FORMAT}")
  string(APPEND arrays "alignas(16) const uint64_t manifest_${architecture}[] = {\n${manifest}};\n"
                       "alignas(16) const uint64_t image_${architecture}[] = {\n${image}};\n\n")
  string(REGEX MATCH "[0-9]+" number ${architecture})
  set(reach Later)
  if(architecture MATCHES "[af]$")
    set(reach ItselfAlone)
  elseif(FORMAT STREQUAL "cubin")
    set(reach SameMajor)
  endif()
  string(APPEND variants "      {${number},\n       hloc_launch::Variant::Reach::${reach},\n"
                         "       {reinterpret_cast<const char *>(manifest_${architecture}), ${manifest_size}},\n"
                         "       {image_${architecture}, ${image_size}}},\n")
endforeach()
describe_arguments()
string(REPLACE "," ", " listed "${ARCHITECTURES}")

if(sizes)
  set(sizes "
/// Bytes to allocate for its arrays.
struct ${NAME}_bytes {
  static constexpr unsigned long long ${sizes};
};
")
endif()

set(header "#pragma once
// Made by hloc_add_kernels of ${SOURCE}.

#include <hloc_kernels.h>

namespace ${NAMESPACE} {

/// ${SOURCE}, compiled for ${listed}. Arrays are on the device; the work is enqueued on \`stream\`.
${comment}[[nodiscard]] hloc_launch::Status ${NAME}(
    ${declaration});
${sizes}
} // namespace ${NAMESPACE}
")
set(source "// Made by hloc_add_kernels of ${SOURCE}.

#include \"${NAME}.h\"

namespace {

${arrays}/// Never destroyed: the driver may be gone before the end of the program.
hloc_launch::EmbeddedModule &embedded() {
  static const hloc_launch::Variant variants[] = {
${variants}  };
  static hloc_launch::EmbeddedModule &made = *new hloc_launch::EmbeddedModule(variants);
  return made;
}

} // namespace

hloc_launch::Status ${NAMESPACE}::${NAME}(
    ${declaration}) {
  return embedded().run({${inputs}}, {${outputs}}, stream);
}
")
file(CONFIGURE OUTPUT "${FOLDER}/${NAME}.h" CONTENT "${header}" @ONLY)
file(CONFIGURE OUTPUT "${FOLDER}/${NAME}.cpp" CONTENT "${source}" @ONLY)
file(TOUCH_NOCREATE "${FOLDER}/${NAME}.h" "${FOLDER}/${NAME}.cpp")
