# hloc_layer(<name> [LIBRARIES <target>...] [OPTIONS <compiler option>...])
#
# One static library `hloc_<name>` a layer: all .cpp files under src/<name>, public headers under include/hloc/<name>.
# New files are picked up without editing a list. What a layer may include, and so links, is its line in src/layers.txt.
# MLIR layers share one precompiled header, the others, which see LLVM's support headers only, another.
set(HLOC_LAYERS)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/layers.txt)
file(STRINGS ${CMAKE_SOURCE_DIR}/src/layers.txt lines REGEX "^[a-z]")
foreach(line ${lines})
  string(REGEX MATCH "^([a-z]+)( mlir)?:(.*)$" matched "${line}")
  if(NOT matched)
    message(FATAL_ERROR "src/layers.txt: `${line}` is not `name [mlir]: layers`")
  endif()
  set(name ${CMAKE_MATCH_1})
  set(HLOC_LAYER_MLIR_${name} ${CMAKE_MATCH_2})
  separate_arguments(below UNIX_COMMAND "${CMAKE_MATCH_3}")
  if(below STREQUAL "all")
    set(below ${HLOC_LAYERS})
  endif()
  set(HLOC_LAYER_DEPENDS_${name} ${below})
  list(APPEND HLOC_LAYERS ${name})
endforeach()

function(hloc_layer name)
  cmake_parse_arguments(LAYER "" "" "LIBRARIES;OPTIONS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  set_property(GLOBAL APPEND PROPERTY HLOC_LAYERS ${name})
  set(target hloc_${name})
  if(NOT sources) # a header-only layer
    add_library(${target} INTERFACE)
    target_include_directories(${target} INTERFACE ${CMAKE_SOURCE_DIR}/include)
    foreach(layer ${HLOC_LAYER_DEPENDS_${name}})
      target_link_libraries(${target} INTERFACE hloc_${layer})
    endforeach()
    target_link_libraries(${target} INTERFACE ${LAYER_LIBRARIES})
    return()
  endif()
  add_library(${target} STATIC ${sources})
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
  target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR}/include PRIVATE ${CMAKE_SOURCE_DIR}/src)
  foreach(layer ${HLOC_LAYER_DEPENDS_${name}})
    target_link_libraries(${target} PUBLIC hloc_${layer})
  endforeach()
  target_link_libraries(${target} PUBLIC ${LAYER_LIBRARIES})
  if(HLOC_LAYER_MLIR_${name})
    target_link_libraries(${target} PUBLIC hloc_mlir)
    target_precompile_headers(${target} REUSE_FROM hloc_mlir_pch)
  else()
    target_link_libraries(${target} PUBLIC hloc_llvm)
    set(pch hloc_plain_pch)
    if(LAYER_OPTIONS) # a header is compiled by the options that it is used with
      set(pch hloc_${name}_pch)
      hloc_pch(${pch} hloc_llvm ${HLOC_PLAIN_HEADERS})
      target_compile_options(${pch} PRIVATE ${LAYER_OPTIONS})
      target_compile_options(${target} PRIVATE ${LAYER_OPTIONS})
    endif()
    target_precompile_headers(${target} REUSE_FROM ${pch})
  endif()
endfunction()

# Precompiled headers. No header of hloc is in them: to change one would build everything again.
function(hloc_pch name library)
  add_library(${name} OBJECT ${CMAKE_SOURCE_DIR}/src/cmake/Pch.cpp)
  target_link_libraries(${name} PUBLIC hloc_fmt ${library})
  target_precompile_headers(${name} PRIVATE ${ARGN})
endfunction()
set(HLOC_PLAIN_HEADERS
  <algorithm> <array> <atomic> <chrono> <complex> <condition_variable> <deque> <filesystem> <fstream> <functional> <map>
  <memory> <mutex> <optional> <random> <set> <sstream> <string> <thread> <variant> <vector> <fmt/format.h>
  <llvm/ADT/ArrayRef.h> <llvm/ADT/BitVector.h> <llvm/ADT/DenseMap.h> <llvm/ADT/DenseSet.h> <llvm/ADT/STLExtras.h>
  <llvm/ADT/SmallVector.h> <llvm/ADT/StringMap.h> <llvm/ADT/StringRef.h> <llvm/ADT/Twine.h>
  <llvm/Support/Allocator.h> <llvm/Support/Error.h> <llvm/Support/LogicalResult.h> <llvm/Support/raw_ostream.h>)
set(HLOC_MLIR_HEADERS
  ${HLOC_PLAIN_HEADERS}
  <mlir/Dialect/Arith/IR/Arith.h> <mlir/Dialect/Complex/IR/Complex.h> <mlir/Dialect/Func/IR/FuncOps.h>
  <mlir/Dialect/GPU/IR/GPUDialect.h> <mlir/Dialect/LLVMIR/LLVMDialect.h> <mlir/Dialect/Math/IR/Math.h>
  <mlir/Dialect/SCF/IR/SCF.h> <mlir/Dialect/Tensor/IR/Tensor.h> <mlir/Dialect/Vector/IR/VectorOps.h>
  <mlir/IR/AffineExpr.h> <mlir/IR/AffineMap.h> <mlir/IR/BuiltinOps.h> <mlir/Pass/Pass.h> <mlir/Pass/PassManager.h>
  <mlir/Transforms/DialectConversion.h> <mlir/Transforms/GreedyPatternRewriteDriver.h>
  <llvm/IR/IRBuilder.h> <llvm/IR/InstIterator.h> <llvm/IR/IntrinsicInst.h> <llvm/IR/IntrinsicsNVPTX.h> <llvm/IR/Module.h>
  <llvm/IR/PatternMatch.h>)
hloc_pch(hloc_plain_pch hloc_llvm ${HLOC_PLAIN_HEADERS})
hloc_pch(hloc_mlir_pch hloc_mlir ${HLOC_MLIR_HEADERS})
