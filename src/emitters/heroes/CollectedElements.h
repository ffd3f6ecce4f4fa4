#pragma once
// Values that belong to the points of a loop which is unrolled later: kept in vectors, of which the body takes those of
// its own point.

#include "emitters/CodeBuilder.h"

namespace hloc {

/// Elements that a loop leaves behind, as vectors: of complex numbers one for each part.
class CollectedElements {
public:
  CollectedElements(CodeBuilder &b, int64_t count) : b(&b), count(count) {}

  /// Vectors for values of this type; what is in them does not matter.
  void addEmpty(mlir::Type type, llvm::SmallVector<mlir::Value> &vectors) const;
  void insert(mlir::Value value, mlir::OpFoldResult lane, mlir::ValueRange vectors, unsigned &next,
              llvm::SmallVector<mlir::Value> &inserted) const;
  mlir::Value extract(mlir::Type type, mlir::OpFoldResult lane, mlir::ValueRange vectors, unsigned &next) const;

private:
  CodeBuilder *b;
  int64_t count;
};

/// Lists of values of the same types, one a point, for a loop to read.
class CollectedLists {
public:
  using Values = llvm::SmallVector<mlir::Value>;
  CollectedLists(CodeBuilder &b, llvm::ArrayRef<Values> lists);
  /// So many empty ones.
  CollectedLists(CodeBuilder &b, int64_t count) : b(&b), collected(b, count) {}

  /// Makes each list longer by values of these types: `make` gets vectors that nothing has been put into, and fills
  /// them with CollectedElements::insert.
  void append(mlir::TypeRange moreTypes,
              llvm::function_ref<Values(const CollectedElements &collected, mlir::ValueRange vectors)> make);

  /// The list of the point with these loop variables: none where there is one list, else its number.
  Values at(mlir::ValueRange variables) const;

private:
  CodeBuilder *b;
  CollectedElements collected;
  llvm::SmallVector<mlir::Type> types;
  Values vectors;
};

} // namespace hloc
