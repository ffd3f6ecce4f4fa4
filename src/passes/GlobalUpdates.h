#pragma once
// Reductions and relaxed stores on global memory, at device scope. Nothing is returned, so these are `red`, never
// `atom`:
//
//   red.relaxed.gpu.global.add.v4.f32 [address], {x, y, z, w};      st.relaxed.gpu.global.b32 [address], x;
//
// LLVM 22 has neither `red` nor vectors of either, so they are assembler text.

#include "passes/TensorMemory.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <string>

namespace hloc {

/// What PTX calls the reduction of an element, with its type: `add.f32`; empty if there is none.
std::string reductionName(mlir::LLVM::AtomicBinOp kind, mlir::Type type);

/// Updates of the elements behind one pointer to global memory.
class GlobalUpdates {
public:
  /// `pointer`: of any address space.
  GlobalUpdates(mlir::Value pointer, MemoryBuilder &memory, mlir::OpBuilder &builder, mlir::Location loc,
                int64_t computeCapability);

  /// `red.OPERATION` with these operands at element `index`.
  void reduce(const llvm::Twine &operation, mlir::Value index, mlir::Type element,
              llvm::ArrayRef<mlir::Value> operands);
  /// One reduction of an element; false if there is no such instruction.
  bool reduceOne(mlir::LLVM::AtomicBinOp kind, mlir::Value index, mlir::Value operand);
  /// Adds to a 16-bit float through the pair that it is part of: the addition of one alone is a loop on all targets.
  /// The other is added -0 to, which changes nothing.
  void addHalf(mlir::Value index, mlir::Value operand);
  /// And, or, exclusive or on an element that is part of a word, through the word: the rest of it stays as it is.
  void updateBits(mlir::LLVM::AtomicBinOp kind, mlir::Value index, mlir::Value operand, const ElementStorage &storage);
  /// Does the target add to such pairs?
  bool hasPairs(mlir::Type type) const { return type.isF16() || (type.isBF16() && computeCapability >= 90); }
  /// Adds `operands`, the elements from `index` on, which is aligned to all of them.
  void addVector(mlir::Value index, llvm::ArrayRef<mlir::Value> operands);
  /// Stores `elements`, of whole bytes, from `index` on, which is aligned to all of them.
  void store(mlir::Value index, llvm::ArrayRef<mlir::Value> elements);

private:
  /// The bits of neighbouring elements in words of `wordBits`.
  llvm::SmallVector<mlir::Value> asWords(llvm::ArrayRef<mlir::Value> elements, unsigned wordBits);
  void emit(const std::string &instruction, mlir::Value address, llvm::ArrayRef<mlir::Value> operands);

  MemoryBuilder &memory;
  mlir::OpBuilder &builder;
  mlir::Location loc;
  int64_t computeCapability;
  mlir::Value pointer;
};

} // namespace hloc
