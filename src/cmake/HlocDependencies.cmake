# LLVM and MLIR 22, CLI11, fmt, Catch2: all from Debian packages (scripts/setup installs them).
if(HLOC_STATIC)
  set(ZLIB_USE_STATIC_LIBS ON)
endif()
find_package(MLIR 22.1 REQUIRED CONFIG PATHS /usr/lib/llvm-22 NO_DEFAULT_PATH)
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include(TableGen)
include(AddLLVM)
include(AddMLIR)
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Catch2 2 REQUIRED)
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)

# Debian's static MLIR targets name the LLVM and MLIR *shared* libraries as their dependencies. Mixing both flavours in
# one binary links and then miscompiles, so the static build strips those names and lists the LLVM archives itself.
# tests/scripts/static-binary checks the result with readelf.
function(hloc_strip_dylib_dependencies)
  foreach(target ${MLIR_EXPORTED_TARGETS})
    if(TARGET ${target})
      get_target_property(libraries ${target} INTERFACE_LINK_LIBRARIES)
      if(libraries)
        list(REMOVE_ITEM libraries LLVM MLIR)
        set_target_properties(${target} PROPERTIES INTERFACE_LINK_LIBRARIES "${libraries}")
      endif()
    endif()
  endforeach()
endfunction()

# fmt, compiled once (Fmt.cpp says why not Debian's).
get_target_property(HLOC_FMT_INCLUDES fmt::fmt-header-only INTERFACE_INCLUDE_DIRECTORIES)
add_library(hloc_fmt STATIC ${CMAKE_SOURCE_DIR}/src/cmake/Fmt.cpp)
target_include_directories(hloc_fmt SYSTEM PUBLIC ${HLOC_FMT_INCLUDES})

# The MLIR and LLVM parts hloc uses; adding a dialect or conversion means adding it here for the static build.
set(HLOC_MLIR_PARTS
  ArithToLLVM ControlFlowToLLVM FuncToLLVM GPUToNVVMTransforms MathToLLVM NVVMToLLVM VectorToLLVM VectorToLLVMPass
  ComplexToStandard ComplexToLLVM UBToLLVM IndexToLLVM ReconcileUnrealizedCasts SCFToControlFlow AffineToStandard
  ArithDialect ArithTransforms ComplexDialect ControlFlowDialect DLTIDialect FuncDialect FuncInlinerExtension GPUDialect LLVMDialect NVVMDialect
  MathDialect MathTransforms SCFDialect SCFUtils SCFTransforms TensorDialect UBDialect VectorDialect VectorTransforms
  IR Parser AsmParser Pass Transforms TransformUtils
  BuiltinToLLVMIRTranslation GPUToLLVMIRTranslation LLVMToLLVMIRTranslation NVVMToLLVMIRTranslation TargetLLVMIRExport)
set(HLOC_LLVM_PARTS Core Support IRReader BitReader BitWriter Linker Passes NVPTXCodeGen NVPTXDesc NVPTXInfo
  X86CodeGen X86Desc X86Info X86AsmParser OrcJIT Target MC Analysis TransformUtils)

# Link interface used by every layer that needs MLIR (hloc::mlir) or only LLVM (hloc::llvm).
add_library(hloc_llvm INTERFACE)
add_library(hloc_mlir INTERFACE)
target_include_directories(hloc_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
target_include_directories(hloc_mlir SYSTEM INTERFACE ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
separate_arguments(HLOC_LLVM_DEFINITIONS NATIVE_COMMAND "${LLVM_DEFINITIONS}")
target_compile_options(hloc_llvm INTERFACE ${HLOC_LLVM_DEFINITIONS})
if(HLOC_STATIC)
  hloc_strip_dylib_dependencies()
  llvm_map_components_to_libnames(HLOC_LLVM_LIBRARIES ${HLOC_LLVM_PARTS})
  list(TRANSFORM HLOC_MLIR_PARTS PREPEND MLIR OUTPUT_VARIABLE HLOC_MLIR_LIBRARIES)
  target_link_libraries(hloc_llvm INTERFACE ${HLOC_LLVM_LIBRARIES})
  target_link_libraries(hloc_mlir INTERFACE ${HLOC_MLIR_LIBRARIES} hloc_llvm)
  # LLVM names zstd's shared library whatever it is linked with.
  find_library(HLOC_ZSTD_ARCHIVE libzstd.a)
  if(HLOC_ZSTD_ARCHIVE AND TARGET zstd::libzstd_shared)
    set_target_properties(zstd::libzstd_shared PROPERTIES IMPORTED_LOCATION ${HLOC_ZSTD_ARCHIVE}
                                                          IMPORTED_LOCATION_NONE ${HLOC_ZSTD_ARCHIVE})
  endif()
  # At a fixed address there is nothing to relocate: 1.2 of the 20 ms that gelu takes.
  add_link_options(-static-libstdc++ -static-libgcc -no-pie -Wl,-O2 -s)
else()
  target_link_libraries(hloc_llvm INTERFACE LLVM)
  target_link_libraries(hloc_mlir INTERFACE MLIR hloc_llvm)
endif()
add_link_options(-fuse-ld=lld -Wl,--gc-sections -Wl,--as-needed -Wl,--build-id)
add_compile_options(-Wall -Wextra -Werror -Wno-unused-parameter -ffunction-sections -fdata-sections
                    -fvisibility=hidden -fvisibility-inlines-hidden)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  # libstdc++ 12 calls its own deprecated get_temporary_buffer in stable_sort.
  add_compile_options(-Xclang -fno-pch-timestamp -fpch-instantiate-templates -Wno-deprecated-declarations)
endif()
if(HLOC_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize=vptr -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()
if(HLOC_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
