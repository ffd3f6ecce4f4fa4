#pragma once
// The xla_gpu dialect: loops over indexing maps, pure calls, shared memory, warp reductions (src/dialect/RATIONALE.md).
//
//   #map = #xla_gpu.indexing_map<"(th_x, bl_x)[s0] -> (bl_x * 512 + th_x * 4 + s0), domain: th_x in [0, 127],
//                                 bl_x in [0, 1], s0 in [0, 3]">
//   %r = xla_gpu.loop (%t, %b)[%s] -> (%i) in #map iter_args(%acc = %out) -> (tensor<1024xf32>) {
//     %v = xla_gpu.pure_call @neg(%in, %i) : (tensor<1024xf32>, index) -> f32
//     %n = tensor.insert %v into %acc[%i] : tensor<1024xf32>
//     xla_gpu.yield %n : tensor<1024xf32>
//   }

#include "hloc/indexing/IndexingMap.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialect/XlaGpuDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/XlaGpuAttrs.h.inc"

#define GET_OP_CLASSES
#include "dialect/XlaGpuOps.h.inc"

namespace hloc::xla_gpu {

/// Names of the discardable attributes of the dialect's protocol (XlaGpuDialect.td says what each means).
namespace attr {
inline constexpr llvm::StringLiteral entry = "xla_gpu.entry";
inline constexpr llvm::StringLiteral block = "xla_gpu.block";
inline constexpr llvm::StringLiteral grid = "xla_gpu.grid";
inline constexpr llvm::StringLiteral registers = "xla_gpu.registers";
/// All shared memory of a kernel, in bytes, where that is more than can be had without asking at the launch.
inline constexpr llvm::StringLiteral dynamicShared = "xla_gpu.dynamic_shared";
inline constexpr llvm::StringLiteral sliceIndex = "xla_gpu.slice_index";
inline constexpr llvm::StringLiteral invariant = "xla_gpu.invariant";
inline constexpr llvm::StringLiteral range = "xla_gpu.range";
inline constexpr llvm::StringLiteral noCompute = "xla_gpu.no_compute";
/// Of an argument of the entry: a tensor map, by value.
inline constexpr llvm::StringLiteral tensorMap = "xla_gpu.tensor_map";
/// Of a loop: so many iterations become one, if there are more. (Else its body's size says how many.)
inline constexpr llvm::StringLiteral unroll = "xla_gpu.unroll";
/// On the module, by lower-index: width of `index`, 32 or 64.
inline constexpr llvm::StringLiteral indexBits = "xla_gpu.index_bits";
} // namespace attr

/// As the driver makes them (CUtensorMap).
inline constexpr int64_t bytesOfTensorMap = 128;

/// The attribute value of `xla_gpu.range`.
mlir::ArrayAttr rangeAttr(mlir::MLIRContext *context, Interval interval);

/// What is known about an index value: constants, `xla_gpu.range`, results of apply_indexing, induction variables of
/// scf.for with constant bounds, arguments of xla_gpu.loop. Nothing if unknown.
std::optional<Interval> rangeOf(mlir::Value value);

/// What a lane has of factors of such elements and of their sums, of one product of a warp (multiply_fragments); all
/// null if there are none.
struct FragmentTypes {
  mlir::VectorType lhs, rhs, sums;
};
FragmentTypes fragmentTypes(mlir::Type element);

} // namespace hloc::xla_gpu
